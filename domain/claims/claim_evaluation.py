"""The evaluation of a claim: the desired claim, and its requirements for a handle.

    shape of the spec ─► provider(s) ─► approval ─► initialisation ─► validation ─► requirements for a handle
         └ fault            └ fault       └ waits                        └ invalid      (only while it has none)

Templates see the claim as it will be written. A claim that stops at a step keeps its handle, which is reconciled
without the claim's changes.

A claim has either `spec.provider` (provider mode) or `spec.resources` (list mode).
"""

from __future__ import annotations

from pydantic import JsonValue

from domain.claims.claim_approval import approved, pending_status
from domain.claims.claim_metadata import missing_on_claim
from domain.claims.claim_spec_validation import check_spec, validation_errors
from domain.claims.evaluator_interface import ClaimPlan, ClaimQuestion, Fault, Halt, WantedEntry
from domain.claims.faults import FAULTS, fault_of
from domain.claims.handle_creation import creation_forbidden, handle_for_claim, resources_wanted, wanted_entries
from domain.claims.handle_edits import entry_places
from domain.claims.json_objects import (
    JsonObject,
    entry_at,
    object_at,
    objects_at,
    text_at,
    value_at,
    with_added,
    with_spec,
    without,
)
from domain.claims.parameter_acceptance import provider_status, recorded_provider, settle_parameters
from domain.claims.periodic_evaluation import claim_by_clock
from domain.claims.references import provider_name
from domain.claims.resource_defaults import with_defaults
from domain.claims.stalled_condition import with_own_stalled
from domain.claims.template_variables import Scene
from domain.resource import timestamp


def plan_claim(question: ClaimQuestion) -> ClaimPlan:
    return _Pass(question).plan()


class _Pass:
    def __init__(self, question: ClaimQuestion) -> None:
        self.question = question
        self.claim = question.claim
        self.assigned = question.assigned
        self.places: list[int] = []  # the index in the status of each listed resource
        self.provider = text_at(question.claim, "spec", "provider", "name")
        self.annotations: dict[str, str] = {}
        self.labels: dict[str, str] = {}
        self.wanted: tuple[WantedEntry, ...] = ()
        self.creation: JsonObject | None = None
        self.no_creation = ""
        self.fault: Fault | None = None

    def plan(self) -> ClaimPlan:
        try:
            halt = self._steps()
        except FAULTS as error:
            halt, self.fault = Halt.FAULT, fault_of(error)
        before = value_at(self.question.claim, "spec", "resources")
        after = value_at(self.claim, "spec", "resources")
        return ClaimPlan(
            annotations=self.annotations,
            labels=self.labels,
            resources=None if after == before else tuple(objects_at(self.claim, "spec", "resources")),
            status=self._status(),
            halt=halt,
            fault=self.fault,
            wanted=self.wanted,
            wanted_pool=text_at(self.claim, "metadata", "annotations", self.question.names.pool_name_key),
            provider=self.provider,
            creation=self.creation,
            no_creation=self.no_creation,
            by_clock=self._by_clock(halt),
        )

    def _by_clock(self, halt: Halt) -> bool:
        question = self.question
        invalid = halt is Halt.INVALID
        waits = (question.handle is None and halt is not Halt.APPROVAL) or invalid
        return waits and claim_by_clock(self.claim, question.providers, invalid=invalid, newer=question.newer)

    def _steps(self) -> Halt:
        check_spec(self.claim, self.question.unassigned)
        if self.provider:
            provider = self._scene().provider(self.provider)
            self._set_status(provider=recorded_provider(self.claim, self.question.handle))
            self.annotations = missing_on_claim(self.claim, provider, "annotations")
            self.labels = missing_on_claim(self.claim, provider, "labels")
            self.claim = with_added(self.claim, annotations=self.annotations, labels=self.labels)
            if not approved(self.claim, provider, bound=self.question.handle is not None):
                self.claim = {**self.claim, "status": pending_status(self.claim, provider)}
                return Halt.APPROVAL
        else:
            self._show_assigned()
        self._initialise()
        if self._is_invalid():
            return Halt.INVALID
        if self.question.handle is None:
            self._needs()
        return Halt.NONE

    def _status(self) -> JsonObject:
        bound = self.question.handle is not None
        return with_own_stalled(object_at(self.claim, "status"), self.fault, self.question.now, bound=bound)

    def _scene(self) -> Scene:
        question = self.question
        return Scene.of(question, claim=self.claim, handle=question.handle)

    def _set_status(self, **fields: JsonValue) -> None:
        self.claim = {**self.claim, "status": {**object_at(self.claim, "status"), **fields}}

    def _show_assigned(self) -> None:
        """Show each resource's provider in the status. The status of a bound claim keeps the providers that it has
        already, and lists the resources in the handle's order.
        """
        bound, scene = self.question.handle is not None, self._scene()
        before = objects_at(self.claim, "status", "resources")
        listed = objects_at(self.claim, "spec", "resources")
        self.places = entry_places(self.claim, self.question.handle or {}, self.assigned)
        shown = {index: known for index, known in enumerate(before) if bound}
        for entry, name, place in zip(listed, self.assigned, self.places, strict=True):
            known = entry_at(before, place)
            provider = scene.reference(scene.provider(name))
            recorded = object_at(known, "provider") if bound and provider_name(known) else provider
            named: JsonObject = {"name": entry["name"]} if text_at(entry, "name") else {}
            shown[place] = {**known, **named, "provider": recorded}
        self._set_status(resources=[shown.get(index, {}) for index in range(max(shown, default=-1) + 1)])

    def _initialise(self) -> None:
        if self.question.names.init_timestamp_annotation in object_at(self.claim, "metadata", "annotations"):
            return
        if not self.provider:
            resources: list[JsonValue] = [*with_defaults(self._scene(), self.assigned)]
            self.claim = with_spec(self.claim, resources=resources)
        mark = {self.question.names.init_timestamp_annotation: timestamp(self.question.now)}
        self.annotations |= mark
        self.claim = with_added(self.claim, annotations=mark)

    def _is_invalid(self) -> bool:
        if self.provider:
            settled = settle_parameters(self._scene(), self.question.providers[self.provider])
            self._set_status(provider=provider_status(self.claim, settled))
            return bool(settled.errors)
        errors = dict(zip(self.places, validation_errors(self._scene(), self.assigned), strict=True))
        shown: list[JsonValue] = []
        for index, entry in enumerate(objects_at(self.claim, "status", "resources")):
            text = errors.get(index)
            cleared = without(entry, ("validationError",))
            shown.append(cleared if text is None else {**cleared, "validationError": text})
        self._set_status(resources=shown)
        return any(text is not None for text in errors.values())

    def _needs(self) -> None:
        """Compute what the claim requires of a free handle, and the body of a new handle."""
        scene = self._scene()
        resources = resources_wanted(scene, self.assigned)
        self.wanted = wanted_entries(scene, resources)
        if self.provider:
            before = objects_at(self.claim, "status", "resources")
            shown: list[JsonValue] = [
                {**entry_at(before, index), **without(resource, ("template",))}
                for index, resource in enumerate(resources)
            ]
            self._set_status(resources=shown)
        self.no_creation = creation_forbidden(scene, resources)
        if self.no_creation:
            return
        try:
            self.creation = handle_for_claim(scene, resources)
        except FAULTS as error:  # a free handle can still be bound
            self.fault = fault_of(error)
            self.no_creation = self.fault.message
