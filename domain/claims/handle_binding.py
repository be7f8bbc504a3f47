"""Labels and spec of a free handle when it is bound to a claim.

The claim's resource names and provider replace the handle's, and missing resources are added. The handle's
next pass merges the templates. A default lifespan starts at the binding; a handle without a default lifespan keeps the
end that it had while it was free.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from domain.claims import RESOURCE_CLAIM
from domain.claims.evaluator_interface import BindingQuestion, HandleBody, WantedEntry
from domain.claims.faults import FAULTS, fault_of
from domain.claims.handle_creation import claim_labels, effective_provider
from domain.claims.handle_lifespan import ended
from domain.claims.json_objects import JsonObject, object_at, objects_at, without
from domain.claims.lifespan_end import end_at_binding
from domain.claims.lifespan_templates import handle_terms
from domain.claims.references import reference_to
from domain.claims.template_variables import Scene
from domain.claims.timestamps import end_of_handle, requested_end_of


def plan_binding(question: BindingQuestion) -> HandleBody:
    """If the body has a fault, the handle must not be bound."""
    claim, handle = question.claim, question.handle
    holder = reference_to(question.names, RESOURCE_CLAIM, claim)
    spec: JsonObject = {**object_at(handle, "spec"), "resourceClaim": holder}
    spec["resources"] = _side_by_side(objects_at(spec, "resources"), question.wanted)
    spec = without(spec, ("provider",))
    if object_at(claim, "spec", "provider"):
        spec["provider"] = effective_provider(claim)
    bound: JsonObject = {**handle, "spec": spec}
    scene = Scene.of(question, claim=claim, handle=bound)
    try:
        end = end_at_binding(
            handle_terms(scene),
            current=end_of_handle(handle),
            requested_end=requested_end_of(claim),
            now=question.now,
        )
    except FAULTS as error:
        return HandleBody(fault=fault_of(error))
    return HandleBody(labels=claim_labels(question.names, claim), spec=object_at(ended(bound, end), "spec"))


def _side_by_side(held: Sequence[JsonObject], wanted: Sequence[WantedEntry]) -> list[JsonValue]:
    entries: list[JsonValue] = []
    for index, resource in enumerate(wanted):
        name: JsonObject = {"name": resource.name} if resource.name else {}
        if index < len(held):
            entries.append({**without(held[index], ("name",)), **name})
        else:
            template: JsonObject = {"template": resource.template} if resource.template else {}
            entries.append({**name, "provider": resource.reference, **template})
    return [*entries, *held[len(wanted) :]]
