"""A claim's changes to its handle: the provider with its values, or the listed resources.

In list mode each resource of the claim belongs to the handle's entry with its provider and name, wherever it is listed,
else to the entry at its index if that one has its provider, its name or no name. Other resources are new and are
appended. A change of the provider is refused. Claim edits are merged over the handle's templates without filters, and
remove nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from domain.claims.deep_merge import merge, same
from domain.claims.handle_creation import effective_provider
from domain.claims.json_objects import JsonObject, entry_at, object_at, objects_at, only, text_at
from domain.claims.references import provider_name
from domain.claims.resource_entries import paired
from domain.claims.template_variables import Scene
from domain.model import Model


class ClaimEdits(Model):
    """The handle's new `spec.provider` (None in list mode) and `spec.resources`."""

    provider: JsonObject | None
    resources: tuple[JsonObject, ...]
    refused: tuple[str, ...] = ()  # a sentence each, for a warning


def claim_edits(scene: Scene, provider_names: Sequence[str]) -> ClaimEdits:
    """In list mode, `provider_names` has each entry's provider. Raises ProviderMissing."""
    claim, handle = scene.claim or {}, scene.handle or {}
    entries = objects_at(handle, "spec", "resources")
    if object_at(claim, "spec", "provider"):
        return ClaimEdits(provider=effective_provider(claim), resources=tuple(entries))
    refused: list[str] = []
    listed = objects_at(claim, "spec", "resources")
    places = entry_places(handle, listed, provider_names)
    for index, (resource, assigned, place) in enumerate(zip(listed, provider_names, places, strict=True)):
        if place >= len(entries):
            reference = scene.reference(scene.provider(assigned))
            entries.append({**only(resource, "name", "template"), "provider": reference})
        elif provider_name(entries[place]) != assigned:
            refused.append(
                f"resource {index} keeps ResourceProvider {provider_name(entries[place])} and its template: "
                f"switching to ResourceProvider {assigned} is refused"
            )
        else:
            entries[place] = _merged(entries[place], resource)
    return ClaimEdits(provider=None, resources=tuple(entries), refused=tuple(refused))


def entry_places(handle: JsonObject, listed: Sequence[JsonObject], provider_names: Sequence[str]) -> list[int]:
    """The index of each listed resource's entry in the handle, which may be an entry to append."""
    entries = objects_at(handle, "spec", "resources")
    wanted: list[JsonObject] = [
        {**only(resource, "name"), "provider": {"name": name}}
        for resource, name in zip(listed, provider_names, strict=True)
    ]
    found = paired(entries, wanted)
    new = count(len(entries))
    places = []
    for index, (resource, place) in enumerate(zip(wanted, found, strict=True)):
        if place is None and index not in found and _is_edited(entry_at(entries, index), resource):
            place = index
        places.append(next(new) if place is None else place)
    return places


def _is_edited(entry: JsonObject, resource: JsonObject) -> bool:
    """Whether the resource may be the entry under another name or with another provider."""
    names = {text_at(entry, "name"), text_at(resource, "name")}
    return bool(entry) and (provider_name(entry) == provider_name(resource) or len(names) == 1 or "" in names)


def _merged(entry: JsonObject, resource: JsonObject) -> JsonObject:
    template = object_at(resource, "template")
    if not template:
        return entry
    before = object_at(entry, "template")
    after = merge(before, template, overwrite=True)
    return entry if same(before, after) else {**entry, "template": after}
