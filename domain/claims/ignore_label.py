"""The label `ignore`: Perdure ignores every object with this label, whatever its value."""

from __future__ import annotations

from domain.claims.domain_names import DomainNames
from domain.claims.json_objects import JsonObject, is_deleting, object_at
from domain.claims.references import handle_name, is_detached


def is_left_alone(names: DomainNames, obj: JsonObject) -> bool:
    return names.ignore_label in object_at(obj, "metadata", "labels")


def is_managed(names: DomainNames, claim: JsonObject) -> bool:
    return not (is_deleting(claim) or is_left_alone(names, claim))


def is_unbound(names: DomainNames, claim: JsonObject) -> bool:
    """Whether the binder's workflow handles the claim."""
    return is_managed(names, claim) and not handle_name(claim) and not is_detached(claim)
