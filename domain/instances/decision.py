"""What the loop is told about an instance: its work as a decision of actions."""

from __future__ import annotations

from datetime import datetime

from domain.decision import Action, Decision, Outcome
from domain.instances.actions import LookAtInstance, action_of
from domain.instances.instance import InstanceWork, work_for_instance
from domain.instances.lifecycle import InstanceWorld
from domain.instances.observed import InstancePhase

_SETTLED = (InstancePhase.LIVE, InstancePhase.STOPPED, InstancePhase.GONE)


def decide_instance(world: InstanceWorld, now: datetime) -> Decision:
    """What should be done for the instance now."""
    work = work_for_instance(world.observed, now)
    if work.close:
        return Decision(phase=work.phase.value, outcome=Outcome.GONE, why="nothing is left to look after")
    actions: list[Action] = [look_at(world, now)] if work.patch else []
    actions += [action_of(step, world) for step in work.steps]
    return Decision(
        phase=work.phase.value,
        outcome=_outcome(work, actions),
        why=work.why or "its label is true",
        actions=tuple(actions),
        waits_for=(work.why,) if work.why and not actions else (),
        deadline=work.deadline,
        at_deadline="decide again" if work.deadline else "",
        owner=world.owned_by,
    )


def look_at(world: InstanceWorld, now: datetime, *, dry_run: bool = False) -> LookAtInstance:
    """The look that takes up where the last one left off."""
    return LookAtInstance(
        key=world.key,
        at=now,
        record=world.record,
        recall=not world.known.recalled,
        version=world.machine.metadata.resource_version if world.machine else "",
        dry_run=dry_run,
    )


def _outcome(work: InstanceWork, actions: list[Action]) -> Outcome:
    if actions:
        return Outcome.WORKING
    return Outcome.SETTLED if work.phase in _SETTLED else Outcome.WAITING
