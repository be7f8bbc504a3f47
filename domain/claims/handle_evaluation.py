"""The evaluation of a handle: its resources, its status and its claim's status.

    claim's edits ─► resource list ─► lifespan ─► definitions ─► creations, updates ─► handle's status ─► claim's status
                                                                                              └─► autoDelete, autoDetach

Edits of the claim reach the handle only if the claim is accepted (`push`). Templates may read what the pass writes
(readiness, end). If those values change, the steps except the first and the lifespan are repeated; only once, because
templates may change their result each time. A fault ends only its own step: a handle with failing templates still
expires. `autoDelete` and `autoDetach` read the new statuses; a condition that cannot be evaluated is false.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from pydantic import JsonValue

from domain.claims import RESOURCE_HANDLE
from domain.claims.claim_status import claim_status
from domain.claims.evaluator_interface import Fault, HandlePlan, HandleQuestion, Operations
from domain.claims.faults import collected_in, each_once, summed
from domain.claims.handle_expiry import HandleLifespan, claim_lifespan, ended, handle_lifespan
from domain.claims.json_objects import JsonObject, entry_at, object_at, objects_at, text_at, value_at
from domain.claims.lifespan_templates import handle_terms
from domain.claims.linked_providers import Resources
from domain.claims.marks import reference_to
from domain.claims.periodic_evaluation import by_clock, by_objects, by_own_writes, lifespan_by_own_writes
from domain.claims.provider_resources import Scene, provider_name, referring, resource_list
from domain.claims.resource_definitions import definitions, doubled, reference_for, reference_of, where
from domain.claims.resource_entries import pushed, recomputed
from domain.claims.resource_health import handle_status, health_at, overall
from domain.claims.resources.shared import WaitingFor
from domain.claims.stalled_condition import with_handles_stalled, with_stalled
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
        if look.saw != self._written() and self._reads_own_writes():
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

    def _reads_own_writes(self) -> bool:
        return by_own_writes(self.handle, self.question.providers, newer=self.question.newer)

    def _push(self) -> None:
        with collected_in(self.faults, self._where("the claim's templates")):
            edits = pushed(self.scene, self.question.assigned)
            self.refused = edits.refused
            self._set_entries(edits.resources)
            self._set_spec(provider=edits.provider)

    def _recompute(self) -> None:
        name = text_at(self.handle, "spec", "provider", "name")
        if not name:
            return
        with collected_in(self.faults):
            yielded = resource_list(self.scene, name, self._values(name))
            self._set_entries(recomputed(objects_at(self.handle, "spec", "resources"), yielded, own=name))

    def _values(self, provider: str) -> JsonObject:
        accepted = object_at(self.scene.claim, "status", "provider")
        values = accepted.get("parameterValues")
        if text_at(accepted, "name") == provider and isinstance(values, dict):
            return values
        return object_at(self.handle, "spec", "provider", "parameterValues")

    def _settle_lifespan(self) -> HandleLifespan | None:
        if self.scene.claim is None:
            return None
        question = self.question
        # If the claim cannot record its first readiness, the lifespan would restart in each pass.
        ready = question.shown and self._is_ready()
        lifespan = handle_lifespan(self.scene, ready=ready, accepted=question.push, honoured=question.honoured)
        self.faults += lifespan.faults
        claim = ended(self.scene.claim, lifespan.requested_end)
        self.scene = replace(self.scene, handle=ended(self.handle, lifespan.end), claim=claim)
        return lifespan

    def _is_ready(self) -> bool:
        """This is computed before the status, because the lifespan's end may depend on it."""
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
            for index, owner in doubled(resources, outcomes).items():
                self.faults.append(_doubled(resources, outcomes[owner], index, owner))
                outcomes[index] = WaitingFor.DEFINITION
            return outcomes
        return None

    def _record(self, outcomes: Outcomes) -> None:
        resources = self._resources()
        entries = []
        for index, entry in enumerate(resources.entries):
            outcome = outcomes[index] if outcomes is not None else WaitingFor.DEFINITION
            if isinstance(outcome, WaitingFor):
                recorded = resources.recorded(index)
            else:
                recorded = reference_for(resources, index, outcome)
            entries.append(
                {
                    **referring(self.scene.names, entry, self.scene.providers),
                    **({"reference": recorded} if recorded else {}),
                }
            )
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
            status = claim_status(self._repaired(claim), self.handle, self._shown_states(claim), shown)
            self.scene = replace(self.scene, claim={**claim, "status": status})
        return made.faults

    def _shown_states(self, claim: JsonObject) -> list[JsonObject | None]:
        states, before = [*self.question.states], objects_at(claim, "status", "resources")
        for index in self.question.unreadable:
            states[index] = object_at(entry_at(before, index), "state") or None
        return states

    def _waiting_for(self, outcomes: Outcomes) -> list[str | None]:
        if outcomes is None:  # the waits that the status shows
            before = objects_at(self.handle, "status", "resources")
            return [text_at(entry, "waitingFor") or None for entry in before]
        return [outcome.value if isinstance(outcome, WaitingFor) else None for outcome in outcomes]

    def _repaired(self, claim: JsonObject) -> JsonObject:
        status, reference = object_at(claim, "status"), reference_to(self.scene.names, RESOURCE_HANDLE, self.handle)
        before = object_at(status, "resourceHandle")
        known = before if text_at(before, "name") == reference["name"] else {}
        return {**claim, "status": {**status, "resourceHandle": {**known, **reference}}}

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
        claim = self.scene.claim
        expression = text_at(claim, "spec", field, "when")
        if claim is None or not expression or not self.question.push:
            return False
        provider = self.scene.providers.get(text_at(claim, "spec", "provider", "name"))
        variables: dict[str, object] = {
            "resource_claim": self.scene.claim_view,
            "resource_handle": self.scene.handle_view,
            "resource_provider": None if provider is None else self.scene.provider_view(provider),
            "metadata": object_at(claim, "metadata"),
            "spec": object_at(claim, "spec"),
            "status": object_at(claim, "status"),
        }
        with collected_in(self.faults):
            what = f"{self._where('spec')}.{field}.when"
            weaker = self.scene.handle_vars if provider is None else self.scene.vars(provider)
            return self.scene.renderer.condition(expression, variables, what=what, lazy=weaker)
        return False

    def _where(self, part: str) -> str:
        return f"ResourceClaim {text_at(self.scene.claim, 'metadata', 'name')}, {part}"


_WHAT = {
    WaitingFor.CLAIM: "a claim",
    WaitingFor.LINKED: "a linked resource",
    WaitingFor.DEFINITION: "a definition with a name of its own",
}


def _doubled(resources: Resources, defined: JsonObject | WaitingFor, index: int, owner: int) -> Fault:
    there = reference_of(defined) if isinstance(defined, dict) else {}
    place = "/".join(filter(None, (text_at(there, "namespace"), text_at(there, "name"))))
    message = (
        f"{where(resources, index)} would be the same {text_at(there, 'kind')} {place} as {where(resources, owner)}: "
        "give one of them a metadata.name or a metadata.generateName of its own"
    )
    return Fault(reason="ResourceDoubled", message=message)
