"""How an Auto Scaling group stands, in one word: the worst of its instances' states, as its pool's label.

Auto Scaling's own names of lifecycle states hold colons, which no label value may, so each has a word of ours. The
group's workflow asks Auto Scaling when it is woken; only that a launch or a termination failed is told by nothing but
an event, and holds until a later one of the same kind succeeded. A group is `warm` when all its instances are: a warm
pool beside instances that serve is nothing worse.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

from domain.instances.constants import GROUP_STATE_LABEL
from domain.instances.events import EventKind, InstanceEvent
from domain.instances.resources import AWSMachinePool
from domain.model import Model
from domain.writes import JsonPatch


class GroupState(StrEnum):
    """The values of the pool's label; the first that an instance has is the group's."""

    TERMINATE_FAILED = "terminate-failed"
    LAUNCH_FAILED = "launch-failed"
    TERMINATING_WAIT = "terminating-wait"
    TERMINATING = "terminating"
    PENDING_WAIT = "pending-wait"
    LAUNCHING = "launching"
    IN_SERVICE = "in-service"
    WARM = "warm"


_RESULTS = {
    EventKind.LAUNCH_OK: ("launch", False),
    EventKind.LAUNCH_FAILED: ("launch", True),
    EventKind.TERMINATE_OK: ("terminate", False),
    EventKind.TERMINATE_FAILED: ("terminate", True),
}


class LastResult(Model):
    """The latest launch or termination of a group that came to an end."""

    time: datetime
    failed: bool
    detail: str = ""
    key: str = ""


class GroupRecord(Model):
    """What events tell of a group and Auto Scaling does not: by `launch` and `terminate`."""

    results: dict[str, LastResult] = {}


def fold_result(record: GroupRecord, event: InstanceEvent) -> GroupRecord:
    """The record with an event; the later one counts, of the same second a failure."""
    named = _RESULTS.get(event.kind)
    if named is None:
        return record
    activity, failed = named
    told = LastResult(time=event.time, failed=failed, detail=event.detail, key=event.key)
    known = record.results.get(activity)
    if known is not None and (known.time, known.failed, known.key) >= (told.time, told.failed, told.key):
        return record
    return record.model_copy(update={"results": {**record.results, activity: told}})


def word_of(lifecycle_state: str) -> GroupState | None:
    """The word for one of Auto Scaling's lifecycle states; None for instances on standby or detached."""
    if lifecycle_state.startswith("Warmed:"):
        return GroupState.WARM
    state, _, step = lifecycle_state.partition(":")
    if state == "Pending":
        return GroupState.PENDING_WAIT if step == "Wait" else GroupState.LAUNCHING
    if state in ("Terminating", "Terminated"):
        return GroupState.TERMINATING_WAIT if step == "Wait" else GroupState.TERMINATING
    return GroupState.IN_SERVICE if state == "InService" else None


def group_state(lifecycle_states: Iterable[str], record: GroupRecord) -> GroupState | None:
    """The group's word, None while it has no instance and nothing failed."""
    found = {word_of(each) for each in lifecycle_states}
    for activity, word in (("launch", GroupState.LAUNCH_FAILED), ("terminate", GroupState.TERMINATE_FAILED)):
        result = record.results.get(activity)
        if result is not None and result.failed:
            found.add(word)
    return next((word for word in GroupState if word in found), None)


def pool_patch(pool: AWSMachinePool, state: GroupState | None) -> JsonPatch:
    """The merge patch that makes the pool's label true; empty if it is."""
    wanted = state.value if state else None
    if pool.metadata.labels.get(GROUP_STATE_LABEL) == wanted:
        return {}
    uid = {"uid": pool.metadata.uid} if pool.metadata.uid else {}
    return {"metadata": {**uid, "labels": {GROUP_STATE_LABEL: wanted}}}
