"""Turns an instance's work (`instance_lifecycle.py`) into a decision for the engine."""

from __future__ import annotations

from datetime import datetime, timedelta

from domain.decision import Action, Decision, Outcome, earliest
from domain.instances.actions import FindNode, LookAtInstance
from domain.instances.instance_lifecycle import InstanceWork, work_for_instance
from domain.instances.lifecycle_hooks import served
from domain.instances.observed import InstanceWorld
from domain.instances.phases import InstancePhase

# A Node takes some minutes to join its cluster. Each search lists the Nodes of the workload cluster.
FIND_AGAIN = timedelta(seconds=30)
_SETTLED = (InstancePhase.LIVE, InstancePhase.STOPPED, InstancePhase.GONE)


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
        record=world.record.model_copy(update={"seen": ()}),  # labels do not depend on keys
        recall=not world.known.recalled,
        tags=world.tags,
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
