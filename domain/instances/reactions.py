"""The reaction to an instance that AWS reclaims: one reaction at a time, and only for causes that AWS confirms.

The cause with the strongest reaction comes first; among equally strong reactions, the most urgent cause. A drain that
this workflow has begun continues without a new question to AWS. A drain that only an annotation shows counts as not
begun. A refuted cause is reported once. A requested replacement is withdrawn if no cause requires the Machine's
deletion any more, or if the Machine is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from domain.decision import Action, earliest
from domain.identity import Key
from domain.instances.actions import (
    AskReplacement,
    Because,
    CordonNode,
    CountRefuted,
    DeleteOwner,
    EmptyNode,
    EndHook,
    EndReplacement,
    Notify,
    ReleaseNode,
    TellImpossible,
    TerminateInstance,
)
from domain.instances.constants import OUT_OF_SERVICE
from domain.instances.event_record import STOPPED, Drain
from domain.instances.event_verification import Question, Verdict, asked_since, may_be_late
from domain.instances.events import InstanceState
from domain.instances.interruption_causes import OF_STATES, Cause, taken_now
from domain.instances.interruption_policy import Reaction, Taint
from domain.instances.lifecycle_hooks import HookWork, served, work_for_hook
from domain.instances.node_cordon import uncordons
from domain.instances.notices import about, about_node, on_each
from domain.instances.observed import InstanceWorld
from domain.instances.replacements import deployment_of, is_replaced
from domain.instances.resources import Machine, Node
from domain.instances.scheduled_event_timing import unlisted_plans
from domain.notices import warning

_OPEN_VERDICTS = (Verdict.UNASKED, Verdict.NOT_YET)


def hooks_of(world: InstanceWorld, now: datetime) -> tuple[HookWork, ...]:
    record, emptied = world.record, _emptied(world)
    return tuple(
        work_for_hook(held, world, emptied=emptied, now=now)
        for held in record.open_hooks
        if served(held, world.policy) and held.key not in record.refuted_causes
    )


def reactions(
    world: InstanceWorld, found: Sequence[Cause], hooks: Sequence[HookWork], now: datetime
) -> tuple[Action, ...]:
    # Causes without a reaction are included. Otherwise their forged notices would stay in the label until their date.
    unlisted = unlisted_plans(world.record, world.known.facts, now)
    forged = [hook.held.key for hook in hooks if hook.unproven and hook.verdict is Verdict.REFUTED]
    if world.blocker:
        return (*_refuted(world, (*unlisted, *forged)), *end_replacement(world, ()))
    due = [cause for cause in found if cause.wanted and cause.from_ <= now]
    refuted = [cause.name for cause in found if cause.from_ <= now and _forged(world, cause)] + forged
    wanted = _wanted(world, found, hooks, now)
    turn = world.known.turn
    step = _strongest(world, [each for each in wanted if not (turn and turn.holds_up(now, taken=each.taken))], now)
    drain = world.record.drain
    if step is None and not world.policy_unsure:
        if drain is not None and uncordons(world.record, due) and not withdrawal_unproven(world, found):
            step = ReleaseNode(key=world.key, node=drain.node, **world.workload)
        elif _strongest(world, wanted, now) is None:
            step = _unused_turn(world)
    ended = end_replacement(world, wanted)
    return (*_refuted(world, (*unlisted, *refuted)), *ended, *([step] if step else []))


def _unused_turn(world: InstanceWorld) -> ReleaseNode | None:
    """The action that releases an unused permission to disrupt, which would block the node group for an hour."""
    state = world.record.state
    ended = state is not None and state.final
    if not world.known.turn_unused or ended or world.record.drain is not None:
        return None
    return ReleaseNode(key=world.key, node=world.node_name, unused=True, **world.workload)


def end_replacement(world: InstanceWorld, wanted: Sequence[Cause]) -> tuple[Action, ...]:
    """The action that withdraws a replacement, because its Machine is gone, or because no cause wants the Machine
    deleted.
    """
    stays, asked = _stays(world), world.asked
    if not _left_over(world, wanted) or (stays and (world.policy_unsure or not _plans_known(world))):
        return ()
    if asked is not None:
        named = asked.model_dump(include={"namespace", "name", "uid", "deployment"})
        return (EndReplacement(key=world.key, keep=stays is not None, **named),)
    named = stays.metadata.model_dump(include={"namespace", "name", "uid"}) if stays else {}
    return (EndReplacement(key=world.key, keep=True, **named),)


def replacement_in_doubt(
    world: InstanceWorld, found: Sequence[Cause], hooks: Sequence[HookWork], now: datetime
) -> bool:
    """Whether AWS must be asked before a replacement is withdrawn: after the loss of a workflow, the new record may
    lack the cause.
    """
    unsure = _stays(world) is not None and not _plans_known(world)
    return unsure and _left_over(world, _wanted(world, found, hooks, now))


def _left_over(world: InstanceWorld, wanted: Sequence[Cause]) -> bool:
    stays = _stays(world)
    # Nothing is withdrawn while an object is paused. A Machine that stays keeps its request while its AWSMachine is
    # being deleted, or while a cause wants the Machine deleted.
    deletes = any(each.reaction is Reaction.DELETE_MACHINE for each in wanted)
    if world.paused or (stays and (world.blocker or deletes)):
        return False
    return world.asked is not None or (stays is not None and is_replaced(stays))


def withdrawal_unproven(world: InstanceWorld, found: Sequence[Cause]) -> bool:
    """Whether the scheduled event that led to the drain seems to be over, and AWS has yet to confirm that."""
    record, drain = world.record, world.record.drain
    if drain is None or any(cause.name == drain.cause for cause in found):
        return False
    told = (each for each in record.planned.values() if drain.cause.startswith(f"{each.notice.arn or each.key}@"))
    since = (max(each.received_at, record.started_at or each.received_at) for each in told)
    return not all(asked_since(world.known.facts, Question.STATUS, each) for each in since)


def _stays(world: InstanceWorld) -> Machine | None:
    asked, owner = world.asked, world.owner
    if owner is None or owner.metadata.deleting:
        return None
    return owner if asked is None or asked.uid == owner.metadata.uid else None


def _plans_known(world: InstanceWorld) -> bool:
    return asked_since(world.known.facts, Question.STATUS, world.record.opened_at)


def _wanted(world: InstanceWorld, found: Sequence[Cause], hooks: Sequence[HookWork], now: datetime) -> list[Cause]:
    due = [cause for cause in found if cause.wanted and cause.from_ <= now]
    return [*due, *(_cause_of(hook, world) for hook in hooks if hook.drain)]


def awaits_replacement(world: InstanceWorld, cause: Cause, now: datetime) -> datetime | None:
    """Until when a cause waits for the replacement of its Machine; None if it does not wait."""
    asked, owner = world.asked, world.owner
    if asked is None or owner is None or owner.metadata.uid != asked.uid or cause.replaces_for is None:
        return None
    if asked.ready or asked.overridden or _down(world):
        return None
    until = earliest([asked.asked_at + cause.replaces_for, cause.deadline])
    return until if until is not None and until > now else None


def notifications(
    world: InstanceWorld, found: Sequence[Cause], hooks: Sequence[HookWork], now: datetime
) -> tuple[Action, ...]:
    if world.paused:
        return ()
    # A hook is reported even if nothing is left to drain, for example because no Node has joined.
    ending = (hook for hook in hooks if hook.held.action.transition == "terminating" and not world.blocker)
    ends = (_cause_of(hook, world) for hook in ending if not hook.held.action.returns_to_warm_pool)
    due = (*(cause for cause in found if cause.from_ <= now), *ends)
    confirmed = (cause for cause in due if cause.verdict is Verdict.CONFIRMED)
    return tuple(notice for cause in confirmed for notice in _notices(world, cause))


def unproven(world: InstanceWorld, cause: Cause, now: datetime) -> bool:
    """Whether the cause would lead to an action or a notification, but AWS has not confirmed the cause yet."""
    due = cause.from_ <= now and not world.paused
    if not due or cause.verdict not in _OPEN_VERDICTS or _begun(world, cause.name, cause.reaction):
        return False
    reacts = cause.wanted and not world.blocker and _step(world, cause, now) is not None
    return reacts or bool(_notices(world, cause))


def _forged(world: InstanceWorld, cause: Cause) -> bool:
    refuted = cause.verdict is Verdict.REFUTED and cause.name not in OF_STATES
    return refuted and (cause.wanted or bool(_notices(world, cause)))


def hook_unproven(world: InstanceWorld, hook: HookWork) -> bool:
    return hook.unproven and hook.verdict in _OPEN_VERDICTS and not (hook.drain and _begun(world, hook.held.key))


def hook_untimed(world: InstanceWorld, hook: HookWork) -> bool:
    """Whether the hook's timeouts are needed and unknown, but AWS may still report them."""
    facts, held = world.known.facts, hook.held
    known = isinstance(hook.step, EndHook) or held.action.name in world.known.timings
    return not known and (facts is None or Question.GROUP not in facts.asked or may_be_late(facts, held.received_at))


def _strongest(world: InstanceWorld, wanted: Sequence[Cause], now: datetime) -> Action | None:
    for cause in sorted(wanted, key=_precedence):
        proven = cause.verdict is Verdict.CONFIRMED or _begun(world, cause.name, cause.reaction)
        step = _step(world, cause, now) if proven else None
        if step is not None:
            return step
    return None


def _precedence(cause: Cause) -> tuple[int, bool, float]:
    until = cause.deadline
    return -cause.reaction.strength, until is None, until.timestamp() if until else 0.0


def _cause_of(hook: HookWork, world: InstanceWorld) -> Cause:
    held = hook.held
    return taken_now("hook", held.key, world.policy.for_hook, held.received_at, hook.verdict, hook.limit)


def _step(world: InstanceWorld, cause: Cause, now: datetime) -> Action | None:
    """The reaction's next action; None if the reaction has no target, is complete, or waits for a replacement."""
    owner, record, policy = world.owner, world.record, world.policy
    if owner is not None and owner.metadata.deleting:
        # Cluster API is already deleting it.
        return None
    because = Because(sort=cause.sort, since=cause.claimed_at)
    fields = {"key": world.key, "cause": cause.name, "because": because}
    room = {"taken": cause.taken, "most": policy.most, "policy": policy.name}
    terminates = cause.reaction is Reaction.TERMINATE_INSTANCE
    if terminates and world.own_node is None:
        return _impossible(world, cause, now)
    if cause.reaction is Reaction.DELETE_MACHINE:
        if owner is None:
            return _impossible(world, cause, now)
        named = owner.metadata.model_dump(include={"namespace", "name", "uid"})
        if awaits_replacement(world, cause, now):
            return None
        if _replaces(world, owner, cause, now):
            return AskReplacement.model_validate({**fields, **named, **room})
        deployment = world.asked.deployment if world.asked else ""
        known = {"about": _about_all(world), "cluster": world.workload["cluster"], "deployment": deployment}
        return DeleteOwner.model_validate({**fields, **named, **room, **known})
    drain, node = _own_drain(world), world.node_name
    done = drain is not None and drain.covers(cause.reaction)
    if done or not node or record.state is InstanceState.TERMINATED:
        return None
    which = {**fields, "node": node, "about": _about_all(world), **world.workload}
    if terminates and world.own_node and drain and drain.covers(Reaction.DRAIN):
        ends = record.state is not None and record.state.final
        return None if ends else TerminateInstance.model_validate({**which, "uid": world.own_node.metadata.uid})
    reaction = Reaction.DRAIN if terminates else cause.reaction
    # The cordon is in the record, so a begun drain continues without asking AWS again.
    begun = drain is not None and (drain.node, drain.cause, drain.done_at) == (node, cause.name, None)
    if begun and reaction is Reaction.DRAIN:
        last = world.known.emptying
        same = last is not None and (last.node, last.cause) == (node, cause.name)
        how = {"until": cause.deadline, "how": policy.draining, "begun": last if same else None}
        return EmptyNode.model_validate({**which, **how})
    taint = _taint(world, cause)
    if taint is None and reaction is Reaction.TAINT:
        return None
    marking = {
        "machine": owner.metadata.name if owner else "",
        "pool": world.pool.metadata.name if world.pool else "",
        "reaction": reaction,
        "taint": taint,
        **room,
    }
    return CordonNode.model_validate({**which, **marking})


def _replaces(world: InstanceWorld, owner: Machine, cause: Cause, now: datetime) -> bool:
    tried = world.why_unreplaced(cause.name)
    late = cause.deadline is not None and cause.deadline <= now
    begun = world.asked is not None or is_replaced(owner)
    wanted = cause.replaces_for is not None and bool(deployment_of(owner))
    return wanted and not (tried or late or begun or _down(world))


def _down(world: InstanceWorld) -> bool:
    state = world.record.state
    return state is not None and not state.up


def _notices(world: InstanceWorld, cause: Cause) -> tuple[Notify, ...]:
    policy, owner = world.policy, world.owner
    about = {
        "key": world.key,
        "policy": policy.name,
        "cause": cause.name,
        "sort": cause.sort,
        "reaction": cause.reaction,
        "received_at": cause.claimed_at,
        "deadline": cause.deadline,
        "machine": owner.metadata.name if owner else "",
        "node": world.node_name,
        "about": _machines(world)[:1],
        **world.workload,
    }
    wanted = (channel.name for channel in policy.channels if cause.sort in channel.causes)
    notices = (Notify.model_validate({**about, "channel": name}) for name in wanted)
    return tuple(notice for notice in notices if notice.id not in world.record.notified)


def _impossible(world: InstanceWorld, cause: Cause, now: datetime) -> TellImpossible | None:
    record, held, reaction, policy = world.record, world.labelled or world.pool, cause.reaction, world.policy.name
    turn = world.known.turn
    gone = (world.machine is not None and world.machine.machine) or (turn is not None and not turn.why)
    gone = gone and reaction is Reaction.DELETE_MACHINE
    if held is None or gone or cause.name in record.impossible or (record.state and record.state.final):
        return None
    asker = f"InterruptionPolicy {policy}" if policy else "PERDURE_INSTANCES_REACTIONS"
    if reaction is Reaction.TERMINATE_INSTANCE:
        reason = "NotTerminated"
        is_not = f"belongs to Cluster API, so Perdure does not terminate it in reaction to {cause.name}"
        advice = "for machines of Cluster API use delete-machine or drain"
    else:
        reason = "NoMachine"
        is_not = f"has no Machine that Perdure could delete in reaction to {cause.name}"
        alone = " or terminate-instance" if isinstance(held, Node) else ""
        advice = f"for instances without a Machine use drain{alone}"
    message = f"instance {world.key.name} {is_not}: nothing is done. {asker} asks for {reaction}; {advice}"
    notices = on_each((about(held),), warning, reason, message)
    return TellImpossible(key=world.key, cause=cause.name, reaction=reaction, notices=notices, at=now)


def _about_all(world: InstanceWorld) -> tuple[Key, ...]:
    if not ((world.labelled or world.pool) and world.policy.name):
        return ()
    node = (about_node(world.node_name),) if world.node_name else ()
    return tuple(dict.fromkeys((*_machines(world), *node)))


def _machines(world: InstanceWorld) -> tuple[Key, ...]:
    return tuple(about(each) for each in (world.labelled, world.owner) if each is not None)


def _taint(world: InstanceWorld, cause: Cause) -> Taint | None:
    """The taint for the cause; None if no taint is wanted. The taint out-of-service is not set while the instance may
    still write to its volumes.
    """
    tainting, standing = world.policy.tainting, world.record.standing
    if not (tainting.always or cause.reaction is Reaction.TAINT):
        return None
    taint = tainting.taint(cause.sort)
    stopped = standing is not None and standing.state is InstanceState.STOPPED
    # A confirmation of another cause does not prove the stop: the state may come from an event alone.
    confirmed = cause.name == STOPPED or (standing is not None and standing.asked)
    return None if taint.key == OUT_OF_SERVICE and not (stopped and confirmed) else taint


def _refuted(world: InstanceWorld, names: Iterable[str]) -> tuple[Action, ...]:
    return tuple(CountRefuted(key=world.key, cause=name, about=_machines(world)) for name in dict.fromkeys(names))


def _begun(world: InstanceWorld, cause: str, reaction: Reaction = Reaction.DRAIN) -> bool:
    """Whether the Node's drain for this cause has begun, so that AWS need not confirm the cause again."""
    drain = _own_drain(world)
    if drain is None or drain.cause != cause:
        return False
    # The termination that follows a complete drain needs a new confirmation.
    return reaction is not Reaction.TERMINATE_INSTANCE or drain.done_at is None


def _own_drain(world: InstanceWorld) -> Drain | None:
    """The drain that has begun; None if only an annotation reports it, because people can edit annotations."""
    drain = world.record.drain
    return None if drain is None or drain.recalled else drain


def _emptied(world: InstanceWorld) -> bool:
    record, drain = world.record, _own_drain(world)
    if record.state is not None and record.state.final:
        return True
    if world.policy.terminating_hook is Reaction.DELETE_MACHINE:
        return world.owner is None
    nowhere = world.kubeconfig_refused or (not world.node_name and not world.node_sought)
    return nowhere or (drain is not None and drain.covers(world.policy.for_hook))
