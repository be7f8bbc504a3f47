"""Events of an unknown instance: how long they wait for its AWSMachine or Node before they count as unmatched.

Urgent events always wait, others only while some AWSMachine has no instance yet. A launch's hook waits two hours,
other events ten minutes. Meanwhile the message is hidden: at first for 15 seconds, later for at least 30 at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from domain.instances.event_handover import Handled, Outcome
from domain.instances.events import EventKind

UNMATCHED_AFTER = timedelta(minutes=10)
# The longest timeout of a lifecycle hook. A hook without heartbeats, such as an unknown instance's, ends by then.
_LONGEST_HOOK_TIMEOUT = timedelta(hours=2)
# Events may arrive before their instance's id is in the AWSMachine.
_FIRST_DELAY, _LATER_DELAY = timedelta(seconds=15), timedelta(seconds=30)


def waits_for_machine(handled: Handled, now: datetime) -> bool:
    event = handled.event
    longest = _LONGEST_HOOK_TIMEOUT if event.kind is EventKind.LAUNCHING else UNMATCHED_AFTER
    young = now - event.received_at < longest
    return handled.outcome is Outcome.UNKNOWN and young and (handled.may_appear or event.urgent)


def unmatched_delay(waiting: Sequence[Handled], receives: int, now: datetime) -> timedelta:
    """How long to hide the message. `receives` is how often it has been received, including now."""
    return _FIRST_DELAY if receives <= 1 else max(_LATER_DELAY, *(_by_age(each, now) for each in waiting))


def _by_age(handled: Handled, now: datetime) -> timedelta:
    """The least delay: zero for an event's first ten minutes, then a quarter of its age. Longer delays mean fewer
    receipts: after fifty receipts, SQS makes the message a dead letter.
    """
    age = now - handled.event.received_at
    return age / 4 if age >= UNMATCHED_AFTER else timedelta(0)


def counted(handled: Handled) -> str:
    return "unmatched" if handled.outcome is Outcome.UNKNOWN else handled.outcome.value
