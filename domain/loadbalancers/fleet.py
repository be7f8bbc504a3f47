"""All machines of an installation together: when none of them reports, it is not the machines that are broken.

Agents report to the API server. If every one of them falls silent at once, the way there is broken, and machines made
anew would be as silent; meanwhile the old ones serve on. So while the whole fleet is silent nothing that has ever
reported is deleted. Only one set (that of the machine which fell silent first) makes a replacement: if that one
reports, the way is open and the others are dead after all. So an installation of a single machine heals like any other.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from domain.loadbalancers import LOAD_BALANCER_SET
from domain.loadbalancers.health import DEFAULT_TIMINGS, Timings, last_report
from domain.loadbalancers.resources import LoadBalancerMachine
from domain.model import Model


class Fleet(Model):
    """How many machines have ever reported, how many do, and the set (`namespace/name`) that may try another."""

    reported: int = 0
    reporting: int = 0
    scout: str = ""

    @property
    def silent(self) -> bool:
        """Whether nobody reports any more."""
        return self.reported > 0 and self.reporting == 0


def fleet_of(machines: Iterable[LoadBalancerMachine], now: datetime, timings: Timings = DEFAULT_TIMINGS) -> Fleet:
    """All machines of the installation together."""
    alive = (machine for machine in machines if not machine.metadata.deleting)
    reports = [(moment, _set_of(machine)) for machine in alive if (moment := last_report(machine)) is not None]
    reporting = sum(moment >= now - timings.window for moment, _ in reports)
    return Fleet(reported=len(reports), reporting=reporting, scout=min(reports)[1] if reports else "")


def _set_of(machine: LoadBalancerMachine) -> str:
    meta = machine.metadata
    owner = next((each.name for each in meta.owner_references if each.kind == LOAD_BALANCER_SET.name), "")
    return f"{meta.namespace}/{owner}"
