"""The machine's metrics in `status.metrics`, with the names of yawol's agent.

Units are those that yawol's agent writes, not those of its documentation: memory in bytes, times in seconds. All values
are strings. Values that cannot be read are left out.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

import psutil

from domain.loadbalancers.resources import Metric
from domain.resource import timestamp
from yawollet.keepalived import Statistics

STATISTICS_PATTERN = "cluster|tcp"

# Of each cluster: `cluster.TCP-80.upstream_cx_total` becomes `TCP-80-upstream_cx_total`.
_CLUSTER = re.compile(r"cluster\.((?:TCP|UDP)-\d+)\.([^.]+)")
_CLUSTER_COUNTS = (
    "upstream_cx_active",
    "upstream_cx_total",
    "upstream_cx_connect_fail",
    "upstream_cx_tx_bytes_total",
    "upstream_cx_rx_bytes_total",
)
_IDLE_TIMEOUT = re.compile(r"tcp\.([^.]+)\.idle_timeout")


def metrics(now: datetime, envoy: Mapping[str, str], keepalived: Statistics | None, *, cpus: int) -> tuple[Metric, ...]:
    moment = timestamp(now)
    found = {**machine_values(cpus), **envoy_values(envoy), **keepalived_values(keepalived)}
    return tuple(Metric(type=type_, value=value, timestamp=moment) for type_, value in found.items())


def machine_values(cpus: int) -> dict[str, str]:
    sources: Iterable[Callable[[], dict[str, str]]] = (_load, _uptime, _memory, _steal, lambda: {"numCPU": str(cpus)})
    found: dict[str, str] = {}
    for source in sources:
        try:
            found |= source()
        except (OSError, AttributeError, psutil.Error):
            continue
    return found


def envoy_values(statistics: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for name, value in statistics.items():
        if cluster := _CLUSTER.fullmatch(name):
            if any(count in cluster[2] for count in _CLUSTER_COUNTS):
                found[f"{cluster[1]}-{cluster[2]}"] = value
        elif proxy := _IDLE_TIMEOUT.fullmatch(name):
            found[f"{proxy[1]}-idle_timeout"] = value
    return found


def keepalived_values(statistics: Statistics | None) -> dict[str, str]:
    if statistics is None:
        return {}
    return {
        "keepalivedIsMaster": str(int(statistics.is_master)),
        "keepalivedReleasedMaster": str(statistics.released_master),
        "keepalivedBecameMaster": str(statistics.became_master),
        "keepalivedAdvertisementsSent": str(statistics.sent),
        "keepalivedAdvertisementsReceived": str(statistics.received),
    }


def _load() -> dict[str, str]:
    return dict(zip(("load1", "load5", "load15"), (f"{load:.2f}" for load in os.getloadavg()), strict=True))


def _uptime() -> dict[str, str]:
    return {"uptime": str(int(time.time() - psutil.boot_time()))}


def _memory() -> dict[str, str]:
    memory = psutil.virtual_memory()
    return {"memTotal": str(memory.total), "memFree": str(memory.free), "memAvailable": str(memory.available)}


def _steal() -> dict[str, str]:
    return {"stealTime": f"{psutil.cpu_times().steal:.2f}"}
