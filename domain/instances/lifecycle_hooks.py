"""Lifecycle hooks: Auto Scaling holds an instance until the action is completed, at most 48 hours.

    terminating   drain --drained, or the limit nears--> complete (CONTINUE)
    launching     wait for the Node --ready--> CONTINUE; --too late--> ABANDON where that is wanted, else CONTINUE

`hook_timeouts.py` says when a heartbeat is due. While the machine is paused or being deleted, the hook is completed
without a drain; otherwise the instance would hang. Before its limit, a hook is completed only if AWS has confirmed that
the instance waits. If the policy asks for labels only, Perdure does nothing about the hook. If the termination returns
the instance to its warm pool, the Node is not drained, and the instance counts as `warm` (`machine_pool_labels.py`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from domain.instances.actions import BeatHook, Because, EndHook
from domain.instances.event_record import HeldHook
from domain.instances.event_verification import Verdict, verify_hook
from domain.instances.hook_timeouts import DEFAULT_TIMING
from domain.instances.interruption_policy import Reaction, ReactionPolicy
from domain.instances.observed import InstanceWorld
from domain.model import Model


class HookWork(Model):
    held: HeldHook
    drain: bool = False  # whether the Node is to be drained because of the hook
    unproven: bool = False  # whether a drain or the completion waits for AWS to confirm the lifecycle action
    verdict: Verdict  # whether Auto Scaling confirms that the instance waits
    limit: datetime  # when the hook is completed at the latest
    step: BeatHook | EndHook | None = None  # the heartbeat or the completion that is due; None if neither is
    next_at: datetime  # when to decide again


def served(held: HeldHook, policy: ReactionPolicy) -> bool:
    if held.action.transition == "launching":
        return policy.launching_hook
    return policy.terminating_hook is not Reaction.LABEL


def work_for_hook(held: HeldHook, world: InstanceWorld, *, emptied: bool, now: datetime) -> HookWork:
    """What to do about an open lifecycle action. `emptied`: whether nothing is left to drain."""
    policy, free = world.policy, not world.blocker
    timing = world.known.timings.get(held.action.name, DEFAULT_TIMING)
    launching = held.action.transition == "launching"
    verdict = verify_hook(held.action, held.group, world.known.facts, held.received_at, now)
    # At least half of the time is left to drain, however long the margin.
    margin = min(policy.hook_margin, timing.limit / 2)
    limit = held.time + min(timing.limit - margin, policy.hook_limit or timing.limit)
    if launching:
        limit = min(limit, held.time + policy.launch_timeout)
    drain = free and not launching and not held.action.returns_to_warm_pool and not emptied
    done = world.node_ready or not free if launching else not drain
    proven = held.confirmed or verdict is Verdict.CONFIRMED
    outcome: Literal["CONTINUE", "ABANDON"] | None = "CONTINUE" if (done and proven) or limit <= now else None
    abandoning = launching and not done and outcome is not None and policy.abandon_failed_launch
    if abandoning:
        # Abandoning terminates the instance, so an unconfirmed event never suffices.
        outcome = "ABANDON" if verdict is Verdict.CONFIRMED else None
    heartbeat = min(timing.heartbeat, policy.heartbeat or timing.heartbeat)
    beat_at = (held.heartbeat_at or held.time) + heartbeat
    which = {"key": world.key, "group": held.group, "hook": held.action.name, "token": held.action.token}
    step: BeatHook | EndHook | None = None
    if outcome is not None:
        because = Because(sort="hook", since=held.received_at)
        step = EndHook.model_validate({**which, "outcome": outcome, "because": because})
    elif beat_at <= now:
        step = BeatHook.model_validate(which)
    return HookWork(
        held=held,
        drain=drain and limit > now,
        unproven=(limit > now and not proven)
        or (((drain and limit > now) or abandoning) and verdict is not Verdict.CONFIRMED),
        verdict=verdict,
        limit=limit,
        step=step,
        next_at=min(beat_at if beat_at > now else now + heartbeat, limit if limit > now else beat_at),
    )
