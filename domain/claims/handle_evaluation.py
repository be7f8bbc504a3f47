"""The evaluation of a handle: its resources, its status and its claim's status.

    claim's edits ─► resource list ─► lifespan ─► definitions ─► creations, updates ─► handle's status ─► claim's status
                                                                                              └─► autoDelete, autoDetach

Edits of the claim reach the handle only if the claim is accepted (`push`). Templates may read values that the pass
computes (readiness, end). If those values change, all steps except the claim's edits and the lifespan are repeated, but
only once, because a random template would change at every repetition. A fault ends only its own step: a handle with
failing templates still expires. `autoDelete` and `autoDetach` read the new statuses; a condition that cannot be
evaluated is false.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from pydantic import JsonValue

from domain.claims.auto_delete_and_detach import condition_holds
from domain.claims.claim_status import claim_status, with_handle_named
from domain.claims.evaluator_interface import Fault, HandlePlan, HandleQuestion, Operations
from domain.claims.faults import collected_in, each_once, summed
from domain.claims.handle_edits import claim_edits
from domain.claims.handle_lifespan import HandleLifespan, claim_lifespan, ended, handle_lifespan
from domain.claims.json_objects import JsonObject, object_at, objects_at, text_at, value_at
from domain.claims.lifespan_templates import handle_terms
from domain.claims.linked_providers import Resources
from domain.claims.periodic_evaluation import by_clock, by_objects, by_own_writes, lifespan_by_own_writes
from domain.claims.provider_resources import resource_list
from domain.claims.references import provider_name, referring
from domain.claims.resource_definitions import definitions, doubled, reference_for
from domain.claims.resource_entries import recomputed
from domain.claims.resource_health import handle_status, health_at, overall
from domain.claims.resources.shared import WaitingFor
from domain.claims.stalled_condition import with_handles_stalled, with_stalled
from domain.claims.template_variables import Scene
from domain.claims.templates.errors import TemplateError
from domain.claims.timestamps import end_of_handle, requested_end_of
from domain.claims.update_filters import update, update_filters
from domain.decision import earliest
from domain.resource import timestamp

SOON = timedelta(seconds=1)
# For each resource, its definition or what it waits for; None if the computation of any definition failed.
Outcomes = Sequence[JsonObject | WaitingFor] | None


class _Look(NamedTuple):
    """One evaluation. `saw` has the statuses of handle and claim that the templates have read."""

    saw: tuple[JsonObject, JsonObject]
    outcomes: Outcomes
    creations: tuple[tuple[int, JsonObject], ...]
    updates: tuple[Operations, ...]
    unevaluated: tuple[str, ...]


def plan_handle(question: HandleQuestion) -> HandlePlan:
    return _Pass(question).plan()


class _Pass:
    def __init__(self, question: HandleQuestion) -> None:
        self.question = question
        self.faults: list[Fault] = []
        self.refused: tuple[str, ...] = ()
        self.scene = Scene.of(question, claim=question.claim, handle=question.handle)

    def plan(self) -> HandlePlan:
        question = self.question
        if question.push and question.claim is not None:
            self._push()
        of_claim, before = tuple(self.faults), self._written()
        self._recompute()
        lifespan = self._settle_lifespan()
        look = self._look(lifespan)
        if look.saw != self._written() and by_own_writes(self.handle, question.providers, newer=question.newer):
            self.faults = [*of_claim]
            self._recompute()
            self.faults += lifespan.faults if lifespan else ()
            look = self._look(lifespan)
        auto_delete, auto_detach = self._holds("autoDelete"), self._holds("autoDetach")
        depends_on_time = by_clock(self.handle, question.claim, question.providers, newer=question.newer)
        faults = each_once(self.faults)
        settled = lifespan.settled if lifespan else None
        return HandlePlan(
            spec=object_at(self.handle, "spec"),
            creations=look.creations,
            updates=look.updates,
            handle_status=with_stalled(object_at(self.handle, "status"), summed(faults), question.now),
            claim_status=self._claim_status(faults),
            requested_end=self._requested_end(lifespan),
            auto_delete=auto_delete,
            auto_detach=auto_detach,
            end=end_of_handle(self.handle),
            look_at=earliest(
                [settled.moves_at if settled else None, None if depends_on_time else self._soon(before, lifespan)]
            ),
            wish=settled.wish if settled else None if question.push else question.honoured,
            end_was_cut=bool(settled and settled.news),
            waits=tuple(self._waits(look.outcomes)),
            refused=self.refused,
            faults=faults,
            unevaluated=look.unevaluated,
            by_clock=depends_on_time,
            by_objects=not look.creations or by_objects(self.handle, question.providers, newer=question.newer),
        )

    @property
    def handle(self) -> JsonObject:
        return self.scene.handle or {}

    def _set_spec(self, **fields: JsonValue) -> None:
        spec: JsonObject = {**object_at(self.handle, "spec"), **fields}
        updated: JsonObject = {name: value for name, value in spec.items() if value is not None}
        self.scene = replace(self.scene, handle={**self.handle, "spec": updated})

    def _resources(self) -> Resources:
        return Resources(self.scene, self.question)

    def _look(self, lifespan: HandleLifespan | None) -> _Look:
        saw = self._written()
        outcomes = self._define()
        self._record(outcomes)
        creations, updates = self._deeds(outcomes)
        return _Look(saw, outcomes, creations, updates, self._show(outcomes, lifespan))

    def _written(self) -> tuple[JsonObject, JsonObject]:
        return object_at(self.handle, "status"), object_at(self.scene.claim, "status")

    def _soon(self, before: tuple[JsonObject, JsonObject], lifespan: HandleLifespan | None) -> datetime | None:
        """When to evaluate again if the lifespan was computed from statuses that this pass changes; else None."""
        if lifespan is None or not self.question.shown:  # no lifespan was computed, or the claim is not written
            return None
        if before == self._written() or not lifespan_by_own_writes(self.handle):
            return None
        with suppress(TemplateError):
            if handle_terms(self.scene) == lifespan.terms:  # the new statuses give the same terms
                return None
        return self.question.now + SOON

    def _push(self) -> None:
        name = text_at(self.scene.claim, "metadata", "name")
        with collected_in(self.faults, f"ResourceClaim {name}, the claim's templates"):
            edits = claim_edits(self.scene, self.question.assigned)
            self.refused = edits.refused
            self._set_entries(edits.resources)
            self._set_spec(provider=edits.provider)

    def _recompute(self) -> None:
        name = text_at(self.handle, "spec", "provider", "name")
        if not name:
            return
        with collected_in(self.faults):
            yielded = resource_list(self.scene, name)
            self._set_entries(recomputed(objects_at(self.handle, "spec", "resources"), yielded, own=name))

    def _settle_lifespan(self) -> HandleLifespan | None:
        if self.scene.claim is None:
            return None
        question = self.question
        # If a claim that cannot record its first readiness counted as ready, its lifespan would restart in each pass.
        ready = question.shown and self._is_ready()
        lifespan = handle_lifespan(self.scene, ready=ready, accepted=question.push, honoured=question.honoured)
        self.faults += lifespan.faults
        claim = ended(self.scene.claim, lifespan.requested_end)
        self.scene = replace(self.scene, handle=ended(self.handle, lifespan.end), claim=claim)
        return lifespan

    def _is_ready(self) -> bool:
        """Computed before the status, because the lifespan's end may depend on readiness."""
        resources = self._resources()
        each = (health_at(resources, index) for index in range(len(resources.entries)))
        return overall(health.ready for health, _ in each) is True

    def _set_entries(self, entries: Sequence[JsonObject]) -> None:
        listed: list[JsonValue] = [*entries]
        if listed or "resources" in object_at(self.handle, "spec"):
            self._set_spec(resources=listed)

    def _define(self) -> Outcomes:
        resources = self._resources()
        with collected_in(self.faults):
            outcomes = definitions(resources)
            for index, fault in doubled(resources, outcomes).items():
                self.faults.append(fault)
                outcomes[index] = WaitingFor.DEFINITION
            return outcomes
        return None

    def _record(self, outcomes: Outcomes) -> None:
        resources = self._resources()
        entries = []
        for index, entry in enumerate(resources.entries):
            outcome = outcomes[index] if outcomes is not None else WaitingFor.DEFINITION
            recorded = (
                resources.recorded(index)
                if isinstance(outcome, WaitingFor)
                else reference_for(resources, index, outcome)
            )
            named = referring(self.scene.names, entry, self.scene.providers)
            entries.append({**named, "reference": recorded} if recorded else named)
        self._set_entries(entries)

    def _deeds(self, outcomes: Outcomes) -> tuple[tuple[tuple[int, JsonObject], ...], tuple[Operations, ...]]:
        resources = self._resources()
        creations: list[tuple[int, JsonObject]] = []
        updates: list[Operations] = []
        for index, outcome in enumerate(outcomes or ()):
            state = resources.state(index)
            if isinstance(outcome, WaitingFor):
                continue
            if state is None:
                creations.append((index, outcome))
                continue
            provider = provider_name(resources.entries[index])
            filters = update_filters(value_at(self.scene.providers.get(provider), "spec", "updateFilters"))
            with collected_in(self.faults, f"ResourceProvider {provider}, updateFilters"):
                if patch := update(state, outcome, filters, own_path=self.scene.names.own_annotations_path):
                    updates.append(Operations(index=index, patch=tuple(each.as_json() for each in patch)))
        return tuple(creations), tuple(updates)

    def _waits(self, outcomes: Outcomes) -> Iterator[str]:
        for index, outcome in enumerate(outcomes or ()):
            if isinstance(outcome, WaitingFor):
                entry = self._resources().entries[index]
                yield f"resource {text_at(entry, 'name') or index} of {provider_name(entry)} waits for {_WHAT[outcome]}"

    def _show(self, outcomes: Outcomes, lifespan: HandleLifespan | None) -> tuple[str, ...]:
        made = handle_status(self._resources(), self._waiting_for(outcomes))
        self.scene = replace(self.scene, handle={**self.handle, "status": made.status})
        claim = self.scene.claim
        if claim is not None and lifespan is not None:
            shown = claim_lifespan(claim, self.handle, lifespan)
            named = with_handle_named(self.scene.names, claim, self.handle)
            status = claim_status(named, self.handle, self.question.states, shown, self.question.unreadable)
            self.scene = replace(self.scene, claim={**claim, "status": status})
        return made.faults

    def _waiting_for(self, outcomes: Outcomes) -> list[str | None]:
        if outcomes is None:  # keep the waits that the status shows
            before = objects_at(self.handle, "status", "resources")
            return [text_at(entry, "waitingFor") or None for entry in before]
        return [outcome.value if isinstance(outcome, WaitingFor) else None for outcome in outcomes]

    def _claim_status(self, faults: Sequence[Fault]) -> JsonObject | None:
        if self.scene.claim is None:
            return None
        status = object_at(self.scene.claim, "status")
        return with_handles_stalled(status, faults, self.question.now, accepted=self.question.push)

    def _requested_end(self, lifespan: HandleLifespan | None) -> str:
        requested = lifespan.requested_end if lifespan else None
        if requested is None or requested == requested_end_of(self.question.claim or {}):
            return ""
        return timestamp(requested)

    def _holds(self, field: str) -> bool:
        with collected_in(self.faults):
            return self.question.push and condition_holds(self.scene, field)
        return False


_WHAT = {
    WaitingFor.CLAIM: "a claim",
    WaitingFor.LINKED: "a linked resource",
    WaitingFor.DEFINITION: "a name of its own: another resource of the handle defines the same object",
}
