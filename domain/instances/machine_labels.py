"""The two labels and the annotation of an AWSMachine, or of a Node without AWSMachine, written only if they change.

Each edit makes the AWS provider reconcile the instance, which costs several calls. So the annotation is written only
together with a label, or when something changed that has to outlive the workflow and cannot be read from AWS again:
notices, tokens of lifecycle actions, a Node that Perdure cordoned. The patch includes the object's uid, so that no
recreated object is labelled.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime

from pydantic import ValidationError

from domain.instances.constants import EVENTS_ANNOTATION, INTERRUPTION_LABEL, LONGEST_ANNOTATION, STATE_LABEL
from domain.instances.event_record import Drain, HeldHook, InstanceRecord, Interruption, LastEvent
from domain.instances.events import EventKind, InstanceState
from domain.instances.interruption_causes import nearest_end, open_interruptions
from domain.instances.resources import AWSMachine, Node
from domain.instances.scheduled_event_timing import open_planned
from domain.instances.scheduled_event_types import Effect, effect_of
from domain.instances.state_ordering import LastState
from domain.model import Model
from domain.resource import ObjectMeta, reckonable
from domain.writes import JsonPatch

# From the most to the least severe. The label shows only the most severe.
_SEVERITY = (
    "spot-terminate",
    "capacity-reservation",
    "spot-stop",
    "spot-hibernate",
    Effect.TERMINATION.value,
    Effect.RETIREMENT.value,
    Effect.STOP.value,
    Effect.REBOOT.value,
    Effect.MAINTENANCE.value,
    "rebalance",
)


class Story(Model):
    account: str = ""
    last: LastEvent | None = None
    deadline: datetime | None = None
    interruptions: dict[EventKind, Interruption] = {}
    cordoned: Drain | None = None
    hooks: dict[str, HeldHook] = {}

    @property
    def worth_writing(self) -> tuple[object, ...]:
        return self.deadline, self.interruptions, self.cordoned, self.hooks


def label_patch(labelled: AWSMachine | Node, record: InstanceRecord, now: datetime) -> JsonPatch:
    wanted = {INTERRUPTION_LABEL: interruption_label(record, now) or None}
    if record.state is not None:  # an unknown state does not remove the label
        wanted[STATE_LABEL] = record.state.value
    meta, story = labelled.metadata, _fitting(_story(record, now))
    labels = {name: text for name, text in wanted.items() if meta.labels.get(name) != text}
    changed = labels or story_of(meta).worth_writing != story.worth_writing
    return metadata_patch(meta, labels, _written(story)) if changed else {}


def interruption_label(record: InstanceRecord, now: datetime) -> str:
    found = {_value(kind, notice) for kind, notice in open_interruptions(record)}
    effects = (effect_of(planned.notice.code) for planned in open_planned(record, now))
    return most_severe(found | {effect.value for effect in effects if effect is not None})


def most_severe(values: Collection[str]) -> str:
    return next((value for value in _SEVERITY if value in values), "")


def _value(kind: EventKind, notice: Interruption) -> str:
    if kind is EventKind.SPOT:
        return f"spot-{notice.action}"
    return "capacity-reservation" if kind is EventKind.CAPACITY_RESERVATION else "rebalance"


def metadata_patch(meta: ObjectMeta, labels: Mapping[str, str | None], story: str) -> JsonPatch:
    uid = {"uid": meta.uid} if meta.uid else {}
    changed = {"labels": dict(labels)} if labels else {}
    return {"metadata": {**uid, **changed, "annotations": {EVENTS_ANNOTATION: story}}}


def story_of(meta: ObjectMeta) -> Story:
    """Empty if the annotation is absent or invalid."""
    try:
        story = Story.model_validate_json(meta.annotations.get(EVENTS_ANNOTATION, "{}"))
    except ValidationError:
        return Story()
    return story if all(map(reckonable, _times(story.model_dump()))) else Story()


def _times(value: object) -> Iterator[datetime]:
    if isinstance(value, datetime):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _times(each)


def recalled(record: InstanceRecord, meta: ObjectMeta) -> InstanceRecord:
    """The record of a new lifecycle, completed from the object's labels and annotation."""
    story = story_of(meta)
    return record.model_copy(
        update={
            "interruptions": {**story.interruptions, **record.interruptions},
            "drain": record.drain or (story.cordoned and story.cordoned.model_copy(update={"recalled": True})),
            # People can edit the annotation, so AWS is asked again.
            "hooks": {**{token: _as_received(held) for token, held in story.hooks.items()}, **record.hooks},
            "standing": _later(record.standing, _recorded_standing(story, meta)),
        }
    )


def _recorded_standing(story: Story, meta: ObjectMeta) -> LastState | None:
    """The label's state. Its time is that of the last event of any kind, because the annotation lacks the state's time.
    This does no harm: a new lifecycle asks EC2 about the state.
    """
    value = meta.labels.get(STATE_LABEL, "")
    if story.last is None or value not in set(InstanceState):
        return None
    return LastState(state=InstanceState(value), time=story.last.time)


def _later(received: LastState | None, recorded: LastState | None) -> LastState | None:
    """The later of the two states. A late event does not replace a final state in the label."""
    if received is None or recorded is None:
        return received or recorded
    if received.asked or received.state.final:
        return received
    return recorded if recorded.state.final or recorded.time > received.time else received


def _story(record: InstanceRecord, now: datetime) -> Story:
    return Story(
        account=record.key.account,
        last=record.last,
        deadline=nearest_end(record, now),
        interruptions=dict(open_interruptions(record)),
        cordoned=record.drain and record.drain.model_copy(update={"recalled": False}),
        hooks=_waiting(record, now),
    )


def _waiting(record: InstanceRecord, now: datetime) -> dict[str, HeldHook]:
    """The open lifecycle actions, without their heartbeats, which change often."""
    if record.state is not None and record.state.final:
        return {}
    return {held.action.token: _as_received(held) for held in record.waiting_hooks(now)}


def _as_received(held: HeldHook) -> HeldHook:
    return held.model_copy(update={"heartbeat_at": None, "confirmed": False})


def _fitting(story: Story) -> Story:
    """The annotation's content, shortened to the length limit. The oldest lifecycle actions are dropped, because they
    end first.
    """
    while len(_written(story).encode()) > LONGEST_ANNOTATION:
        if not story.hooks:
            return Story()  # cannot happen while ids are bounded; the API server would refuse a longer annotation
        oldest = min(story.hooks.values(), key=lambda held: (held.time, held.key))
        hooks = {token: held for token, held in story.hooks.items() if held is not oldest}
        story = story.model_copy(update={"hooks": hooks})
    return story


def _written(story: Story) -> str:
    return story.model_dump_json(exclude_defaults=True)
