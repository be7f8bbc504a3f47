"""Writes of custom resources, for every area."""

from activities.kube.writes import KubeActivities

__all__ = ["KubeActivities"]
