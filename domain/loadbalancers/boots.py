"""Machines of one set that did not boot, one after another, and the pause before the next.

The first that did not boot is replaced at once. From the second in a row on the set waits, one minute, then twice as
long each time, up to half an hour: a project without quota or a broken image would otherwise see machines made and
deleted for ever. A machine that becomes ready, or another template (which is another set), starts anew.

The memory is in the set's annotations: the uids of the machines, so that one counts once however often it is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from domain.levers import RETRIED
from domain.loadbalancers.constants import (
    BOOT_FAILED_AT_ANNOTATION,
    BOOT_FAILURES_ANNOTATION,
    FIRST_BOOT_PAUSE,
    LONGEST_BOOT_PAUSE,
)
from domain.loadbalancers.resources import LoadBalancerMachine, LoadBalancerSet
from domain.resource import parse_timestamp, timestamp
from domain.writes import JsonPatch

# As many as it takes to reach the longest pause.
_REMEMBERED = 8


def failed_boots(machine_set: LoadBalancerSet) -> tuple[str, ...]:
    """The uids of the machines in a row that did not boot."""
    text = machine_set.metadata.annotations.get(BOOT_FAILURES_ANNOTATION, "")
    return tuple(uid for uid in text.split(",") if uid)


def boot_pause(failures: int) -> timedelta:
    """How long the next machine waits after so many failures in a row."""
    if failures < 2:
        return timedelta(0)
    doubled: timedelta = FIRST_BOOT_PAUSE * (1 << min(failures - 2, _REMEMBERED))
    return min(doubled, LONGEST_BOOT_PAUSE)


def paused_until(machine_set: LoadBalancerSet) -> datetime | None:
    """Until when the set makes no machine; None if nothing has failed."""
    failed_at = parse_timestamp(machine_set.metadata.annotations.get(BOOT_FAILED_AT_ANNOTATION))
    return failed_at + boot_pause(len(failed_boots(machine_set))) if failed_at else None


def count_failures(machine_set: LoadBalancerSet, failed: Iterable[LoadBalancerMachine], now: datetime) -> JsonPatch:
    """The merge patch of the set that remembers these machines too; empty if it does already."""
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
    """The merge patch of the set that ends the pause, as a person asked by this retry; what failed stays counted."""
    return {"metadata": {"annotations": {BOOT_FAILED_AT_ANNOTATION: None, RETRIED: token}}}


def forget_failures(machine_set: LoadBalancerSet, ready: Iterable[LoadBalancerMachine]) -> JsonPatch:
    """The merge patch of the set that starts anew once a machine made after the failures is ready; empty if not yet.

    A machine that was ready before says nothing of what machines come to now.
    """
    known = {BOOT_FAILURES_ANNOTATION, BOOT_FAILED_AT_ANNOTATION} & machine_set.metadata.annotations.keys()
    failed_at = parse_timestamp(machine_set.metadata.annotations.get(BOOT_FAILED_AT_ANNOTATION))
    births = (machine.metadata.creation_timestamp for machine in ready)
    if not known or not any(failed_at is None or (born is not None and born >= failed_at) for born in births):
        return {}
    return {"metadata": {"annotations": dict.fromkeys(sorted(known))}}
