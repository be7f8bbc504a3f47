"""When each machine last reported.

While no machine reports, every set repeatedly requests the reports of all machines. So a parsed report is cached until
its machine's resourceVersion changes.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from datetime import datetime

from domain.loadbalancers.fleet_silence import Fleet, Report, fleet_that_reported, report_of
from domain.loadbalancers.machine_health import Timings
from domain.loadbalancers.resources import LoadBalancerMachine
from engine.kube.json import JsonObject, text


class Reports:
    def __init__(self) -> None:
        self._read: dict[tuple[str, str], Report | None] = {}  # by uid and resourceVersion

    def fleet(
        self, machines: Iterable[JsonObject], now: datetime, timings: Timings, paused: Container[str] = ()
    ) -> Fleet:
        read: dict[tuple[str, str], Report | None] = {}
        for each in machines:
            version = text(each, "metadata", "uid"), text(each, "metadata", "resourceVersion")
            known = version in self._read
            read[version] = self._read[version] if known else report_of(LoadBalancerMachine.model_validate(each))
        self._read = read
        return fleet_that_reported(read.values(), now, timings, paused)
