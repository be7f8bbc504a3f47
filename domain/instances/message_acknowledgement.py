"""Whether a message is deleted, kept for later, or sent to the dead letters (docs/instances.md has the table).

A message is done once each of its events is recorded in its workflow and the resulting label is written; long reactions
run in the workflow, not within SQS's visibility timeout. The worst outcome of its events decides. A message of an
unknown instance is kept while its AWSMachine or Node may still appear. A message about a launch is kept, with growing
delays, while its lifecycle hook may still wait.

A dead letter is sent before the message is deleted; if sending fails, the message stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from domain.instances.event_delivery import Handled, Outcome
from domain.instances.event_parser import Ignored, Invalid, Parsed
from domain.instances.unmatched_events import unmatched_delay, waits_for_machine
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
    counts = (*parsed.ignored, *(_counted(each) for each in handled))
    if parsed.invalid:
        return _dead(parsed.invalid[0], ("invalid", *counts))
    return Acknowledgement(verdict=Verdict.DELETE, reason=_summary(handled), counts=counts)


def back_off(receives: int) -> timedelta:
    return min(timedelta(seconds=1 << min(max(receives, 1), 10)), _LONGEST_DELAY)


def dead_letter_attributes(reason: str, message_id: str, queue: str) -> dict[str, dict[str, str]]:
    texts = {"PERDURE_REASON": reason[:256], "PERDURE_MESSAGE_ID": message_id[:128], "PERDURE_QUEUE": queue}
    return {name: {"DataType": "String", "StringValue": text} for name, text in texts.items() if text}


def _dead(reason: str, counts: tuple[str, ...]) -> Acknowledgement:
    return Acknowledgement(verdict=Verdict.DEAD_LETTER, reason=reason, counts=counts)


def _counted(handled: Handled) -> str:
    return "unmatched" if handled.outcome is Outcome.UNKNOWN else handled.outcome.value


def _summary(handled: Sequence[Handled]) -> str:
    found = {_counted(each) for each in handled}
    order = ("unmatched", "applied", "foreign", "stale", "duplicate")
    return next((each for each in order if each in found), "nothing")
