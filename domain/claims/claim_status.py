"""The parts of a claim's status that come from its handle, whose status is written first.

The claim shows the resources' complete live objects, because its users may have no right to read them.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from domain.claims.json_objects import JsonObject, object_at, objects_at, present, value_at, without

_COPIED = ("healthy", "ready", "summary")


def claim_resources(claim: JsonObject, handle: JsonObject, states: Sequence[JsonObject | None]) -> list[JsonObject]:
    before = objects_at(claim, "status", "resources")
    specs = objects_at(handle, "spec", "resources")
    shown = objects_at(handle, "status", "resources")
    entries = [
        _claim_entry(
            before[index] if index < len(before) else {},
            object_at(specs[index] if index < len(specs) else {}, "provider"),
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
    claim: JsonObject, handle: JsonObject, states: Sequence[JsonObject | None], lifespan: JsonObject
) -> JsonObject:
    """The claim's status with the handle's fields. Health, readiness and summary that the handle lacks are removed."""
    before = object_at(claim, "status")
    status = object_at(handle, "status")
    copied: JsonObject = {field: status[field] for field in _COPIED if field in status}
    resources: list[JsonValue] = [*claim_resources(claim, handle, states)]
    return {
        **without(before, (*_COPIED, "resources", "lifespan")),
        **copied,
        **({"resources": resources} if resources or "resources" in before else {}),
        **({"lifespan": lifespan} if lifespan else {}),
    }


def mirrored_lifespan(
    claim: JsonObject,
    handle: JsonObject,
    *,
    maximum: str | None,
    relative_maximum: str | None,
    first_ready: str | None,
) -> JsonObject:
    """The claim's `status.lifespan`: the handle's end, and the given maxima.

    A recorded start or `firstReady` never changes.
    """
    before = object_at(claim, "status", "lifespan")
    recorded = value_at(before, "firstReady")
    has_lifespan = bool(object_at(handle, "spec", "lifespan"))
    mirrored = present(
        end=value_at(handle, "spec", "lifespan", "end"),
        maximum=maximum if has_lifespan else None,
        relativeMaximum=relative_maximum if has_lifespan else None,
        firstReady=recorded if recorded is not None else first_ready,
    )
    return {**without(before, ("end", "maximum", "relativeMaximum", "firstReady")), **mirrored}
