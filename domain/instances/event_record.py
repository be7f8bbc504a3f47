"""An instance as its events show it: the memory that its workflow carries from run to run.

Events may arrive in any order and more than once: the record is the same for every order. `state_ordering.py` decides
which state counts. If several messages report the same notice or scheduled event, usually the latest counts, by AWS's
time. If several report the same lifecycle action, the earliest counts.

Every collection is bounded. Nothing is lost with the workflow: states and scheduled events can be read from AWS again;
notices and the tokens of lifecycle actions are in the object's annotation.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from domain.instances.event_handover import Outcome
from domain.instances.event_routing import instance_of
from domain.instances.event_verification import STOPPED_STATES, Facts, Question, asked_since, holds
from domain.instances.events import EventKind, HealthNotice, HookAction, InstanceEvent, InstanceState
from domain.instances.hook_timeouts import LONGEST_HOOK
from domain.instances.interruption_policy import Reaction
from domain.instances.state_ordering import LastState, Placing, place
from domain.instances.workflow_ids import InstanceKey
from domain.model import Model

# AWS gives a Spot instance two minutes after the warning, and may reclaim it some minutes later than announced.
_SPOT_LEAD = timedelta(minutes=2)
_SPOT_OUTLIVED = timedelta(minutes=10)
# The wait before EC2 is asked about a change that an event reported.
ASK_AFTER = timedelta(seconds=30)
# The name of the cause if the instance stops. It is the same for each stop.
STOPPED = "stopped"
_REMEMBERED_KEYS = 256
_MOST_NOTICES = 16


class Interruption(Model):
    """A Spot notice, a notice of a capacity reservation, or a recommendation to rebalance."""

    key: str
    action: str = ""
    time: datetime
    received_at: datetime

    @property
    def deadline(self) -> datetime:
        """When AWS may act: two minutes after the notice. AWS promises this time for Spot instances only."""
        return self.time + _SPOT_LEAD

    @property
    def lasts(self) -> bool:
        """Whether the instance runs until the deadline. A hibernation begins at once, before the deadline."""
        return self.action != "hibernate"

    def says_as_much_as(self, other: Interruption) -> bool:
        return (self.time, self.action) == (other.time, other.action)

    @property
    def outlived_at(self) -> datetime:
        """If the instance still runs at this time, AWS is no longer considered to be reclaiming it."""
        return self.deadline + _SPOT_OUTLIVED


class Planned(Model):
    key: str
    told_at: datetime
    received_at: datetime
    notice: HealthNotice

    @property
    def cause(self) -> str:
        """The scheduled event's name as a cause. It includes the date."""
        start = self.notice.start
        return f"{self.notice.arn or self.key}@{int(start.timestamp()) if start else 'now'}"


class HeldHook(Model):
    key: str
    group: str
    action: HookAction
    time: datetime
    received_at: datetime
    confirmed: bool = False  # whether Auto Scaling has confirmed that the instance waits for this action
    heartbeat_at: datetime | None = None
    ended_at: datetime | None = None  # when it was completed, or when AWS did not confirm that the instance waits


class Drain(Model):
    """A taint, cordon or drain of the Node because of `cause`. It is complete once `done_at` is set.

    `recalled`: it is known only from the object's annotation. That proves nothing, because people can edit annotations.
    """

    cause: str
    node: str
    done_at: datetime | None = None
    recalled: bool = False
    reaction: Reaction = Reaction.DRAIN

    def covers(self, reaction: Reaction) -> bool:
        return self.done_at is not None and self.reaction.strength >= reaction.strength


class LastEvent(Model):
    key: str
    kind: EventKind
    time: datetime


class InstanceRecord(Model):
    key: InstanceKey
    opened_at: datetime  # when the first event was received
    heard_at: datetime  # when the last event was received
    standing: LastState | None = None
    ask_at: datetime | None = None  # when EC2 is to be asked; None if there is no reason to
    only_to_check: bool = False  # whether EC2 is asked only to confirm a change that an event reported
    found: bool = False  # whether EC2 has ever found the instance in this account and region
    misses: int = 0  # how many times in a row EC2 did not find the instance
    started_at: datetime | None = None  # the latest reported start
    stopped_at: tuple[datetime, ...] = ()  # the latest reported stops, sorted
    interruptions: dict[EventKind, Interruption] = {}
    planned: dict[str, Planned] = {}  # scheduled events by Health's ARN
    hooks: dict[str, HeldHook] = {}  # lifecycle actions by token
    launched_at: datetime | None = None  # the latest reported end of a launch
    drain: Drain | None = None
    last: LastEvent | None = None
    refuted: int = 0  # how many events AWS did not confirm
    refuted_causes: tuple[str, ...] = ()  # the latest causes that AWS did not confirm
    impossible: tuple[str, ...] = ()  # causes whose reaction was reported as impossible
    seen: tuple[str, ...] = ()  # the keys of the latest events that the record includes
    notified: tuple[str, ...] = ()  # notifications that were sent or given up, each as CHANNEL/CAUSE

    @property
    def state(self) -> InstanceState | None:
        return self.standing.state if self.standing else None

    def restarted_after(self, moment: datetime) -> bool:
        """Whether the instance was stopped at or after `moment`, and started again."""
        started = self.started_at
        return started is not None and any(moment <= stopped < started for stopped in self.stopped_at)

    @property
    def open_hooks(self) -> tuple[HeldHook, ...]:
        waiting = (hook for hook in self.hooks.values() if hook.ended_at is None)
        return tuple(sorted(waiting, key=lambda hook: (hook.time, hook.key)))

    def waiting_hooks(self, now: datetime) -> tuple[HeldHook, ...]:
        """The lifecycle actions that Auto Scaling may still wait for."""
        return tuple(held for held in self.open_hooks if held.time + LONGEST_HOOK > now)


def opened(key: InstanceKey, now: datetime) -> InstanceRecord:
    return InstanceRecord(key=key, opened_at=now, heard_at=now, ask_at=now)


def fold(record: InstanceRecord, event: InstanceEvent) -> InstanceRecord:
    return hear(record, event)[0]


def hear(record: InstanceRecord, event: InstanceEvent) -> tuple[InstanceRecord, Outcome]:
    """The record with the event, and the outcome: APPLIED, DUPLICATE, STALE (the event's state does not become the
    current state) or FOREIGN (the event belongs to another instance).
    """
    if instance_of(event) != record.key:
        return record, Outcome.FOREIGN
    if event.key in record.seen:
        return record, Outcome.DUPLICATE
    changed = _with_event(record, event)
    stale = event.kind is EventKind.STATE and changed.standing == record.standing
    outcome = Outcome.STALE if stale else Outcome.APPLIED
    last = LastEvent(key=event.key, kind=event.kind, time=event.time)
    if record.last is not None and (record.last.time, record.last.key) > (last.time, last.key):
        last = record.last
    noted = {
        "seen": (*changed.seen, event.key)[-_REMEMBERED_KEYS:],
        "heard_at": max(changed.heard_at, event.received_at),
        "opened_at": min(changed.opened_at, event.received_at),
        "last": last,
    }
    return changed.model_copy(update=noted), outcome


def _with_event(record: InstanceRecord, event: InstanceEvent) -> InstanceRecord:
    if event.kind is EventKind.STATE and event.state is not None:
        return _with_state(record, event, event.state)
    if event.kind.interrupts:
        return _with_interruption(record, event)
    if event.kind.hook and event.hook is not None:
        return _with_hook(record, event, event.hook)
    if event.kind is EventKind.HEALTH_SCHEDULED and event.health is not None:
        return _with_planned(record, event, event.health)
    if event.kind is EventKind.LAUNCH_OK and event.timely:
        return record.model_copy(update={"launched_at": max(record.launched_at or event.time, event.time)})
    return record


def _with_state(record: InstanceRecord, event: InstanceEvent, state: InstanceState) -> InstanceRecord:
    placing = place(record.standing, event, state)
    changes: dict[str, object] = {}
    if placing.applies:
        changes["standing"] = LastState(state=state, time=event.time)
        changes["misses"] = 0
    if placing is not Placing.PASSED_OVER:
        wanted = event.received_at + (ASK_AFTER if placing is Placing.APPLIED else timedelta(0))
        changes["ask_at"] = min(record.ask_at or wanted, wanted)
        nothing_else = record.ask_at is None or record.only_to_check or (record.standing is None and not record.misses)
        changes["only_to_check"] = placing is Placing.APPLIED and nothing_else
    if placing.applies and state.up and _remembers_stop(record):
        # Only EC2's answer ends a stop: a forged start would uncordon the Node, and repeat the notifications.
        changes["ask_at"] = min(record.ask_at or event.received_at, event.received_at)
        changes["only_to_check"] = False
    if state is InstanceState.RUNNING and event.timely:
        changes["started_at"] = max(record.started_at or event.time, event.time)
    if state in STOPPED_STATES and event.timely:
        changes["stopped_at"] = tuple(sorted({*record.stopped_at, event.time}))[-_MOST_NOTICES:]
    return record.model_copy(update=changes)


def _remembers_stop(record: InstanceRecord) -> bool:
    cordoned = record.drain is not None and record.drain.cause == STOPPED
    return cordoned or STOPPED in record.impossible or any(map(of_stop, record.notified))


def of_stop(notification: str) -> bool:
    return notification.endswith(f"/{STOPPED}")


def _with_interruption(record: InstanceRecord, event: InstanceEvent) -> InstanceRecord:
    notice = Interruption(key=event.key, action=event.action, time=event.time, received_at=event.received_at)
    known = record.interruptions.get(event.kind)
    if known is not None and known.key not in record.refuted_causes and known.lasts != notice.lasts:
        # AWS announces either a hibernation or another end: a forged hibernation must not undo the other notice.
        return record if known.lasts else _interrupted(record, event.kind, notice)
    if known is not None and (known.time, known.key) >= (notice.time, notice.key):
        return record
    if known is not None and known.key not in record.refuted_causes and known.says_as_much_as(notice):
        # The same notice under another event's id. As a new notice it would be sent to the channels once more.
        return record
    return _interrupted(record, event.kind, notice)


def _interrupted(record: InstanceRecord, kind: EventKind, notice: Interruption) -> InstanceRecord:
    return record.model_copy(update={"interruptions": {**record.interruptions, kind: notice}})


def _with_hook(record: InstanceRecord, event: InstanceEvent, action: HookAction) -> InstanceRecord:
    """The record with a lifecycle action. Of two events with the same token the earlier one counts, because the wait
    began with it.
    """
    known = record.hooks.get(action.token)
    if known is not None and (known.time, known.key) <= (event.time, event.key):
        return record
    held = HeldHook(
        key=event.key,
        group=event.group,
        action=action,
        time=event.time,
        received_at=event.received_at,
        confirmed=known is not None and known.confirmed,
        heartbeat_at=known.heartbeat_at if known else None,
        ended_at=known.ended_at if known else None,
    )
    hooks = {**record.hooks, action.token: held}
    if len(hooks) > _MOST_NOTICES:
        hooks.pop(min(hooks, key=lambda token: _worth(hooks[token])))
    return record.model_copy(update={"hooks": hooks})


def _worth(held: HeldHook) -> tuple[bool, bool, datetime, str]:
    """The sort key of lifecycle actions. The lowest is dropped first, so that a forged action never displaces a
    confirmed one.
    """
    return held.ended_at is None, held.confirmed, held.time, held.action.token


def _with_planned(record: InstanceRecord, event: InstanceEvent, notice: HealthNotice) -> InstanceRecord:
    added = Planned(key=event.key, told_at=notice.updated or event.time, received_at=event.received_at, notice=notice)
    name = notice.arn or f"{notice.code}/{notice.communication or event.event_id}"
    known = record.planned.get(name)
    if known is not None and _telling(known) >= _telling(added):
        return record
    planned = {**record.planned, name: added}
    if len(planned) > _MOST_NOTICES:
        planned.pop(min(planned, key=lambda each: (*_telling(planned[each]), each)))
    return record.model_copy(update={"planned": planned})


def _telling(planned: Planned) -> tuple[datetime, bool, datetime, str]:
    """The sort key of a scheduled event's notices: the latest notice has the highest. Of notices with the same update
    time, a withdrawal is the later one.
    """
    return planned.told_at, planned.notice.over, planned.received_at, planned.key


# --- results ---


def refuted(record: InstanceRecord, cause: str, at: datetime) -> InstanceRecord:
    """The record with a cause that AWS did not confirm. Later copies of its event cause no reaction. If the cause is a
    lifecycle action, the action is over.
    """
    if cause in record.refuted_causes:
        return record
    causes = _with_last(record.refuted_causes, cause, _MOST_NOTICES * 2)
    counted = record.model_copy(update={"refuted": record.refuted + 1, "refuted_causes": causes})
    token = next((held.action.token for held in record.open_hooks if held.key == cause), "")
    return hook_ended(counted, token, at)


def impossible(record: InstanceRecord, cause: str) -> InstanceRecord:
    return record.model_copy(update={"impossible": _with_last(record.impossible, cause, _MOST_NOTICES * 2)})


def terminated(record: InstanceRecord, cause: str, node: str, at: datetime) -> InstanceRecord:
    done = cordoned(record, cause, node, at, Reaction.TERMINATE_INSTANCE)
    return done.model_copy(update={"ask_at": at, "only_to_check": False})


def heartbeat_sent(record: InstanceRecord, token: str, at: datetime) -> InstanceRecord:
    return _hook_changed(record, token, heartbeat_at=at)


def hooks_confirmed(record: InstanceRecord, facts: Facts) -> InstanceRecord:
    for held in record.open_hooks:
        if asked_since(facts, Question.GROUP, held.received_at) and holds(held.action, held.group, facts):
            record = _hook_changed(record, held.action.token, confirmed=True)
    return record


def hook_ended(record: InstanceRecord, token: str, at: datetime) -> InstanceRecord:
    return _hook_changed(record, token, ended_at=at)


def launching_hooks_ended(record: InstanceRecord) -> InstanceRecord:
    at = record.launched_at  # a launch succeeds only once all its lifecycle actions are completed
    for held in record.open_hooks:
        if at is not None and held.action.transition == "launching" and held.time <= at:
            record = hook_ended(record, held.action.token, at)
    return record


def _hook_changed(record: InstanceRecord, token: str, **changes: datetime | bool) -> InstanceRecord:
    held = record.hooks.get(token)
    if held is None:
        return record
    return record.model_copy(update={"hooks": {**record.hooks, token: held.model_copy(update=changes)}})


def cordoned(
    record: InstanceRecord,
    cause: str,
    node: str,
    done_at: datetime | None = None,
    reaction: Reaction = Reaction.DRAIN,
) -> InstanceRecord:
    """`done_at` is when the taint, cordon or drain was completed; None if it is not complete."""
    return record.model_copy(update={"drain": Drain(cause=cause, node=node, done_at=done_at, reaction=reaction)})


def notified(record: InstanceRecord, notification: str) -> InstanceRecord:
    return record.model_copy(update={"notified": _with_last(record.notified, notification, _REMEMBERED_KEYS)})


def _with_last(names: tuple[str, ...], name: str, most: int) -> tuple[str, ...]:
    return (*(each for each in names if each != name), name)[-most:]


def uncordoned(record: InstanceRecord) -> InstanceRecord:
    return record.model_copy(update={"drain": None})
