from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from domain.control_annotations import RETRIED
from domain.decision import Action, Decision, World
from domain.threescale.actions import ShowStatus
from domain.threescale.calls import Call
from domain.threescale.conditions import INVALID, lasts
from domain.threescale.drift_schedule import DRIFT, LOOKED
from domain.threescale.notices import notices
from domain.threescale.observed import Observed, Phase, Unreadable, acts, invalid, outcome_of, status_in_sync
from domain.threescale.owner_references import belonging
from domain.threescale.refused_calls import are_temporary
from domain.writes import JsonPatch


def decide(world: World, now: datetime) -> Decision:
    if isinstance(world, Unreadable):
        why = f"the object cannot be read: {world.problem}"
        return acts(Phase.INVALID, why, waits_for=("a readable object",))
    if not isinstance(world, Observed) or not world.exists:
        return acts(Phase.GONE, "it does not exist any more")
    decision = _written(world, now) or _owned(world) or world.decide(now)
    if world.mute:
        decision = _with(decision, (each for each in decision.actions if not isinstance(each, ShowStatus)))
    if _is_passing(world, decision, now):
        decision = _with(decision.model_copy(update={"phase": Phase.SYNCING}), _still_in_sync(world, decision, now))
    elif decision.phase == Phase.SYNCED and not decision.actions:
        decision = _with(decision, world.patched(_noted(world)))
    elif world.unsure:
        decision = decision.model_copy(update={"actions": tuple(map(_unsure, decision.actions))})
    announced, owner = notices(world.resource.kind_of, decision), world.resource.owner
    if announced or owner:
        decision = decision.model_copy(update={"notices": (*announced, *decision.notices), "owner": owner})
    return decision


def _with(decision: Decision, actions: Iterable[Action]) -> Decision:
    listed = tuple(actions)
    outcome = outcome_of(decision.phase, listed)
    return decision.model_copy(update={"actions": listed, "outcome": outcome})


def _unsure(action: Action) -> Action:
    return action.model_copy(update={"unsure": True}) if isinstance(action, Call) else action


def _written(world: Observed, now: datetime) -> Decision | None:
    if not world.unwritable:
        return None
    blocker = invalid(world.unwritable)
    # The cause may be corrected without an event: a CRD applied late, a webhook.
    return world.blocked(blocker, now, until=world.observe_again_at(INVALID, now))


def _owned(world: Observed) -> Decision | None:
    patch = belonging(world.resource, world.provider, world.tenants)
    return acts(Phase.NEW, "set its Tenant as owner", *world.patched(patch)) if patch else None


def _is_passing(world: Observed, decision: Decision, now: datetime) -> bool:
    """Whether the decision only waits for retries, and all refusals are temporary, so the status does not show them."""
    idle = all(isinstance(each, ShowStatus) for each in decision.actions)
    return idle and decision.phase in (Phase.FAILED, Phase.DELETING) and are_temporary(world.refusals, now)


def _still_in_sync(world: Observed, decision: Decision, now: datetime) -> tuple[Action, ...]:
    if world.slot_held_for is None or world.reported_in_sync:
        return ()
    if not lasts(world.slot_held_for + max(timedelta(0), (decision.deadline or now) - now)):
        return ()
    status = status_in_sync(world.resource, decision.why, now)
    return (ShowStatus(**world.own({"status": status}), in_sync=True),) if status else ()


def _noted(world: Observed) -> JsonPatch:
    """The patch that records a sweep's comparison and a person's retry as done; empty if both are recorded already."""
    annotations = world.resource.metadata.annotations
    annotated = {LOOKED: annotations.get(DRIFT, ""), **({RETRIED: world.retry} if world.retry else {})}
    noted = {name: value for name, value in annotated.items() if annotations.get(name, "") != value}
    return {"metadata": {"annotations": noted}} if noted else {}
