"""Detects that no machine of the installation reports any more. Most replacements are then suspended.

If all agents stop reporting at once, the connection to the API server is probably broken: new machines could not report
either, while the old machines still serve traffic. So while no machine reports, machines that have reported before are
deleted only to reduce replicas. Only the set of the machine that has been silent for longest creates a replacement;
paused sets, and machines without a set, are passed over. If the replacement reports, the connection works, and all
silent machines are replaced.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from datetime import datetime
from typing import ClassVar, TypeVar

from domain.decision import Action, Queue, World
from domain.loadbalancers import LOAD_BALANCER_SET
from domain.loadbalancers.machine_health import DEFAULT_TIMINGS, Timings, last_report
from domain.loadbalancers.resources import LoadBalancerMachine, owner_name
from domain.model import Model

W = TypeVar("W", bound=World)


class Fleet(Model):
    """How many machines have ever reported, and how many report now. While none reports, only the set `scout`
    (`namespace/name`; empty for none) may create a replacement.
    """

    reported: int = 0
    reporting: int = 0
    scout: str = ""
    at: datetime | None = None  # when this was determined

    @property
    def silent(self) -> bool:
        return self.reported > 0 and self.reporting == 0

    @property
    def hold(self) -> str:
        nothing = f"none of {self.reported} machines reports"
        return f"{nothing}: probably they cannot reach the API server, so none is deleted"


# When a machine last reported, and its set as `namespace/name` (empty for a machine without a set).
Report = tuple[datetime, str]


def fleet_that_reported(
    found: Iterable[Report | None], now: datetime, timings: Timings = DEFAULT_TIMINGS, paused: Container[str] = ()
) -> Fleet:
    """Count the reports. The `scout`, the LoadBalancerSet that may create a replacement, is the set with the oldest
    report; sets in `paused` do not count.
    """
    reports = [each for each in found if each is not None]
    reporting = sum(moment >= now - timings.window for moment, _ in reports)
    able = [each for each in reports if each[1] and each[1] not in paused]
    return Fleet(reported=len(reports), reporting=reporting, scout=min(able)[1] if able else "")


class AskFleet(Action):
    activity: ClassVar[str] = "loadbalancers.ask_fleet"
    title: ClassVar[str] = "find out whether any machine of the installation reports"
    queue: ClassVar[str] = Queue.LOAD_BALANCERS
    result: ClassVar[type[Model] | None] = Fleet
    reads: ClassVar[bool] = True

    def fold(self, world: W, result: Model | None) -> W:
        return world.model_copy(update={"fleet": result})


def report_of(machine: LoadBalancerMachine) -> Report | None:
    moment = None if machine.metadata.deleting else last_report(machine)
    return None if moment is None else (moment, _set_of(machine))


def _set_of(machine: LoadBalancerMachine) -> str:
    meta = machine.metadata
    owner = owner_name(meta, LOAD_BALANCER_SET)
    return f"{meta.namespace}/{owner}" if owner else ""
