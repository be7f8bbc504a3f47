"""The area's passes that run in one activity each: over a Service, a set, and all projects."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from domain.decision import Queue
from domain.loadbalancers.object_world import KubeAction, ObjectMemory
from domain.model import Model
from domain.passes import Pass, PassedWorld, Sweep

# Phases in which a person may request a retry: something blocks, or a pause runs.
RETRYABLE = frozenset({"Waiting", "Scaling"})


class LoadBalancerWorld(PassedWorld):
    known: ObjectMemory = ObjectMemory()


class _ObjectPass(KubeAction, Pass):
    result: ClassVar[type[Model] | None] = LoadBalancerWorld

    memory: ObjectMemory = ObjectMemory()


class PassService(_ObjectPass):
    activity: ClassVar[str] = "loadbalancers.pass_service"
    title: ClassVar[str] = "reconcile the Service, its LoadBalancer and the nodes"


class PassSet(_ObjectPass):
    activity: ClassVar[str] = "loadbalancers.pass_set"
    title: ClassVar[str] = "count the set's machines, check their health, create and replace machines"


class SweepProjects(Sweep):
    activity: ClassVar[str] = "loadbalancers.sweep_projects"
    compares: ClassVar[str] = "projects"
    title: ClassVar[str] = "compare all projects, and wake the objects that differ"
    queue: ClassVar[str] = Queue.LOAD_BALANCERS
    start_to_close: ClassVar[timedelta] = timedelta(minutes=5)
    heartbeat: ClassVar[timedelta] = timedelta(seconds=10)
