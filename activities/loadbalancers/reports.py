"""Who of all machines has reported when, read once of each version of a machine.

When a fleet falls silent, the passes of all its sets ask for all of its machines, and ask again; between two of them
hardly a machine changes. So what was read of a machine stays until the machine is another one.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from datetime import datetime

from domain.loadbalancers.fleet import Fleet, Report, fleet_that_reported, report_of
from domain.loadbalancers.health import Timings
from domain.loadbalancers.resources import LoadBalancerMachine
from engine.kube.json import JsonObject, text


class Reports:
    """What a worker has read of the installation's machines."""

    def __init__(self) -> None:
        self._read: dict[tuple[str, str], Report | None] = {}  # by uid and resourceVersion

    def fleet(
        self, machines: Iterable[JsonObject], now: datetime, timings: Timings, paused: Container[str] = ()
    ) -> Fleet:
        """All machines of the installation together; those that are none of them any more are forgotten."""
        read: dict[tuple[str, str], Report | None] = {}
        for each in machines:
            version = text(each, "metadata", "uid"), text(each, "metadata", "resourceVersion")
            known = version in self._read
            read[version] = self._read[version] if known else report_of(LoadBalancerMachine.model_validate(each))
        self._read = read
        return fleet_that_reported(read.values(), now, timings, paused)
