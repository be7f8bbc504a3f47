"""All machines of an installation together: when none of them reports, it is not the machines that are broken.

Agents report to the API server. If every one of them falls silent at once, the way there is broken, and machines made
anew would be as silent; meanwhile the old ones serve on. So while the whole fleet is silent nothing that has ever
reported is deleted, unless fewer are wanted. Only one set (that of the machine which fell silent first) makes a
replacement: if that one reports, the way is open and the others are dead after all. So an installation of a single
machine heals like any other. A set that a person has paused makes none, and a machine of no set has none to make it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from datetime import datetime
from typing import ClassVar, TypeVar

from domain.decision import Action, Queue, World
from domain.loadbalancers import LOAD_BALANCER_SET
from domain.loadbalancers.health import DEFAULT_TIMINGS, Timings, last_report
from domain.loadbalancers.resources import LoadBalancerMachine
from domain.model import Model

W = TypeVar("W", bound=World)


class Fleet(Model):
    """How many machines have ever reported, how many do, and the set (`namespace/name`) that may try another."""

    reported: int = 0
    reporting: int = 0
    scout: str = ""
    at: datetime | None = None  # when that was asked

    @property
    def silent(self) -> bool:
        """Whether nobody reports any more."""
        return self.reported > 0 and self.reporting == 0


# When a machine has reported last, and its set (`namespace/name`), empty if it has none.
Report = tuple[datetime, str]


def fleet_that_reported(
    found: Iterable[Report | None], now: datetime, timings: Timings = DEFAULT_TIMINGS, paused: Container[str] = ()
) -> Fleet:
    """All machines together, by what `report_of` says of each; no scout is among the sets that are paused."""
    reports = [each for each in found if each is not None]
    reporting = sum(moment >= now - timings.window for moment, _ in reports)
    able = [each for each in reports if each[1] and each[1] not in paused]
    return Fleet(reported=len(reports), reporting=reporting, scout=min(able)[1] if able else "")


class AskFleet(Action):
    """Find out whether any machine of the installation reports."""

    activity: ClassVar[str] = "loadbalancers.ask_fleet"
    title: ClassVar[str] = "find out whether any other machine reports"
    queue: ClassVar[str] = Queue.LOAD_BALANCERS
    result: ClassVar[type[Model] | None] = Fleet
    reads: ClassVar[bool] = True

    def fold(self, world: W, result: Model | None) -> W:
        """Whether it is silent, until the next observation."""
        return world.model_copy(update={"fleet": result})


def report_of(machine: LoadBalancerMachine) -> Report | None:
    """The machine's last report; None if it never has reported, or is being deleted."""
    moment = None if machine.metadata.deleting else last_report(machine)
    return None if moment is None else (moment, _set_of(machine))


def _set_of(machine: LoadBalancerMachine) -> str:
    meta = machine.metadata
    owner = next((each.name for each in meta.owner_references if each.kind == LOAD_BALANCER_SET.name), "")
    return f"{meta.namespace}/{owner}" if owner else ""
