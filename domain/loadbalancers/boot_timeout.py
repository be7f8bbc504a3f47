"""The boot timeout: a machine that has not reported within 10 minutes of its creation is marked, and then replaced.

A machine's annotation `creationTimeout` sets another timeout. The timeout does not run while quota or an outage
prevents the creation of the machine's server. `machine_health.py` marks the machine for deletion; `boot_backoff.py`
delays the set's next machines.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from domain.loadbalancers.constants import (
    BOOTS_SINCE_ANNOTATION,
    CREATION_TIMEOUT_ANNOTATION,
    OUTAGE_ANNOTATION,
    QUOTA_ANNOTATION,
)
from domain.loadbalancers.go_formats import parse_duration
from domain.loadbalancers.patches import annotated
from domain.loadbalancers.refused_calls import Blocker, Nature
from domain.loadbalancers.resources import LoadBalancerMachine
from domain.resource import reckonable_timestamp, timestamp
from domain.writes import JsonPatch

BOOT_TIMEOUT = timedelta(minutes=10)


def boot_deadline(machine: LoadBalancerMachine, timeout: timedelta = BOOT_TIMEOUT) -> datetime | None:
    """The time by which the machine must have reported; None if it has no creation time."""
    waited = reckonable_timestamp(machine.metadata.annotations.get(BOOTS_SINCE_ANNOTATION))
    born = waited or machine.metadata.creation_timestamp
    own = parse_duration(machine.metadata.annotations.get(CREATION_TIMEOUT_ANNOTATION, ""))
    return born + (timeout if own is None else own) if born else None


def waits_for_server(machine: LoadBalancerMachine) -> bool:
    annotations = machine.metadata.annotations
    return QUOTA_ANNOTATION in annotations or OUTAGE_ANNOTATION in annotations


def waiting_patch(
    machine: LoadBalancerMachine, blocker: Blocker | None, now: datetime, *, has_server: bool
) -> JsonPatch:
    """The patch that records that the machine waits for quota or OpenStack, or, after the wait, that its boot time
    begins. A delay that Perdure causes (`Blocker.ours`) is not recorded.
    """
    annotations = machine.metadata.annotations
    waits = tuple(each for each in (QUOTA_ANNOTATION, OUTAGE_ANNOTATION) if each in annotations)
    over = waits if has_server else ()
    if blocker is not None and blocker.nature is Nature.QUOTA and QUOTA_ANNOTATION not in annotations:
        return annotated({QUOTA_ANNOTATION: blocker.why})
    if blocker is not None and blocker.nature is Nature.OUTAGE and not (blocker.ours or has_server or waits):
        return annotated({OUTAGE_ANNOTATION: blocker.why})
    if blocker is not None and blocker.nature is Nature.REFUSED:
        # OpenStack answers again: from now on, refusals count against the boot timeout.
        over = tuple(each for each in waits if has_server or each == OUTAGE_ANNOTATION)
    return annotated({**dict.fromkeys(over), BOOTS_SINCE_ANNOTATION: timestamp(now)}) if over else {}
