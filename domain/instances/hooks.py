"""Lifecycle hooks: Auto Scaling holds an instance until the action is completed, at most 48 hours.

    terminating   drain --drained, or the limit nears, or nothing may be done--> complete (CONTINUE)
    launching     wait for the Node --ready--> CONTINUE; --too late--> ABANDON where that is wanted, else CONTINUE

Meanwhile a heartbeat goes out at half the hook's timeout, and every five minutes at least. The whole wait ends after 48
hours, or 100 timeouts if that is sooner, heartbeats or not. A hook is completed even while the machine is paused or
being deleted: the instance would hang otherwise. Where policy asks for labels only, the hook is left to whoever made
it. A termination that returns the instance to its warm pool drains nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal

from domain.instances.constants import DEFAULT_HEARTBEAT_TIMEOUT, HOOK_TIMEOUTS, LONGEST_HEARTBEAT, LONGEST_HOOK
from domain.instances.policy import Reaction, ReactionPolicy
from domain.instances.record import HeldHook
from domain.instances.steps import CompleteHook, SendHeartbeat
from domain.instances.verification import Facts, Verdict, verify_hook
from domain.model import Model


class HookTiming(Model):
    """A hook's times, as DescribeLifecycleHooks has them."""

    heartbeat_timeout: timedelta = DEFAULT_HEARTBEAT_TIMEOUT
    global_timeout: timedelta | None = None

    @property
    def limit(self) -> timedelta:
        """After how long Auto Scaling goes on, whatever is done."""
        return min(self.global_timeout or LONGEST_HOOK, LONGEST_HOOK, self.heartbeat_timeout * HOOK_TIMEOUTS)

    @property
    def heartbeat(self) -> timedelta:
        """How often a heartbeat is sent."""
        return min(self.heartbeat_timeout / 2, LONGEST_HEARTBEAT)


DEFAULT_TIMING = HookTiming()


class HookWork(Model):
    """What a lifecycle action needs now.

    Attributes:
        drain: whether the Node is to be emptied for it.
        unproven: whether something irreversible waits for AWS to bear the action out.
        verdict: whether Auto Scaling says that the instance waits.
        limit: when it is completed at the latest.
        heartbeat: the heartbeat that is due.
        complete: its completion, once it is time.
        next_at: when to look again.
    """

    held: HeldHook
    drain: bool = False
    unproven: bool = False
    verdict: Verdict
    limit: datetime
    heartbeat: SendHeartbeat | None = None
    complete: CompleteHook | None = None
    next_at: datetime


def served(held: HeldHook, policy: ReactionPolicy) -> bool:
    """True if policy has us complete actions of this kind."""
    if held.action.transition == "launching":
        return policy.launching_hook
    return policy.terminating_hook is not Reaction.LABEL


def work_for_hook(
    held: HeldHook,
    policy: ReactionPolicy,
    timings: Mapping[str, HookTiming],
    facts: Facts | None,
    *,
    node_ready: bool,
    emptied: bool,
    free: bool,
    now: datetime,
) -> HookWork:
    """What an open action that we serve needs.

    Args:
        held: the action.
        policy: what is wanted.
        timings: the group's hooks by name.
        facts: what AWS answered last.
        node_ready: whether the instance's Node has joined and is ready.
        emptied: whether nothing is left to drain.
        free: False while nothing may be done for the machine, but for completing.
        now: the present.
    """
    timing = timings.get(held.action.name, DEFAULT_TIMING)
    launching = held.action.transition == "launching"
    verdict = verify_hook(held.action.transition, held.group, facts, held.received_at, now)
    limit = held.time + timing.limit - policy.hook_margin
    if launching:
        limit = min(limit, held.time + policy.launch_timeout)
    drain = free and not launching and not held.action.warms and not emptied
    done = node_ready or not free if launching else not drain
    result: Literal["CONTINUE", "ABANDON"] | None = "CONTINUE" if done or limit <= now else None
    abandoning = launching and not done and result is not None and policy.abandon_failed_launch
    if abandoning:
        # Abandoning terminates the instance: never on an event's word alone.
        result = "ABANDON" if verdict is Verdict.CONFIRMED else None
    beat_at = (held.heartbeat_at or held.time) + timing.heartbeat
    return HookWork(
        held=held,
        drain=drain and limit > now,
        unproven=((drain and limit > now) or abandoning) and verdict is not Verdict.CONFIRMED,
        verdict=verdict,
        limit=limit,
        heartbeat=_heartbeat(held) if result is None and beat_at <= now else None,
        complete=_completion(held, result) if result else None,
        next_at=min(beat_at if beat_at > now else now + timing.heartbeat, limit if limit > now else beat_at),
    )


def _heartbeat(held: HeldHook) -> SendHeartbeat:
    return SendHeartbeat(group=held.group, hook=held.action.name, token=held.action.token)


def _completion(held: HeldHook, result: Literal["CONTINUE", "ABANDON"]) -> CompleteHook:
    return CompleteHook(group=held.group, hook=held.action.name, token=held.action.token, result=result)
