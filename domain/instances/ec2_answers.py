"""EC2's answer about an instance overrides all events from before the question.

EC2 may not know a new instance for a while. So the instance counts as absent only after EC2 has not found it three
times in a row, about a minute apart; after an event that reports its end, once is enough.
"""

from __future__ import annotations

from datetime import timedelta

from domain.instances.event_record import ASK_AFTER, STOPPED, InstanceRecord, of_stop
from domain.instances.event_verification import ASK_AGAIN, Facts, may_be_late
from domain.instances.events import InstanceState
from domain.instances.state_ordering import LastState

_MOST_MISSES = 3
_AFTER_MISS = timedelta(seconds=60)


def answered(record: InstanceRecord, facts: Facts, *, absence_counts: bool = True) -> InstanceRecord:
    """`absence_counts`: whether an instance that EC2 does not know counts as ended (`InstanceWorld.absence_counts`)."""
    standing = record.standing
    if standing is not None and standing.asked and standing.time > facts.at:
        # EC2 has given a newer answer: a sweep over many instances delivers its answers late.
        return record
    if not facts.found or facts.state is None:
        return _denied(record, facts, absence_counts=absence_counts or record.found)
    record = record.model_copy(update={"found": True})
    if standing is not None and not standing.asked and standing.time > facts.at:
        # The event came while EC2 was being asked (or from a clock ahead of ours): ask again after the event's time.
        return record.model_copy(update={"ask_at": standing.time + ASK_AFTER, "misses": 0, "only_to_check": False})
    denied = standing is not None and not standing.asked and standing.state.final and not facts.state.final
    changes: dict[str, object] = {
        "standing": LastState(state=facts.state, time=facts.at, asked=True),
        "ask_at": None,
        "only_to_check": False,
        "misses": 0,
        "refuted": record.refuted + denied,
    }
    if facts.state.up:  # so that the next stop is reported again
        changes["notified"] = tuple(each for each in record.notified if not of_stop(each))
        changes["impossible"] = tuple(each for each in record.impossible if each != STOPPED)
    return record.model_copy(update=changes)


def _denied(record: InstanceRecord, facts: Facts, *, absence_counts: bool) -> InstanceRecord:
    standing, at = record.standing, facts.at
    if standing is not None and standing.state.final:
        if not absence_counts:
            if may_be_late(facts, standing.time):
                return record.model_copy(update={"ask_at": at + ASK_AGAIN, "only_to_check": False})
            forgotten = {"standing": None, "ask_at": None, "only_to_check": False, "refuted": record.refuted + 1}
            return record.model_copy(update=forgotten)
        gone = LastState(state=InstanceState.TERMINATED, time=max(at, standing.time), asked=True)
        return record.model_copy(update={"standing": gone, "ask_at": None, "misses": 0})
    misses = record.misses + 1
    again = at + _AFTER_MISS if misses < _MOST_MISSES else None
    return record.model_copy(update={"misses": misses, "ask_at": again, "only_to_check": False})


def is_absent(record: InstanceRecord) -> bool:
    return record.misses >= _MOST_MISSES
