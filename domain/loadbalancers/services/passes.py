"""The pass over a Service: one activity that observes, decides, acts, and hands back what it came to."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import ClassVar

from domain.decision import Action, Decision, Outcome, Queue
from domain.identity import Key
from domain.loadbalancers.resources import LoadBalancer
from domain.loadbalancers.services.objects import Service
from domain.loadbalancers.services.synchronization import ServiceWork
from domain.model import Model
from domain.notices import NoticeType
from domain.passes import PassedWorld


class ServicePhase(StrEnum):
    """How a Service stands, for lists."""

    CREATING = "Creating"
    READY = "Ready"
    UNSERVABLE = "Unservable"
    RELEASING = "Releasing"
    LEFT = "Left"


class ServiceWorld(PassedWorld):
    """What a pass came to. It carries nothing: everything is on the Service and its LoadBalancer."""


class PassService(Action):
    """Bring a Service's LoadBalancer, address, condition and Events to what they have to be."""

    activity: ClassVar[str] = "loadbalancers.pass_service"
    queue: ClassVar[str] = Queue.LOAD_BALANCERS
    result: ClassVar[type[Model] | None] = ServiceWorld
    start_to_close: ClassVar[timedelta] = timedelta(minutes=2)

    key: Key
    dry_run: bool = False

    @property
    def summary(self) -> str:
        """For the timeline."""
        return "reconcile the Service, its LoadBalancer and the nodes"


def decision_of(service: Service, balancer: LoadBalancer | None, work: ServiceWork) -> Decision:
    """How the Service stands after the work."""
    if work.problem:
        return _waiting(ServicePhase.UNSERVABLE, work.problem, "a change of the Service")
    if work.waits_for:
        return _waiting(ServicePhase.RELEASING, f"waits until {work.waits_for}", work.waits_for)
    if balancer is None:
        return Decision(phase=ServicePhase.LEFT, outcome=Outcome.GONE, why="it has no load balancer from Perdure")
    if not service.ingress:
        why = "its load balancer has no address or no ready machine yet"
        return _waiting(ServicePhase.CREATING, why, "the load balancer's address and first machine")
    ignored = [notice.message for notice in work.notices if notice.type is NoticeType.WARNING]
    address = ", ".join(each.ip or each.hostname for each in service.ingress)
    why = " ".join((f"it is served at {address}.", *ignored))
    return Decision(phase=ServicePhase.READY, outcome=Outcome.SETTLED, why=why)


def planned(work: ServiceWork, *, status: bool) -> tuple[str, ...]:
    """What would be done, for people."""
    lines = {
        "add the finalizer": work.add_finalizer,
        "create its LoadBalancer": bool(work.create),
        "patch its LoadBalancer": bool(work.patch),
        "delete its LoadBalancer": work.delete,
        "write its status": status,
        "remove the finalizer": work.drop_finalizer,
    }
    return tuple(line for line, wanted in lines.items() if wanted)


def _waiting(phase: ServicePhase, why: str, waits_for: str) -> Decision:
    return Decision(phase=phase, outcome=Outcome.WAITING, why=why, waits_for=(waits_for,))
