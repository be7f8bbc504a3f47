"""A machine whose Envoy rejects the configuration is not replaced, because a new machine would have the same fault.

There are two exceptions: another machine of its set accepts the configuration, or its own Envoy is not ready or not up
to date.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from domain.loadbalancers.machine_health import (
    CONFIG_READY,
    CONFIG_REJECTED,
    ENVOY_READY,
    ENVOY_UP_TO_DATE,
    TRUE,
    Timings,
    last_report,
    reports_of,
    unmet,
)
from domain.loadbalancers.resources import LoadBalancerMachine


def config_fault(alive: Sequence[LoadBalancerMachine], now: datetime, timings: Timings) -> str:
    """Why Envoy rejects the configuration; empty if no machine rejects it, or if one machine accepts it."""
    since = now - timings.window
    reporting = [each for each in alive if (moment := last_report(each)) is not None and moment >= since]
    if any(not unmet(machine, now, timings.window, stable=False) for machine in reporting):
        return ""
    rejections = [found for machine in reporting if (found := rejection_of(machine))]
    return f"Envoy rejects the configuration, so no machine is replaced: {rejections[0]}" if rejections else ""


def rejection_of(machine: LoadBalancerMachine) -> str:
    found = {each.type: each for each in reports_of(machine)}
    config = found.get(CONFIG_READY)
    if config is None or config.status == TRUE or config.reason != CONFIG_REJECTED:
        return ""
    # An Envoy that is not ready or not up to date is itself broken, whatever it rejects.
    if any(type_ in found and found[type_].status != TRUE for type_ in (ENVOY_READY, ENVOY_UP_TO_DATE)):
        return ""
    return config.message or f"{CONFIG_READY} is {config.status}"
