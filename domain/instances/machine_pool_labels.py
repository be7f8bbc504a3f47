"""The label of an AWSMachinePool: its Auto Scaling group's state in one word, the worst of its instances' states.

A label value may not contain the colons of Auto Scaling's lifecycle states, so each state has a word here. The group's
workflow asks Auto Scaling when it is woken. An event may report a failed launch or termination before Auto Scaling
does. A failed launch counts until a later launch succeeds, and a failed termination until a later termination succeeds.
A group is `warm` only if all its instances are.

The annotation beside the label lists the instances that are not in service, and the causes of failures. Each edit wakes
the AWS provider, so Perdure does not write the annotation if only the number of instances in service has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum

from pydantic import ValidationError

from domain.instances.constants import EVENTS_ANNOTATION, GROUP_STATE_LABEL, LONGEST_ANNOTATION
from domain.instances.events import EventKind, InstanceEvent
from domain.instances.machine_labels import metadata_patch
from domain.instances.resources import AWSMachinePool
from domain.model import Model
from domain.writes import JsonPatch


class GroupState(StrEnum):
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
    time: datetime
    failed: bool
    detail: str = ""
    key: str = ""

    @property
    def rank(self) -> tuple[datetime, bool, str]:
        """The sort key. The latest result counts; of results within the same second, a failure counts."""
        return self.time, self.failed, self.key


class GroupRecord(Model):
    """The last results, under the keys `launch` and `terminate`."""

    results: dict[str, LastResult] = {}


def fold_result(record: GroupRecord, event: InstanceEvent) -> GroupRecord:
    named = _RESULTS.get(event.kind)
    if named is None:
        return record
    activity, failed = named
    result = LastResult(time=event.time, failed=failed, detail=event.detail, key=event.key)
    return merged(record, GroupRecord(results={activity: result}))


def merged(record: GroupRecord, other: GroupRecord) -> GroupRecord:
    results = dict(record.results)
    for activity, result in other.results.items():
        known = results.get(activity)
        if known is None or result.rank > known.rank:
            results[activity] = result
    return record if results == record.results else GroupRecord(results=results)


def word_of(lifecycle_state: str) -> GroupState | None:
    if lifecycle_state.startswith("Warmed:"):
        return GroupState.WARM
    state, _, step = lifecycle_state.partition(":")
    if state == "Pending":
        return GroupState.PENDING_WAIT if step == "Wait" else GroupState.LAUNCHING
    if state in ("Terminating", "Terminated"):
        return GroupState.TERMINATING_WAIT if step == "Wait" else GroupState.TERMINATING
    return GroupState.IN_SERVICE if state == "InService" else None


def group_state(lifecycle_states: Iterable[str], record: GroupRecord) -> GroupState | None:
    """The group's state; None if the group has no instance and its last launch and termination did not fail."""
    found = {word_of(each) for each in lifecycle_states}
    for activity, word in (("launch", GroupState.LAUNCH_FAILED), ("terminate", GroupState.TERMINATE_FAILED)):
        result = record.results.get(activity)
        if result is not None and result.failed:
            found.add(word)
    return next((word for word in GroupState if word in found), None)


class GroupStory(Model):
    """The content of the annotation `perdure.dev/instance-events`."""

    in_service: int = 0  # the number of instances in service when it was written
    instances: dict[str, str] = {}  # the states of the other instances, by id
    more: int = 0  # how many other instances are left out, because the annotation would be too long
    failed: dict[str, LastResult] = {}  # the last launch or termination, if it failed

    @property
    def worth_writing(self) -> tuple[object, ...]:
        return self.instances, self.more, self.failed


def group_story(instances: Mapping[str, str], record: GroupRecord) -> GroupStory:
    words = {each: word_of(state) or state.lower() for each, state in sorted(instances.items())}
    others = {each: str(word) for each, word in words.items() if word is not GroupState.IN_SERVICE}
    failed = {activity: result for activity, result in record.results.items() if result.failed}
    story = GroupStory(in_service=len(words) - len(others), instances=others, failed=failed)
    while len(_written(story).encode()) > LONGEST_ANNOTATION and story.instances:
        shown = dict(list(story.instances.items())[: len(story.instances) * 3 // 4])
        story = story.model_copy(update={"instances": shown, "more": len(others) - len(shown)})
    return story


def pool_patch(pool: AWSMachinePool, state: GroupState | None, story: GroupStory) -> JsonPatch:
    wanted = state.value if state else None
    label = {} if pool.metadata.labels.get(GROUP_STATE_LABEL) == wanted else {GROUP_STATE_LABEL: wanted}
    if not label and _recorded_story(pool).worth_writing == story.worth_writing:
        return {}
    return metadata_patch(pool.metadata, label, _written(story))


def group_differs(pool: AWSMachinePool, instances: Mapping[str, str]) -> bool:
    """Whether the pool's label or annotation contradicts the states of the group's instances."""
    # These states do not show failed launches and terminations, so failures in the annotation are taken as true.
    record = GroupRecord(results=_recorded_story(pool).failed)
    return bool(pool_patch(pool, group_state(instances.values(), record), group_story(instances, record)))


def _recorded_story(pool: AWSMachinePool) -> GroupStory:
    try:
        return GroupStory.model_validate_json(pool.metadata.annotations.get(EVENTS_ANNOTATION, "{}"))
    except ValidationError:
        return GroupStory()


def _written(story: GroupStory) -> str:
    return story.model_dump_json(exclude_defaults=True)
