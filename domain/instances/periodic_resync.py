"""Lost events, derived from EC2's answers: no event about Spot, Auto Scaling or state is guaranteed to arrive.

EC2's states are recorded directly (`ec2_answers.answered`). Its scheduled events become the events that Health would
have sent, so that a workflow without memory knows of them. Such an event is withdrawn when EC2 no longer lists it. An
event that Health reported is withdrawn if EC2 lists it as completed or cancelled, if EC2 lists it for another date, or
if its date is past and EC2 does not list it. If its date is not past and EC2 does not list it, the event is
refuted (`reactions.py`), because anyone who may send to the queue can forge a notice.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from domain.instances.constants import INTERRUPTION_LABEL, STATE_LABEL
from domain.instances.event_record import InstanceRecord, Planned
from domain.instances.event_verification import HEALTH_LAG, Facts, Question, ScheduledEvent, asked_since
from domain.instances.events import EventKind, HealthNotice, InstanceEvent, InstanceState
from domain.instances.machine_labels import most_severe, story_of
from domain.instances.resources import AWSMachine, Node
from domain.instances.scheduled_event_types import Effect, effect_of

# How often EC2 is asked about all instances in bulk.
SWEEP_INTERVAL = timedelta(minutes=10)
_OURS = "ec2:"
# Health and EC2 round the dates of the same event differently.
_SAME_DATE = timedelta(hours=1)
_TYPES = {
    "instance-retirement": "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED",
    "instance-stop": "AWS_EC2_INSTANCE_STOP_SCHEDULED",
    "instance-reboot": "AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED",
    "system-reboot": "AWS_EC2_SYSTEM_REBOOT_MAINTENANCE_SCHEDULED",
    "system-maintenance": "AWS_EC2_INSTANCE_NETWORK_MAINTENANCE_SCHEDULED",
}


def differs(labelled: AWSMachine | Node, facts: Facts) -> bool:
    """Whether the instance's workflow has to be woken: EC2 contradicts the labels, or a lifecycle action is open."""
    labels = labelled.metadata.labels
    state = facts.state if facts.found and facts.state else InstanceState.TERMINATED
    shown = labels.get(INTERRUPTION_LABEL, "")
    story = story_of(labelled.metadata)
    if story.hooks and not state.final:
        return True  # the workflow that has to complete the lifecycle actions may be lost; waking restarts it
    return labels.get(STATE_LABEL) != state.value or _plan_differs(shown, story.deadline, facts)


def _plan_differs(labelled: str, deadline: datetime | None, facts: Facts) -> bool:
    """Whether the label shows a scheduled event that EC2 does not list near `deadline`, or EC2 lists a more severe
    event.
    """
    planned = [event for event in facts.scheduled if event.open and event.code in _TYPES]
    scheduled = labelled in set(Effect)
    shown = Effect(labelled).codes if scheduled else frozenset[str]()
    effects = (effect_of(_TYPES[event.code]) for event in planned if event.code not in shown)
    untold = {effect.value for effect in effects if effect is not None}
    if untold and most_severe({labelled, *untold}) != labelled:
        return True
    moved = deadline is not None and not any(_near(event.not_before, deadline) for event in planned)
    return scheduled and (not planned or moved)


def missed_events(record: InstanceRecord, facts: Facts) -> tuple[InstanceEvent, ...]:
    """The events that the record lacks: scheduled events that EC2 lists, and withdrawals of scheduled events that, by
    EC2's answer, are over or have another date.
    """
    if Question.STATUS not in facts.asked or not facts.found:
        return ()
    listed = {event.id: event for event in facts.scheduled if event.id and event.open and event.code in _TYPES}
    missed = [event for event in listed.values() if not (_known(record, event) or _reported_by_health(record, event))]
    lines = [_missed_event(record, event, facts.at) for event in missed]
    return (*lines, *_withdrawn(record, facts))


def _known(record: InstanceRecord, event: ScheduledEvent) -> bool:
    planned = record.planned.get(f"{_OURS}{event.id}")
    return planned is not None and _is_pending(record, planned) and planned.notice.start == event.not_before


def _reported_by_health(record: InstanceRecord, event: ScheduledEvent) -> bool:
    for name, planned in record.planned.items():
        effect, start = effect_of(planned.notice.code), planned.notice.start
        dated = start is None or event.not_before is None or _near(event.not_before, start)
        fits = effect is not None and event.code in effect.codes and dated
        refuted = planned.cause in record.refuted_causes
        if not (name.startswith(_OURS) or refuted) and _is_pending(record, planned) and fits:
            return True
    return False


def contradicted(record: InstanceRecord, facts: Facts | None) -> bool:
    """Whether Health has reported, after EC2's last answer, that an event listed by EC2 is over or has moved."""
    of_health = [each for name, each in record.planned.items() if not name.startswith(_OURS)]
    news = [each.notice for each in of_health if not asked_since(facts, Question.STATUS, each.received_at)]
    ours = (each for name, each in record.planned.items() if name.startswith(_OURS) and _is_pending(record, each))
    return any(
        effect_of(each.notice.code) is effect_of(new.code) and (new.over or not _near(new.start, each.notice.start))
        for each in ours
        for new in news
    )


def _is_pending(record: InstanceRecord, planned: Planned) -> bool:
    return not planned.notice.over and not record.restarted_after(planned.told_at)


def _missed_event(record: InstanceRecord, event: ScheduledEvent, at: datetime) -> InstanceEvent:
    notice = HealthNotice(
        code=_TYPES[event.code], arn=f"{_OURS}{event.id}", start=event.not_before, updated=at, status="upcoming"
    )
    return _event(record, f"resync-{event.id}-{int(at.timestamp())}", notice, at)


def _withdrawn(record: InstanceRecord, facts: Facts) -> Iterator[InstanceEvent]:
    listed = {event.id: event for event in facts.scheduled if event.open and event.code in _TYPES}
    for name, planned in sorted(record.planned.items()):
        id_ = name.removeprefix(_OURS)
        if not name.startswith(_OURS):
            over = _over_by_ec2(planned, facts)
        elif event := listed.get(id_):
            over = event.not_before != planned.notice.start and _reported_by_health(record, event)
        else:
            over = True
        if over and not planned.notice.over:
            notice = planned.notice.model_copy(update={"status": "closed", "updated": facts.at})
            yield _event(record, f"resync-{id_}-{int(facts.at.timestamp())}", notice, facts.at)


def _over_by_ec2(planned: Planned, facts: Facts) -> bool:
    """Whether, by EC2's answer, an event that Health reported is over or has another date."""
    notice, effect = planned.notice, effect_of(planned.notice.code)
    if effect is None:
        return False
    fitting = [event for event in facts.scheduled if event.code in effect.codes]
    if not fitting:
        known = facts.at - planned.received_at >= HEALTH_LAG
        return known and notice.start is not None and notice.start <= facts.at
    if to_come := [event for event in fitting if event.open]:
        dates = [event.not_before for event in to_come]
        return notice.start is not None and all(date is not None and not _near(date, notice.start) for date in dates)
    return any(_near(event.not_before, notice.start) for event in fitting)


def _near(one: datetime | None, other: datetime | None) -> bool:
    return one is not None and other is not None and abs(one - other) < _SAME_DATE


def _event(record: InstanceRecord, event_id: str, notice: HealthNotice, at: datetime) -> InstanceEvent:
    return InstanceEvent(
        event_id=event_id,
        kind=EventKind.HEALTH_SCHEDULED,
        account=record.key.account,
        region=record.key.region,
        instance_id=record.key.instance_id,
        time=at,
        received_at=at,
        health=notice,
    )
