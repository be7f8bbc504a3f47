from activities.kube.writes import KubeActivities

__all__ = ["KubeActivities"]
