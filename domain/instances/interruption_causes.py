"""The causes of reactions to an instance: Spot notices, scheduled events, its own stop or end.

A Spot notice is a cause until EC2 reports that the instance still runs ten minutes after the deadline. A stop or end is
a cause until EC2 reports that the instance runs. For scheduled events see `scheduled_event_timing.py`.

A cause's name is the same for every copy of its event.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from domain.decision import earliest
from domain.instances.event_record import STOPPED, InstanceRecord, Interruption
from domain.instances.event_verification import STOPPED_STATES, Facts, Verdict, verify_end, verify_spot, verify_stop
from domain.instances.events import EventKind, InstanceState
from domain.instances.interruption_policy import Reaction, ReactionPolicy
from domain.instances.scheduled_event_timing import begins_at, open_planned, verdict_of
from domain.instances.scheduled_event_types import effect_of, expedited
from domain.model import Model

# The time for reactions on a Node whose instance stops; afterwards Pods cannot end gracefully.
_WHILE_STOPPING = timedelta(minutes=10)
ENDED = "ended"
# Causes from the instance's state: an answer of EC2 that contradicts the state removes them.
OF_STATES = (ENDED, STOPPED)


class Cause(Model):
    name: str
    reaction: Reaction
    claimed_at: datetime  # when its event was received
    from_: datetime  # from when on Perdure reacts to it
    deadline: datetime | None  # until when there is time to act; None for no limit
    ends: bool  # whether the instance does not come back by itself afterwards
    verdict: Verdict
    taken: bool = False  # whether AWS reclaims the instance right now, or has reclaimed it
    sort: str
    replaces_for: timedelta | None = None  # how long it waits for the Machine's replacement; None if it does not wait

    @property
    def wanted(self) -> bool:
        return self.reaction is not Reaction.LABEL


def taken_now(
    sort: str,
    name: str,
    reaction: Reaction,
    since: datetime,
    verdict: Verdict,
    deadline: datetime | None = None,
    replaces_for: timedelta | None = None,
) -> Cause:
    """A cause by which AWS reclaims the instance right now, or has reclaimed it."""
    return Cause(
        name=name,
        reaction=reaction,
        claimed_at=since,
        from_=since,
        deadline=deadline,
        ends=True,
        verdict=verdict,
        taken=True,
        sort=sort,
        replaces_for=replaces_for,
    )


def causes(
    record: InstanceRecord, policy: ReactionPolicy, facts: Facts | None, now: datetime, *, absence_counts: bool
) -> tuple[Cause, ...]:
    """The causes of reactions, the earliest first. `absence_counts`: whether an instance that EC2 does not know counts
    as ended.
    """
    found = [*_spot(record, policy, facts, now), *_scheduled(record, policy, facts, now)]
    last = record.standing
    if last is not None and last.state.final:
        verdict = verify_end(facts, last.time, now, absence_counts=absence_counts)
        found.append(taken_now(ENDED, ENDED, policy.terminated, last.time, verdict))
    if last is not None and last.state in STOPPED_STATES and policy.stopped is not Reaction.LABEL:
        verdict = verify_stop(facts, last.time, now)
        found.append(taken_now(STOPPED, STOPPED, policy.stopped, last.time, verdict, last.time + _WHILE_STOPPING))
    return tuple(sorted(found, key=lambda cause: (cause.from_, cause.deadline or cause.from_, cause.name)))


def nearest_end(record: InstanceRecord, now: datetime) -> datetime | None:
    """When AWS next acts on the instance, according to notices and scheduled events; None if no time is known."""
    starts = (planned.notice.start for planned in open_planned(record, now))
    return earliest([*(notice.deadline for notice in announced(record)), *starts])


def open_interruptions(record: InstanceRecord) -> Iterator[tuple[EventKind, Interruption]]:
    for kind, notice in sorted(record.interruptions.items()):
        if notice.key not in record.refuted_causes and not _past(record, kind, notice):
            yield kind, notice


def announced(record: InstanceRecord) -> list[Interruption]:
    """The open notices of an interruption. Recommendations to rebalance do not count."""
    return [notice for kind, notice in open_interruptions(record) if kind is not EventKind.REBALANCE]


def _past(record: InstanceRecord, kind: EventKind, notice: Interruption) -> bool:
    if kind is EventKind.REBALANCE:
        started = record.started_at is not None and record.started_at >= notice.outlived_at
        return started or record.restarted_after(notice.time)
    # Only EC2's answer counts: anyone who may send to the queue can forge a stop and a start.
    standing = record.standing
    return (
        standing is not None
        and standing.asked
        and standing.state is InstanceState.RUNNING
        and standing.time >= notice.outlived_at
    )


def _spot(record: InstanceRecord, policy: ReactionPolicy, facts: Facts | None, now: datetime) -> Iterator[Cause]:
    for kind, notice in open_interruptions(record):
        if kind is EventKind.SPOT:
            reaction, verdict = policy.for_spot(notice.action), verify_spot(facts, notice.received_at, now)
            waits = policy.replace_first.get("spot")
            yield taken_now("spot", notice.key, reaction, notice.received_at, verdict, notice.deadline, waits)


def _scheduled(record: InstanceRecord, policy: ReactionPolicy, facts: Facts | None, now: datetime) -> Iterator[Cause]:
    for planned in open_planned(record, now):
        notice, effect = planned.notice, effect_of(planned.notice.code)
        if effect is None or (notice.start is None and not expedited(notice.code)):
            # An event with an unreadable date is shown, but causes no reaction.
            continue
        yield Cause(
            name=planned.cause,
            reaction=policy.for_effect(effect),
            claimed_at=planned.received_at,
            from_=begins_at(notice, policy.maintenance_lead, planned.received_at),
            deadline=notice.start,
            ends=effect.ends,
            verdict=verdict_of(planned, effect, facts, now),
            sort="scheduled",
            replaces_for=policy.replaces_for(effect),
        )
