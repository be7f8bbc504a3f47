"""Whether a message is deleted, kept for later, or sent to the dead letters (docs/instances.md has the table).

A message is done once each of its events is recorded in its workflow and the resulting label is written; long reactions
run in the workflow, not within SQS's visibility timeout. The worst outcome of its events decides. `unmatched_events.py`
says how long a message of an unknown instance is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from domain.instances.event_handover import Handled, Outcome, worst
from domain.instances.event_parser import Parsed
from domain.instances.message_unwrapping import Ignored, Invalid
from domain.instances.unmatched_events import counted, unmatched_delay, waits_for_machine
from domain.model import Model

_LONGEST_DELAY = timedelta(seconds=900)


class Verdict(StrEnum):
    DELETE = "delete"
    KEEP = "keep"
    DEAD_LETTER = "dead-letter"


class Acknowledgement(Model):
    """What is done with a message. A kept message is hidden for `delay`. `reason` is for the log or the dead letter.

    `counts` has the outcome of each event, and the reasons of ignored parts.
    """

    verdict: Verdict
    reason: str
    delay: timedelta = timedelta(0)
    counts: tuple[str, ...] = ()


def acknowledge(parsed: Parsed, handled: Sequence[Handled], receives: int, now: datetime) -> Acknowledgement:
    if isinstance(parsed, Invalid):
        return _dead(parsed.reason, ("invalid",))
    if isinstance(parsed, Ignored):
        return Acknowledgement(verdict=Verdict.DELETE, reason=parsed.reason, counts=(parsed.reason,))
    missing = {event.key for event in parsed.events} - {each.event.key for each in handled}
    if missing or any(each.outcome is Outcome.UNAVAILABLE for each in handled):
        return Acknowledgement(
            verdict=Verdict.KEEP, reason="unavailable", delay=back_off(receives), counts=("unavailable",)
        )
    waiting = [each for each in handled if waits_for_machine(each, now)]
    if waiting:
        delay = unmatched_delay(waiting, receives, now)
        return Acknowledgement(verdict=Verdict.KEEP, reason="unknown", delay=delay, counts=("unknown",))
    counts = (*parsed.ignored, *(counted(each) for each in handled))
    if parsed.invalid:
        return _dead(parsed.invalid[0], ("invalid", *counts))
    return Acknowledgement(verdict=Verdict.DELETE, reason=counted(worst(handled)), counts=counts)


def back_off(receives: int) -> timedelta:
    return min(timedelta(seconds=1 << min(max(receives, 1), 10)), _LONGEST_DELAY)


def _dead(reason: str, counts: tuple[str, ...]) -> Acknowledgement:
    return Acknowledgement(verdict=Verdict.DEAD_LETTER, reason=reason, counts=counts)
