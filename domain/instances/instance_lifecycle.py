"""The lifecycle of an instance: decides from the observation which actions are due.

    Unknown --EC2 answers, its object is there--> Live <--> Stopped
       |                                   | a notice            --> Interrupting
       |                                   | a scheduled event   --> MaintenancePlanned --24 h before--> drained
       |                                   | Auto Scaling waits  --> Launching, HookDraining
       |                                   ' terminated          --> Gone --an hour of quiet--> closed
       ' no object has it after ten minutes --> Unmanaged, closed

Labels are kept up to date under every policy, even if Cluster API has paused the machine or is deleting it. Reactions
run only for machines that are neither paused nor being deleted, and only for causes that AWS has confirmed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from domain.control_annotations import paused
from domain.decision import Action, Decision, Outcome, earliest
from domain.instances.actions import AskInstance, FindNode, LookAtInstance
from domain.instances.constants import INTERRUPTION_LABEL
from domain.instances.disruption_budget import ASK_FOR_TURN_AGAIN
from domain.instances.ec2_answers import is_absent
from domain.instances.event_record import InstanceRecord
from domain.instances.event_verification import ASK_AGAIN, STOPPED_STATES, Question, askable
from domain.instances.events import EventKind, InstanceState
from domain.instances.hook_timeouts import LONGEST_HOOK
from domain.instances.interruption_causes import OF_STATES, Cause, announced, causes
from domain.instances.interruption_policy import Reaction
from domain.instances.lifecycle_hooks import HookWork, served
from domain.instances.machine_labels import label_patch
from domain.instances.notices import about, on_each
from domain.instances.observed import InstanceWorld
from domain.instances.periodic_resync import contradicted
from domain.instances.reactions import (
    awaits_replacement,
    end_replacement,
    hook_unproven,
    hook_untimed,
    hooks_of,
    notifications,
    reactions,
    replacement_in_doubt,
    unproven,
    withdrawal_unproven,
)
from domain.instances.scheduled_event_timing import end_of, open_planned
from domain.instances.unmatched_events import UNMATCHED_AFTER
from domain.model import Model
from domain.notices import Notice, warning
from domain.writes import JsonPatch

# How long a terminated instance's workflow stays open for late events.
_QUIET_BEFORE_CLOSING = timedelta(hours=1)
# A Node takes some minutes to join its cluster. Each search lists the Nodes of the workload cluster.
FIND_AGAIN = timedelta(seconds=30)
# How often EC2 is asked about a drained or scheduled instance that no sweep includes.
_UNSWEPT_EVERY = timedelta(days=1)


class InstancePhase(StrEnum):
    UNKNOWN = "Unknown"
    LIVE = "Live"
    LAUNCHING = "Launching"
    INTERRUPTING = "Interrupting"
    MAINTENANCE_PLANNED = "MaintenancePlanned"
    HOOK_DRAINING = "HookDraining"
    STOPPED = "Stopped"
    NOT_FOUND = "InstanceNotFound"
    GONE = "Gone"
    UNMANAGED = "Unmanaged"


_SETTLED = (InstancePhase.LIVE, InstancePhase.STOPPED, InstancePhase.GONE)


class InstanceWork(Model):
    phase: InstancePhase
    why: str = ""
    patch: JsonPatch = {}  # the merge patch of its AWSMachine or Node, applied first
    steps: tuple[Action, ...] = ()  # the actions, in this order
    notices: tuple[Notice, ...] = ()
    deadline: datetime | None = None  # the earliest moment at which the decision may change
    close: bool = False  # whether nothing is left to do, so that the workflow ends


def decide_instance(world: InstanceWorld, now: datetime) -> Decision:
    work, name = work_for_instance(world, now), world.policy.name
    if work.close:
        return Decision(phase=work.phase.value, outcome=Outcome.GONE, why="nothing is left to observe")
    actions: list[Action] = [look_at(world, now)] if work.patch or world.choice_is_stale else []
    find_at = _find_at(world, now)
    if find_at is not None and find_at <= now:
        actions.append(FindNode(key=world.key, node=world.node_name, **world.workload))
    actions += work.steps
    return Decision(
        phase=work.phase.value,
        outcome=_outcome(work, actions),
        why=(work.why or "its label is up to date") + (f"; InterruptionPolicy {name} applies" if name else ""),
        actions=tuple(actions),
        notices=work.notices,
        waits_for=(work.why,) if work.why and not actions else (),
        deadline=earliest([work.deadline, find_at if find_at and find_at > now else None]),
        at_deadline="decide again" if work.deadline else "",
        owner=world.owned_by,
    )


def look_at(world: InstanceWorld, now: datetime, *, dry_run: bool = False) -> LookAtInstance:
    return LookAtInstance(
        key=world.key,
        at=now,
        record=world.record.model_copy(update={"seen": ()}),  # labels do not depend on the events' keys
        recall=not world.known.recalled,
        tags=world.known.tags,
        version=world.labelled.metadata.resource_version if world.labelled else "",
        dry_run=dry_run,
    )


def _find_at(world: InstanceWorld, now: datetime) -> datetime | None:
    """When to search for the Node; None if no search is needed. While a launch's hook waits for the Node to become
    ready, the search is repeated.
    """
    if not world.node_wanted:
        return None
    node = world.known.node
    if node is None:
        return now
    hooks = (hook for hook in world.record.open_hooks if served(hook, world.policy))
    launching = any(hook.action.transition == "launching" for hook in hooks)
    return node.at + FIND_AGAIN if launching and not node.ready else None


def _outcome(work: InstanceWork, actions: list[Action]) -> Outcome:
    if actions:
        return Outcome.WORKING
    return Outcome.SETTLED if work.phase in _SETTLED else Outcome.WAITING


def phase_of(world: InstanceWorld, now: datetime) -> InstancePhase:
    """A terminating hook takes precedence over a stop, and a stop over an announced interruption."""
    record = world.record
    if record.state is InstanceState.TERMINATED:
        return InstancePhase.GONE
    if is_absent(record):
        return InstancePhase.NOT_FOUND
    if not world.managed:
        return InstancePhase.UNKNOWN
    hooks = {hook.action.transition for hook in record.waiting_hooks(now) if not hook.action.returns_to_warm_pool}
    if "terminating" in hooks:
        return InstancePhase.HOOK_DRAINING
    if record.state in STOPPED_STATES:
        return InstancePhase.STOPPED
    if announced(record):
        return InstancePhase.INTERRUPTING
    if "launching" in hooks:
        return InstancePhase.LAUNCHING
    if any(True for _ in open_planned(record, now)):
        return InstancePhase.MAINTENANCE_PLANNED
    return InstancePhase.LIVE if record.state is not None else InstancePhase.UNKNOWN


def work_for_instance(world: InstanceWorld, now: datetime) -> InstanceWork:
    phase, closing = phase_of(world, now), _closing(world, now)
    over = closing is not None and closing <= now
    if not world.managed:
        if (ended := end_replacement(world, ())) and not world.observing:
            return InstanceWork(phase=phase, why="its Machine is gone", steps=ended)
        if over:
            return InstanceWork(phase=InstancePhase.UNMANAGED, close=True)
        # No object names the instance yet, and AWS is not asked about foreign instances.
        return InstanceWork(phase=phase, why="no object names this instance yet", deadline=closing)
    absence_counts = world.absence_counts
    found = causes(world.record, world.policy, world.known.facts, now, absence_counts=absence_counts)
    hooks = hooks_of(world, now)
    questions = _questions(world, found, hooks, now)
    tag_keys = world.tag_keys if Question.TAGS in questions else ()
    asking = (AskInstance(key=world.key, questions=questions, tag_keys=tag_keys),) if questions else ()
    patch = patch_for(world, now)
    sent = notifications(world, found, hooks, now)
    answers = (hook.step for hook in hooks if hook.step is not None)
    steps = (*asking, *answers, *reactions(world, found, hooks, now), *sent)
    # If the instance's end is found long after the last event, its reactions still run.
    left = patch or steps or hooks or any(unproven(world, cause, now) for cause in found)
    if over and (world.observing or not left):
        return InstanceWork(phase=phase, close=True)
    deadline = _deadline(world, found, hooks, closing, now)
    if world.observing:
        why = "PERDURE_MODE=observe: nothing is written"
        return InstanceWork(phase=phase, why=why, steps=asking, deadline=deadline)
    return InstanceWork(
        phase=phase,
        why=world.blocker or _waiting_text(world, found, hooks, now),
        patch=patch,
        steps=steps,
        notices=_interruption(world),
        deadline=deadline,
    )


def _interruption(world: InstanceWorld) -> tuple[Notice, ...]:
    labelled = world.labelled
    value = labelled.metadata.labels.get(INTERRUPTION_LABEL) if labelled else None
    if labelled is None or not value:
        return ()
    message = f"AWS announced {value} for {labelled.instance_id}"
    return on_each((about(labelled),), warning, "InstanceInterruption", message)


def patch_for(world: InstanceWorld, now: datetime) -> JsonPatch:
    """The patch of the labels; empty if they are up to date. Perdure's own pause and observe mode prevent the patch,
    but Cluster API's pause does not.
    """
    labelled = world.labelled
    held = world.observing or labelled is None or paused(labelled.metadata)
    return {} if held or labelled is None else label_patch(labelled, world.record, now)


def _closing(world: InstanceWorld, now: datetime) -> datetime | None:
    record = world.record
    if not world.managed:
        return record.heard_at + UNMATCHED_AFTER
    if record.state is InstanceState.TERMINATED:
        return record.heard_at + _QUIET_BEFORE_CLOSING
    pool, absent = world.pool, is_absent(record)
    if world.machine is not None or pool is None:
        return None
    # A pool never lists the instance of a failed launch: only the open hook links them, and would do so for ever. What
    # is held open is not observed again, so the pool may still seem to list it.
    unlisted = record.key.instance_id not in pool.instance_ids
    ends = absent if _held_open(record, now) else unlisted
    return record.heard_at + (_QUIET_BEFORE_CLOSING if absent else LONGEST_HOOK) if ends else None


def _held_open(record: InstanceRecord, now: datetime) -> bool:
    return record.drain is not None or any(True for _ in open_planned(record, now))


# --- questions to AWS ---


def _unswept_at(world: InstanceWorld, now: datetime) -> datetime | None:
    """When to ask EC2 whether an instance without AWSMachine or Node, or a scheduled event of the instance, has ended:
    AWS's message about the end may be lost. None if nothing depends on the answer.
    """
    record, facts = world.record, world.known.facts
    ended = record.state is not None and record.state.final
    if world.labelled is not None or ended or not _held_open(record, now):
        return None
    return max(record.heard_at, facts.at if facts is not None else record.heard_at) + _UNSWEPT_EVERY


def _asks_of_group(world: InstanceWorld, hook: HookWork) -> bool:
    return hook_unproven(world, hook) or hook_untimed(world, hook)


def _questions(
    world: InstanceWorld, found: Sequence[Cause], hooks: Sequence[HookWork], now: datetime
) -> tuple[Question, ...]:
    record, facts = world.record, world.known.facts
    wanted = set[Question]()
    if world.ask_at is not None and world.ask_at <= now:
        wanted.add(Question.INSTANCE)
    if (unswept := _unswept_at(world, now)) is not None and unswept <= now:
        wanted |= {Question.INSTANCE, Question.STATUS} if record.planned else {Question.INSTANCE}
    if _ran_on(record, now) and askable(facts, Question.INSTANCE, record.heard_at, now):
        wanted.add(Question.INSTANCE)
    for cause in found:
        if unproven(world, cause, now):
            wanted |= {each for each in _borne_out_by(record, cause) if askable(facts, each, cause.claimed_at, now)}
    if replacement_in_doubt(world, found, hooks, now) and askable(facts, Question.STATUS, record.opened_at, now):
        wanted.add(Question.STATUS)
    doubted = withdrawal_unproven(world, found) or contradicted(record, facts)
    if doubted and askable(facts, Question.STATUS, record.heard_at, now):
        wanted.add(Question.STATUS)
    for hook in hooks:
        if _asks_of_group(world, hook) and askable(facts, Question.GROUP, hook.held.received_at, now):
            wanted.add(Question.GROUP)
    if world.tag_keys and (wanted or (world.lacks_tags and askable(facts, Question.TAGS, record.opened_at, now))):
        wanted.add(Question.TAGS)
    # Questions asked together share one answer, and each answer includes the instance's state.
    return tuple(sorted({Question.INSTANCE, *wanted})) if wanted else ()


def _ran_on(record: InstanceRecord, now: datetime) -> bool:
    """Whether the instance is still up although a notice is old: then EC2 is asked whether AWS still reclaims it."""
    up = record.state is not None and record.state.up and not record.misses  # after a miss, `ask_at` says when
    return up and any(notice.outlived_at <= now for notice in announced(record))


def _borne_out_by(record: InstanceRecord, cause: Cause) -> tuple[Question, ...]:
    spot = record.interruptions.get(EventKind.SPOT)
    if spot is not None and cause.name == spot.key:
        return Question.INSTANCE, Question.SPOT
    return (Question.INSTANCE,) if cause.name in OF_STATES else (Question.STATUS,)


# --- waiting ---


def _deadline(
    world: InstanceWorld,
    found: Sequence[Cause],
    hooks: Sequence[HookWork],
    closing: datetime | None,
    now: datetime,
) -> datetime | None:
    record, facts = world.record, world.known.facts
    moments: list[datetime | None] = [world.ask_at, closing, _unswept_at(world, now)]
    for cause in found:
        moments += [cause.from_, cause.deadline, awaits_replacement(world, cause, now)]
    moments += [end_of(planned) for planned in open_planned(record, now)]
    moments += [notice.outlived_at for notice in announced(record)]
    if world.known.turn is not None and world.known.turn.why:
        moments.append(world.known.turn.at + ASK_FOR_TURN_AGAIN)
    # If the consumer's clock is ahead, an event's time of receipt is in the future: AWS is asked from then on.
    moments += [moment for hook in hooks for moment in (hook.next_at, hook.held.received_at)]
    # From these times, the annotation and the phase lack the action.
    moments += [held.time + LONGEST_HOOK for held in record.open_hooks]
    open_claims = any(unproven(world, cause, now) for cause in found)
    if facts is not None and (open_claims or world.lacks_tags or any(_asks_of_group(world, hook) for hook in hooks)):
        moments.append(facts.at + ASK_AGAIN)
    if facts is not None and _ran_on(record, now):
        moments.append(facts.at + ASK_AGAIN)
    return earliest([moment for moment in moments if moment is not None and moment > now])


def _waiting_text(world: InstanceWorld, found: Sequence[Cause], hooks: Sequence[HookWork], now: datetime) -> str:
    if world.known.turn is not None and world.known.turn.waits(now) and any(cause.wanted for cause in found):
        return world.known.turn.why
    asked, waits = world.asked, earliest([awaits_replacement(world, cause, now) for cause in found])
    if asked is not None and waits is not None:
        from_ = f"for the replacement of Machine {asked.name}, requested from MachineDeployment {asked.deployment}"
        return f"waits until {waits:%H:%M:%S} UTC {from_}"
    unreplaced = next(filter(None, (world.why_unreplaced(cause.name) for cause in found)), "")
    if unreplaced and world.owner is not None:
        return f"Machine {world.owner.metadata.name} is not replaced before it is deleted: {unreplaced}"
    if hooks:
        held = hooks[0].held
        return f"lifecycle hook {held.action.name} of {held.group} holds the instance"
    unsure = [cause for cause in found if unproven(world, cause, now)]
    if unsure:
        return f"asks AWS to confirm {unsure[0].name}"
    for cause in found:
        if cause.name in world.record.impossible:
            if cause.reaction is Reaction.TERMINATE_INSTANCE:
                not_done = "Cluster API manages the instance, so Perdure does not terminate it"
            else:
                not_done = "the instance has no Machine that Perdure could delete"
            return f"{not_done} in reaction to {cause.name}: nothing is done"
    later = [cause for cause in found if cause.from_ > now]
    return f"a scheduled event; Perdure acts at {later[0].from_:%Y-%m-%dT%H:%MZ}" if later else ""
