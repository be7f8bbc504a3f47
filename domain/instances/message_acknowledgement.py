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

from domain.instances.constants import LONGEST_HOOK_TIMEOUT, UNMATCHED_AFTER
from domain.instances.event_delivery import Handled, Outcome, worst
from domain.instances.event_parser import Parsed
from domain.instances.events import EventKind
from domain.instances.message_unwrapping import Ignored, Invalid
from domain.model import Model

_LONGEST_DELAY = timedelta(seconds=900)
# The delays of events of an unknown instance: they may arrive before its id is in the AWSMachine.
_FIRST_DELAY, _LATER_DELAY = timedelta(seconds=15), timedelta(seconds=30)


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
    waiting = [each for each in handled if _waits_for_machine(each, now)]
    if waiting:
        delay = _unmatched_delay(waiting, receives, now)
        return Acknowledgement(verdict=Verdict.KEEP, reason="unknown", delay=delay, counts=("unknown",))
    counts = (*parsed.ignored, *(_counted(each) for each in handled))
    if parsed.invalid:
        return _dead(parsed.invalid[0], ("invalid", *counts))
    return Acknowledgement(verdict=Verdict.DELETE, reason=_counted(worst(handled)), counts=counts)


def _waits_for_machine(handled: Handled, now: datetime) -> bool:
    """Whether to keep the event of an unknown instance, because it is urgent or an AWSMachine has no instance yet. An
    event of a launch's hook is kept for two hours, other events for ten minutes.
    """
    event = handled.event
    longest = LONGEST_HOOK_TIMEOUT if event.kind is EventKind.LAUNCHING else UNMATCHED_AFTER
    young = now - event.received_at < longest
    return handled.outcome is Outcome.UNKNOWN and young and (handled.may_appear or event.urgent)


def _unmatched_delay(waiting: Sequence[Handled], receives: int, now: datetime) -> timedelta:
    """How long to hide the message; `receives` includes this time."""
    return _FIRST_DELAY if receives <= 1 else max(_LATER_DELAY, *(_by_age(each, now) for each in waiting))


def _by_age(handled: Handled, now: datetime) -> timedelta:
    """A quarter of the event's age once it is ten minutes old, zero before. SQS counts each receipt, and after the
    fiftieth the message becomes a dead letter.
    """
    age = now - handled.event.received_at
    return age / 4 if age >= UNMATCHED_AFTER else timedelta(0)


def back_off(receives: int) -> timedelta:
    return min(timedelta(seconds=1 << min(max(receives, 1), 10)), _LONGEST_DELAY)


def dead_letter_attributes(reason: str, message_id: str, queue: str) -> dict[str, dict[str, str]]:
    texts = {"PERDURE_REASON": reason[:256], "PERDURE_MESSAGE_ID": message_id[:128], "PERDURE_QUEUE": queue}
    return {name: {"DataType": "String", "StringValue": text} for name, text in texts.items() if text}


def _dead(reason: str, counts: tuple[str, ...]) -> Acknowledgement:
    return Acknowledgement(verdict=Verdict.DEAD_LETTER, reason=reason, counts=counts)


def _counted(handled: Handled) -> str:
    return "unmatched" if handled.outcome is Outcome.UNKNOWN else handled.outcome.value
