"""Whether AWS confirms an event, before an irreversible reaction to it.

Anyone who may send to the queue could forge an event, so EC2 and Auto Scaling are asked:

| event | confirmed by |
|---|---|
| terminated, shutting-down | the instance is in a final state, or unknown to EC2 in its own account |
| stopping, stopped | the instance is stopping or stopped |
| Spot interruption | its Spot request has a code of an announced or past interruption, or the Spot instance has ended |
| scheduled event | an open event with a matching code in DescribeInstanceStatus |
| lifecycle action | the instance waits in that group: `Terminating:Wait`, `Pending:Wait` |

An answer counts if AWS was asked after the event and within the last minute. AWS's APIs may lag behind its events, so
an event is refuted only after a while.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from domain.instances.events import HookAction, InstanceState
from domain.instances.scheduled_event_types import Effect
from domain.model import Model

ASK_AGAIN = timedelta(seconds=10)
STOPPED_STATES = (InstanceState.STOPPING, InstanceState.STOPPED)
# How long an answer of EC2 justifies irreversible reactions.
_FACTS_LAST = timedelta(seconds=60)
# How long AWS's APIs may lag behind an event.
_APIS_LAG = timedelta(seconds=60)
HEALTH_LAG = timedelta(minutes=15)
# An expedited event is acted upon at once, so its date has to be near.
_EXPEDITED = timedelta(days=7)
# Status codes of Spot requests whose instance is about to be interrupted, or has been interrupted, begin with these.
_INTERRUPTED = ("marked-for-", "instance-terminated-", "instance-stopped-")
# DescribeInstanceStatus still lists events that are over, with these words before their description.
_OVER = ("[Completed]", "[Canceled]")


class Question(StrEnum):
    """A question to AWS. Each question costs a call of its own, except TAGS."""

    INSTANCE = "instance"  # DescribeInstances
    SPOT = "spot"  # DescribeSpotInstanceRequests
    STATUS = "status"  # DescribeInstanceStatus
    GROUP = "group"  # DescribeAutoScalingInstances
    TAGS = "tags"  # read from DescribeInstances' answer


class ScheduledEvent(Model):
    id: str = ""
    code: str
    not_before: datetime | None = None
    description: str = ""

    @property
    def open(self) -> bool:
        return not self.description.startswith(_OVER)


class Facts(Model):
    at: datetime
    asked: tuple[Question, ...]  # the questions that were asked; fields that answer other questions mean nothing
    found: bool = True
    state: InstanceState | None = None
    spot: bool = False
    spot_code: str = ""  # the status code of its Spot request
    scheduled: tuple[ScheduledEvent, ...] = ()
    group: str = ""
    lifecycle: str = ""  # the instance's lifecycle state in the group, as Auto Scaling names it
    # The requested tags, with None for a tag that the instance lacks; None if no tags were requested.
    tags: dict[str, str | None] | None = None

    @property
    def gone(self) -> bool:
        return not self.found or (self.state is not None and self.state.final)


class Verdict(StrEnum):
    """Whether AWS confirms an event. Only CONFIRMED allows an irreversible reaction."""

    CONFIRMED = "confirmed"
    UNASKED = "unasked"  # AWS was not asked after the event, or its answer is too old
    NOT_YET = "not yet"  # AWS does not confirm the event, but its APIs may lag behind its events
    REFUTED = "refuted"


def verify_end(facts: Facts | None, claimed_at: datetime, now: datetime, *, absence_counts: bool) -> Verdict:
    known = _answer(facts, claimed_at, now, Question.INSTANCE)
    if known is None:
        return Verdict.UNASKED
    ended = known.gone if known.found else absence_counts
    return Verdict.CONFIRMED if ended else _late(known, claimed_at, _APIS_LAG)


def verify_stop(facts: Facts | None, claimed_at: datetime, now: datetime) -> Verdict:
    known = _answer(facts, claimed_at, now, Question.INSTANCE)
    if known is None:
        return Verdict.UNASKED
    return Verdict.CONFIRMED if known.state in STOPPED_STATES else _late(known, claimed_at, _APIS_LAG)


def verify_spot(facts: Facts | None, claimed_at: datetime, now: datetime) -> Verdict:
    known = _answer(facts, claimed_at, now, Question.INSTANCE, Question.SPOT)
    if known is None:
        return Verdict.UNASKED
    if not known.found or not known.spot:
        return Verdict.REFUTED
    if known.gone or known.spot_code.startswith(_INTERRUPTED):
        return Verdict.CONFIRMED
    return _late(known, claimed_at, _APIS_LAG)


def verify_scheduled(
    effect: Effect, facts: Facts | None, claimed_at: datetime, now: datetime, *, expedited: bool = False
) -> Verdict:
    known = _answer(facts, claimed_at, now, Question.STATUS)
    if known is None:
        return Verdict.UNASKED
    if not known.found:
        return Verdict.REFUTED
    listed = (event for event in known.scheduled if event.open and event.code in effect.codes)
    if any(not expedited or event.not_before is None or event.not_before - now < _EXPEDITED for event in listed):
        return Verdict.CONFIRMED
    return _late(known, claimed_at, HEALTH_LAG)


def verify_hook(action: HookAction, group: str, facts: Facts | None, claimed_at: datetime, now: datetime) -> Verdict:
    known = _answer(facts, claimed_at, now, Question.GROUP)
    if known is None:
        return Verdict.UNASKED
    return Verdict.CONFIRMED if holds(action, group, known) else _late(known, claimed_at, _APIS_LAG)


def holds(action: HookAction, group: str, facts: Facts) -> bool:
    state = facts.lifecycle.removeprefix("Warmed:")
    waiting = "Pending:Wait" if action.transition == "launching" else "Terminating:Wait"
    # AWS does not document in which wait state an instance returns to its warm pool.
    waits = state.endswith(":Wait") if action.returns_to_warm_pool else state == waiting
    return facts.group == group and waits


def asked_since(facts: Facts | None, question: Question, moment: datetime) -> bool:
    return facts is not None and question in facts.asked and facts.at >= moment


def askable(facts: Facts | None, question: Question, claimed_at: datetime, now: datetime) -> bool:
    """Whether AWS may be asked the question now: at once after the event to verify (received at `claimed_at`), then
    every ten seconds.
    """
    if facts is None or question not in facts.asked or now - facts.at >= ASK_AGAIN:
        return True
    # Without `<= now`, an event with a future time, from a clock ahead of ours, would be asked about without a pause.
    return facts.at < claimed_at <= now


def may_be_late(facts: Facts, claimed_at: datetime) -> bool:
    """Whether AWS was asked so soon after the event that its APIs may not have shown the effect yet."""
    return facts.at - claimed_at < _APIS_LAG


def _answer(facts: Facts | None, claimed_at: datetime, now: datetime, *questions: Question) -> Facts | None:
    if facts is None or facts.at < claimed_at or now - facts.at > _FACTS_LAST:
        return None
    return facts if set(questions) <= set(facts.asked) else None


def _late(facts: Facts, claimed_at: datetime, lag: timedelta) -> Verdict:
    return Verdict.NOT_YET if facts.at - claimed_at < lag else Verdict.REFUTED
