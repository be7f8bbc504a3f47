"""The machine's conditions, with the names and reasons of yawol's agent.

A condition's heartbeat is the time of the pass; its transition time is when its status last changed. The whole list is
written each time; conditions of other writers, such as the mark for deletion, are written as they were read.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from domain.loadbalancers.machine_health import CONFIG_READY, CONFIG_REJECTED, ENVOY_READY, ENVOY_UP_TO_DATE
from domain.loadbalancers.resources import MachineCondition
from domain.model import Model
from domain.resource import timestamp

_LONGEST_MESSAGE = 4096


class Finding(Model):
    type: str
    met: bool
    reason: str
    message: str


def config_ready(*, changed: bool, faults: Iterable[str] = ()) -> Finding:
    """`faults` are Envoy's refusals, or the reason why the LoadBalancer cannot be read."""
    text = "; ".join(faults)
    if text:
        return Finding(type=CONFIG_READY, met=False, reason=CONFIG_REJECTED, message=text)
    if changed:
        message = "envoy config is successfully updated"
        return Finding(type=CONFIG_READY, met=True, reason="EnvoyConfigurationUpToDate", message=message)
    message = "envoy config is already up to date"
    return Finding(type=CONFIG_READY, met=True, reason="EnvoyConfigurationCreated", message=message)


def envoy_ready(fault: str) -> Finding:
    if fault:
        return Finding(type=ENVOY_READY, met=False, reason="EnvoyNotReady", message=fault)
    return Finding(type=ENVOY_READY, met=True, reason="EnvoyReady", message="envoy response with 200")


def envoy_up_to_date(served: int | None, versions: tuple[str, str] | None) -> Finding:
    met = served is not None and versions == (str(served), str(served))
    message = "envoy is up to date" if met else "envoy is not up to date"
    if versions is None:
        message = "unable to get envoy snapshot version"
    return Finding(type=ENVOY_UP_TO_DATE, met=met, reason="EnvoySnapshotUpToDate", message=message)


def reported(
    before: Iterable[MachineCondition], findings: Iterable[Finding], now: datetime
) -> tuple[MachineCondition, ...]:
    known = {each.type: each for each in before}
    found = {each.type: _condition(known.get(each.type), each, timestamp(now)) for each in findings}
    return tuple(condition for _, condition in sorted({**known, **found}.items()))


def _condition(before: MachineCondition | None, finding: Finding, moment: str) -> MachineCondition:
    status = str(finding.met)
    unchanged = before is not None and before.status == status and before.last_transition_time
    return MachineCondition(
        type=finding.type,
        status=status,
        reason=finding.reason,
        message=finding.message[:_LONGEST_MESSAGE],
        last_heartbeat_time=moment,
        last_transition_time=before.last_transition_time if before is not None and unchanged else moment,
    )
