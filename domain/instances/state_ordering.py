"""Which of two states is the later one, when events come late, twice and in any order.

Times are whole seconds. Of two non-final states within one second the state with the higher rank is the later one; a
start and a stop within one second cannot be ordered. `shutting-down` and `terminated` are final, because instance ids
are never reused: they count whatever their time, and a later event of another state contradicts them. EC2 is asked
about contradictions and about events that cannot be ordered. Its answer counts from the moment of the question.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from domain.instances.events import InstanceEvent, InstanceState
from domain.model import Model

# EC2's answer may lag this much behind an event (EC2 is eventually consistent, and events have whole seconds).
_ANSWERS_LAG = timedelta(seconds=10)


class LastState(Model):
    """An instance's state at `time`, from an event or, if `asked`, from EC2's answer."""

    state: InstanceState
    time: datetime
    asked: bool = False


class Placing(StrEnum):
    """Whether an event's state becomes the current state, and whether EC2 is asked about it."""

    APPLIED = "applied"  # EC2 is asked soon
    APPLIED_IN_DOUBT = "applied in doubt"  # EC2 is asked now
    PASSED_OVER = "passed over"  # not applied, and EC2 is not asked
    DOUBTFUL = "doubtful"  # not applied, and EC2 is asked now

    @property
    def applies(self) -> bool:
        return self in (Placing.APPLIED, Placing.APPLIED_IN_DOUBT)


def place(last: LastState | None, event: InstanceEvent, state: InstanceState) -> Placing:
    if not event.timely and not state.final:
        # SQS's time is later than the event's by an unknown amount, so an old state would pass for a new one.
        return Placing.DOUBTFUL if last is None or last.state is not state else Placing.PASSED_OVER
    if last is None:
        return Placing.APPLIED
    if last.state.final:
        return _after_final(last, state, event.time)
    if last.asked:
        return _after_answer(last, state, event.time)
    return _after_event(last, state, event.time)


def _after_final(last: LastState, state: InstanceState, time: datetime) -> Placing:
    if state.final:
        later = (state.rank, time) > (last.state.rank, last.time)
        return Placing.APPLIED if later and not (last.asked and state is last.state) else Placing.PASSED_OVER
    return Placing.DOUBTFUL if time > last.time else Placing.PASSED_OVER


def _after_answer(last: LastState, state: InstanceState, time: datetime) -> Placing:
    answered_at = last.time.replace(microsecond=0)
    if time > answered_at:
        return Placing.APPLIED
    if state is last.state:
        return Placing.PASSED_OVER
    if state.final:
        # EC2 has contradicted the event since. It is asked again, because the event may still be true.
        return Placing.DOUBTFUL
    return Placing.DOUBTFUL if answered_at - time <= _ANSWERS_LAG else Placing.PASSED_OVER


def _after_event(last: LastState, state: InstanceState, time: datetime) -> Placing:
    if state.final:
        return Placing.APPLIED if time >= last.time else Placing.APPLIED_IN_DOUBT
    later = (time, state.rank) > (last.time, last.state.rank)
    if time == last.time and state.up is not last.state.up:
        return Placing.APPLIED_IN_DOUBT if later else Placing.DOUBTFUL
    return Placing.APPLIED if later else Placing.PASSED_OVER
