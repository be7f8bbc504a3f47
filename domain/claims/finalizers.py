from __future__ import annotations

from domain.claims import RESOURCE_HANDLE
from domain.claims.domain_names import DomainNames
from domain.claims.json_objects import JsonObject, text_at, value_at, with_added, with_metadata
from domain.control_annotations import RETRIED, RETRY
from domain.identity import Kind


def in_hand(names: DomainNames, kind: Kind, obj: JsonObject) -> JsonObject:
    """The object with our finalizer and, if it requests a retry, with the annotation that marks the retry as done."""
    taken = with_metadata(obj, finalizers=_with_ours(names, kind, obj))
    token = text_at(obj, "metadata", "annotations", RETRY)
    return with_added(taken, annotations={RETRIED: token}) if token else taken


def finalizers_of(obj: JsonObject) -> list[str]:
    found = value_at(obj, "metadata", "finalizers")
    return [str(each) for each in found] if isinstance(found, list) else []


def others_finalizers(names: DomainNames, obj: JsonObject) -> list[str]:
    return [each for each in finalizers_of(obj) if each not in names.our_finalizers]


def is_in_hand(names: DomainNames, obj: JsonObject) -> bool:
    return len(others_finalizers(names, obj)) < len(finalizers_of(obj))


def _with_ours(names: DomainNames, kind: Kind, obj: JsonObject) -> list[str]:
    held = finalizers_of(obj)
    if kind is RESOURCE_HANDLE:
        held = [each for each in held if each != names.former_finalizer]
    return held if names.finalizer in held else [names.finalizer, *held]
