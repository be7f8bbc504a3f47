"""The boot timeout: a machine that has not reported within 10 minutes of its creation is marked, and then replaced.

The annotation `creationTimeout` of a machine sets another time. While quota or an outage prevents the creation of its
server, the time does not run. `machine_health.py` marks the machine for deletion; `boot_backoff.py` delays the creation
of its set's next machines.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from domain.loadbalancers.constants import (
    BOOT_TIMEOUT,
    BOOTS_SINCE_ANNOTATION,
    CREATION_TIMEOUT_ANNOTATION,
    OUTAGE_ANNOTATION,
    QUOTA_ANNOTATION,
)
from domain.loadbalancers.go_formats import parse_duration
from domain.loadbalancers.resources import LoadBalancerMachine
from domain.resource import parse_timestamp


def boot_deadline(machine: LoadBalancerMachine, timeout: timedelta = BOOT_TIMEOUT) -> datetime | None:
    """The time by which the machine must have reported; None if it has no creation time."""
    waited = parse_timestamp(machine.metadata.annotations.get(BOOTS_SINCE_ANNOTATION))
    born = waited or machine.metadata.creation_timestamp
    own = parse_duration(machine.metadata.annotations.get(CREATION_TIMEOUT_ANNOTATION, ""))
    return born + (timeout if own is None else own) if born else None


def waits_for_server(machine: LoadBalancerMachine) -> bool:
    annotations = machine.metadata.annotations
    return QUOTA_ANNOTATION in annotations or OUTAGE_ANNOTATION in annotations
