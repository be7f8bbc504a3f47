"""The parts of a claim's status that come from its handle, whose status is written first.

The claim shows the resources' complete live objects, because its users may have no right to read them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from domain.claims import RESOURCE_HANDLE
from domain.claims.domain_names import DomainNames
from domain.claims.json_objects import JsonObject, entry_at, object_at, objects_at, present, text_at, value_at, without
from domain.claims.references import reference_to

_COPIED = ("healthy", "ready", "summary")


def claim_resources(claim: JsonObject, handle: JsonObject, states: Sequence[JsonObject | None]) -> list[JsonObject]:
    before = objects_at(claim, "status", "resources")
    specs = objects_at(handle, "spec", "resources")
    shown = objects_at(handle, "status", "resources")
    entries = [
        _claim_entry(
            entry_at(before, index),
            object_at(entry_at(specs, index), "provider"),
            shown[index],
            states[index] if index < len(states) else None,
        )
        for index in range(len(shown))
    ]
    return entries + before[len(shown) :]


def _claim_entry(before: JsonObject, provider: JsonObject, shown: JsonObject, state: JsonObject | None) -> JsonObject:
    error = present(validationError=value_at(before, "validationError"))
    name = present(name=value_at(before, "name") or value_at(shown, "name"))
    return {**({"provider": provider} if provider else {}), **shown, **name, **error, **present(state=state)}


def claim_status(
    claim: JsonObject,
    handle: JsonObject,
    states: Sequence[JsonObject | None],
    lifespan: JsonObject,
    unreadable: Iterable[int] = (),
) -> JsonObject:
    """Health, readiness and summary that the handle lacks are removed. Unreadable resources keep their states."""
    before, states = object_at(claim, "status"), [*states]
    for index in unreadable:
        states[index] = object_at(entry_at(objects_at(before, "resources"), index), "state") or None
    status = object_at(handle, "status")
    copied: JsonObject = {field: status[field] for field in _COPIED if field in status}
    resources: list[JsonValue] = [*claim_resources(claim, handle, states)]
    return {
        **without(before, (*_COPIED, "resources", "lifespan")),
        **copied,
        **({"resources": resources} if resources or "resources" in before else {}),
        **({"lifespan": lifespan} if lifespan else {}),
    }


def with_handle_named(names: DomainNames, claim: JsonObject, handle: JsonObject) -> JsonObject:
    """The claim, with a reference to the handle in its status."""
    status, reference = object_at(claim, "status"), reference_to(names, RESOURCE_HANDLE, handle)
    before = object_at(status, "resourceHandle")
    known = before if text_at(before, "name") == reference["name"] else {}
    return {**claim, "status": {**status, "resourceHandle": {**known, **reference}}}
