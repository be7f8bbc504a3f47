"""The pause before a set's next machine, after consecutive machines that did not boot.

There is no pause after the first failure, and one minute after the second; then the pause doubles up to half an hour.
The count is reset when a newly created machine becomes ready. A new template has a new set, whose count is zero. The
set's annotations store the uids of the failed machines, so that each machine counts once.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from domain.control_annotations import RETRIED
from domain.loadbalancers.constants import BOOT_FAILED_AT_ANNOTATION, BOOT_FAILURES_ANNOTATION
from domain.loadbalancers.resources import LoadBalancerMachine, LoadBalancerSet
from domain.refusal import doubled
from domain.resource import reckonable_timestamp, timestamp
from domain.writes import JsonPatch

_FIRST_PAUSE = timedelta(minutes=1)
_LONGEST_PAUSE = timedelta(minutes=30)
# How many failed machines are remembered: enough to reach the longest pause.
_REMEMBERED = 8


def failed_boots(machine_set: LoadBalancerSet) -> tuple[str, ...]:
    text = machine_set.metadata.annotations.get(BOOT_FAILURES_ANNOTATION, "")
    return tuple(uid for uid in text.split(",") if uid)


def boot_pause(failures: int) -> timedelta:
    return doubled(failures - 1, _FIRST_PAUSE, _LONGEST_PAUSE) if failures > 1 else timedelta(0)


def paused_until(machine_set: LoadBalancerSet) -> datetime | None:
    failed_at = reckonable_timestamp(machine_set.metadata.annotations.get(BOOT_FAILED_AT_ANNOTATION))
    return failed_at + boot_pause(len(failed_boots(machine_set))) if failed_at else None


def count_failures(machine_set: LoadBalancerSet, failed: Iterable[LoadBalancerMachine], now: datetime) -> JsonPatch:
    known = failed_boots(machine_set)
    fresh = tuple(machine.metadata.uid for machine in failed if machine.metadata.uid not in known)
    if not fresh:
        return {}
    annotations = {
        BOOT_FAILURES_ANNOTATION: ",".join((*known, *fresh)[-_REMEMBERED:]),
        BOOT_FAILED_AT_ANNOTATION: timestamp(now),
    }
    return {"metadata": {"annotations": annotations}}


def tried_again(token: str) -> JsonPatch:
    """The patch that ends the pause because a person requested a retry. The count of failures stays."""
    return {"metadata": {"annotations": {BOOT_FAILED_AT_ANNOTATION: None, RETRIED: token}}}


def forget_failures(machine_set: LoadBalancerSet, ready: Iterable[LoadBalancerMachine]) -> JsonPatch:
    """The patch that resets the count if a machine created after the last failure is ready; otherwise empty."""
    known = {BOOT_FAILURES_ANNOTATION, BOOT_FAILED_AT_ANNOTATION} & machine_set.metadata.annotations.keys()
    failed_at = reckonable_timestamp(machine_set.metadata.annotations.get(BOOT_FAILED_AT_ANNOTATION))
    births = (machine.metadata.creation_timestamp for machine in ready)
    if not known or not any(failed_at is None or (born is not None and born >= failed_at) for born in births):
        return {}
    return {"metadata": {"annotations": dict.fromkeys(sorted(known))}}
