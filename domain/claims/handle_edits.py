"""A claim's changes to its handle: the provider with its values, or the listed resources.

In list mode, each resource of the claim changes one entry of the handle, found by the first of these rules that fits:

1. provider and name are the same, at any index,
2. the name is the same,
3. the index is the same, and either the provider is the same, or the resource or the entry has no name.

Other resources are new and are appended. If the claim renames a resource, the handle's entry keeps the old name, and
the claim's status has the new name. A change of the provider is refused. The claim's templates are merged over the
handle's, and remove nothing. The provider's `updateFilters` do not apply.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from domain.claims.deep_merge import merge, same
from domain.claims.handle_creation import effective_provider
from domain.claims.json_objects import JsonObject, entry_at, object_at, objects_at, only, text_at
from domain.claims.references import provider_name
from domain.claims.resource_entries import indices_in_order
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
    places = entry_places(claim, handle, provider_names)
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


def entry_places(claim: JsonObject, handle: JsonObject, provider_names: Sequence[str]) -> list[int]:
    """For each listed resource, the index of its entry in the handle. An index past the end means a new entry.

    An entry is also found by its name in the claim's status, which has the handle's order.
    """
    entries, shown = objects_at(handle, "spec", "resources"), objects_at(claim, "status", "resources")
    listed: list[JsonObject] = [
        {**only(resource, "name"), "provider": {"name": name}}
        for resource, name in zip(objects_at(claim, "spec", "resources"), provider_names, strict=True)
    ]
    wanted, held = [_identity(each) for each in listed], [_identity(each) for each in entries]
    known = [(provider, text_at(entry_at(shown, index), "name")) for index, (provider, _) in enumerate(held)]
    fits: tuple[Callable[[int, int], bool], ...] = (
        lambda number, index: bool(wanted[number][1]) and wanted[number] == held[index],
        lambda number, index: bool(wanted[number][1]) and wanted[number] == known[index],
        lambda number, index: bool(wanted[number][1]) and wanted[number][1] == held[index][1],
        lambda number, index: number == index and wanted[number][0] == held[index][0],
        lambda number, index: wanted[number] == held[index] == known[index],  # neither has a name
        lambda number, index: number == index and not (wanted[number][1] and held[index][1]),
    )
    free, places = list(range(len(entries))), dict[int, int]()
    for fit in fits:
        # From the end: if one of two like resources is new, the first one keeps the entry at its index.
        for number in reversed(range(len(wanted))):
            if number in places:
                continue
            # Like resources keep their places, also if another one of them is refused.
            fitting = (index for index in (number, *free) if index in free and fit(number, index))
            if (found := next(fitting, None)) is not None:
                free.remove(found)
                places[number] = found
    new = count(len(entries))
    in_order = indices_in_order(listed, [places.get(number) for number in range(len(wanted))])
    return [next(new) if place is None else place for place in in_order]


def _identity(entry: JsonObject) -> tuple[str, str]:
    return provider_name(entry), text_at(entry, "name")


def _merged(entry: JsonObject, resource: JsonObject) -> JsonObject:
    template = object_at(resource, "template")
    if not template:
        return entry
    before = object_at(entry, "template")
    after = merge(before, template, overwrite=True)
    return entry if same(before, after) else {**entry, "template": after}
