"""What is done about an instance that is taken: one reaction at a time, and only what AWS bears out.

Of several causes the one that wants the Machine deleted comes first, then the most pressing. A drain that has begun
goes on without asking again, unless only the machine's annotation tells of it. What AWS refutes is told and forgotten.
A Node that we cordoned is used again once the reason for it is over and the instance runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from domain.instances.causes import ENDED, Cause, unlisted_plans
from domain.instances.events import InstanceState
from domain.instances.hooks import HookWork, served, work_for_hook
from domain.instances.observed import ObservedInstance
from domain.instances.policy import Reaction
from domain.instances.steps import DeleteMachine, DrainNode, Refute, Step, UncordonNode
from domain.instances.verification import Question, Verdict, may_be_late

_OPEN_VERDICTS = (Verdict.UNASKED, Verdict.NOT_YET)


def hooks_of(observed: ObservedInstance, now: datetime) -> tuple[HookWork, ...]:
    """What each lifecycle action that we serve needs."""
    record = observed.record
    return tuple(
        work_for_hook(
            held,
            observed.policy,
            observed.timings,
            observed.facts,
            node_ready=observed.node_ready,
            emptied=_emptied(observed),
            free=not observed.hindrance,
            now=now,
        )
        for held in record.open_hooks
        if served(held, observed.policy) and held.key not in record.refuted_causes
    )


def reactions(
    observed: ObservedInstance, found: Sequence[Cause], hooks: Sequence[HookWork], now: datetime
) -> tuple[Step, ...]:
    """The steps for the causes that are due, and for draining before a lifecycle action is completed."""
    # Not only what would be reacted to: a made-up notice would stand in the label until its date.
    unlisted = unlisted_plans(observed.record, observed.facts, now)
    if observed.hindrance:
        return tuple(Refute(cause=name) for name in unlisted)
    due = [cause for cause in found if cause.wanted and cause.from_ <= now]
    refuted = [cause.name for cause in due if cause.verdict is Verdict.REFUTED and cause.name != ENDED]
    refuted += [hook.held.key for hook in hooks if hook.unproven and hook.verdict is Verdict.REFUTED]
    step = None if observed.turn and observed.turn.waits(now) else _strongest(observed, due, hooks)
    over = [UncordonNode(node=observed.record.drain.node)] if observed.record.drain and _over(observed, due) else []
    return (*(Refute(cause=name) for name in dict.fromkeys((*unlisted, *refuted))), *([step] if step else over))


def unproven(observed: ObservedInstance, cause: Cause, now: datetime) -> bool:
    """True if something would be done for the cause, did AWS but bear it out."""
    due = cause.wanted and cause.from_ <= now and not observed.hindrance
    if not due or cause.verdict not in _OPEN_VERDICTS or _begun(observed, cause.name):
        return False
    return _step(observed, cause.reaction, cause.name, cause.deadline) is not None


def hook_unproven(observed: ObservedInstance, hook: HookWork) -> bool:
    """True if something would be done for the lifecycle action, did AWS but bear it out."""
    return hook.unproven and hook.verdict in _OPEN_VERDICTS and not _begun(observed, hook.held.key)


def hook_untimed(observed: ObservedInstance, hook: HookWork) -> bool:
    """True while the times of a hook that is waited for are not known, and AWS may yet tell them."""
    facts, held = observed.facts, hook.held
    known = hook.complete is not None or held.action.name in observed.timings
    return not known and (facts is None or Question.GROUP not in facts.asked or may_be_late(facts, held.received_at))


def _strongest(observed: ObservedInstance, due: Sequence[Cause], hooks: Sequence[HookWork]) -> Step | None:
    wanted = [(cause.reaction, cause.name, cause.deadline, cause.verdict, cause.taken) for cause in due]
    hooked = observed.policy.terminating_hook
    wanted += [(hooked, hook.held.key, hook.limit, hook.verdict, True) for hook in hooks if hook.drain]
    for reaction, name, until, verdict, taken in sorted(
        wanted, key=lambda each: each[0] is not Reaction.DELETE_MACHINE
    ):
        proven = verdict is Verdict.CONFIRMED or _begun(observed, name)
        step = _step(observed, reaction, name, until, taken=taken) if proven else None
        if step is not None:
            return step
    return None


def _step(
    observed: ObservedInstance, reaction: Reaction, cause: str, until: datetime | None, *, taken: bool = False
) -> Step | None:
    """The step, None if there is nothing that it could be done to, or it is done."""
    owner, record = observed.owner, observed.record
    if owner is not None and owner.metadata.deleting:
        # Cluster API has it in hand.
        return None
    if reaction is Reaction.DELETE_MACHINE:
        if owner is None:
            return None
        meta = owner.metadata
        return DeleteMachine(cause=cause, namespace=meta.namespace, name=meta.name, uid=meta.uid, taken=taken)
    drained = record.drain is not None and record.drain.done_at is not None
    if drained or not observed.node_name or record.state is InstanceState.TERMINATED:
        return None
    return DrainNode(cause=cause, node=observed.node_name, until=until, taken=taken)


def _begun(observed: ObservedInstance, cause: str) -> bool:
    """True if the Node is being drained for this cause, which AWS has borne out then."""
    drain = observed.record.drain
    return drain is not None and not drain.recalled and drain.cause == cause


def _emptied(observed: ObservedInstance) -> bool:
    """True if nothing is left on the instance that would have to be drained before it is terminated."""
    record = observed.record
    if record.state is not None and record.state.final:
        return True
    if observed.policy.terminating_hook is Reaction.DELETE_MACHINE:
        return observed.owner is None
    nowhere = not observed.node_name and not observed.node_sought
    return nowhere or (record.drain is not None and record.drain.done_at is not None)


def _over(observed: ObservedInstance, due: Sequence[Cause]) -> bool:
    """True if the Node that we cordoned may be used again."""
    record = observed.record
    if record.drain is None or record.state is not InstanceState.RUNNING:
        return False
    # A completed lifecycle action is still a reason: the instance runs on for a moment.
    reasons = {cause.name for cause in due} | {hook.key for hook in record.hooks.values()}
    # The same notice told under another id is another cause, for which the Node would be drained again.
    still = any(
        cause.ends or (cause.reaction is Reaction.DRAIN and cause.verdict is not Verdict.REFUTED) for cause in due
    )
    return record.drain.cause not in reasons and not still
