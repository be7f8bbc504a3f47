"""When the reaction to a scheduled event begins and ends.

The reaction begins 24 hours (`maintenance_lead`) before the event's date, or at once if the event is expedited. The
reaction ends when the event is withdrawn or resolved, or when the time of a reboot or maintenance is over. An event
whose date changes becomes another cause.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from domain.instances.event_record import InstanceRecord, Planned
from domain.instances.event_verification import Facts, Verdict, verify_scheduled
from domain.instances.events import HealthNotice
from domain.instances.scheduled_event_types import Effect, effect_of, expedited

# A scheduled event counts as over after this time, unless its notice has an end that is later than its start.
_LONGEST_WINDOW = timedelta(hours=24)


def begins_at(notice: HealthNotice, lead: timedelta, received_at: datetime) -> datetime:
    """When reactions begin: `lead` before the date, but not before the event was received."""
    if expedited(notice.code) or notice.start is None:
        return received_at
    return max(notice.start - lead, received_at)


def open_planned(record: InstanceRecord, now: datetime) -> Iterator[Planned]:
    """The scheduled events that are neither over nor refuted.

    An instance that is stopped and started moves to other hardware. Earlier notices no longer apply, unless they are
    repeated.
    """
    for _, planned in sorted(record.planned.items()):
        end = end_of(planned)
        over = planned.notice.over or (end is not None and end <= now) or record.restarted_after(planned.told_at)
        if not over and planned.cause not in record.refuted_causes:
            yield planned


def unlisted_plans(record: InstanceRecord, facts: Facts | None, now: datetime) -> tuple[str, ...]:
    """The scheduled events, by their names as causes, that EC2 does not list although their notices are at least a
    quarter of an hour old.
    """
    return tuple(
        planned.cause
        for planned in open_planned(record, now)
        if (effect := effect_of(planned.notice.code)) and verdict_of(planned, effect, facts, now) is Verdict.REFUTED
    )


def verdict_of(planned: Planned, effect: Effect, facts: Facts | None, now: datetime) -> Verdict:
    return verify_scheduled(effect, facts, planned.received_at, now, expedited=expedited(planned.notice.code))


def end_of(planned: Planned) -> datetime | None:
    """When the event is past; None if only AWS or a restart ends it. AWS may be days late in ending an instance."""
    start, end, effect = planned.notice.start, planned.notice.end, effect_of(planned.notice.code)
    if effect is not None and effect.ends:
        return None
    return end if start is None or (end is not None and end > start) else start + _LONGEST_WINDOW
