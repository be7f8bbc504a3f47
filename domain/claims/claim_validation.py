"""Which claims have an invalid spec. `parameters.py` and `schema_validation.py` validate the values in it."""

from __future__ import annotations

from domain.claims.evaluator_interface import Fault
from domain.claims.faults import Faulty
from domain.claims.json_objects import JsonObject, text_at, value_at
from domain.claims.provider_assignment import INVALID_RESOURCES
from domain.claims.timestamps import start_of

INVALID_SPEC = "InvalidSpec"
PROVIDER_IMMUTABLE = "ProviderImmutable"


def check_spec(claim: JsonObject, unassigned: Fault | None) -> None:
    """Raises Faulty, UnreadableMoment."""
    start_of(claim)
    entries = value_at(claim, "spec", "resources")
    if value_at(claim, "spec", "provider") is not None:
        if entries is not None:
            raise Faulty(INVALID_SPEC, "spec.provider and spec.resources exclude each other: remove one of them")
        provider, recorded = text_at(claim, "spec", "provider", "name"), text_at(claim, "status", "provider", "name")
        if not provider:
            raise Faulty(INVALID_SPEC, "spec.provider has no name")
        if recorded and recorded != provider:
            message = f"spec.provider.name is immutable: it is {recorded}, and may not change to {provider}"
            raise Faulty(PROVIDER_IMMUTABLE, message)
        return
    if entries is None:
        raise Faulty(INVALID_SPEC, "the spec has neither provider nor resources: add one of them")
    if not entries:
        raise Faulty(INVALID_RESOURCES, "spec.resources is empty")
    if unassigned:
        raise Faulty(unassigned.reason, unassigned.message)
