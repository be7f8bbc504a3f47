"""A claim's changes to its handle: the provider with its values, or the listed resources.

In list mode the claim's resources and the handle's entries are paired by index; a change of the provider is refused.
Claim edits are merged over the handle's templates, and remove nothing. The provider's `updateFilters` do not apply.
"""

from __future__ import annotations

from collections.abc import Sequence

from domain.claims.deep_merge import merge, same
from domain.claims.handle_creation import effective_provider
from domain.claims.json_objects import JsonObject, object_at, objects_at, only
from domain.claims.references import provider_name
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
    for index, resource in enumerate(objects_at(claim, "spec", "resources")):
        assigned = provider_names[index]
        if index >= len(entries):
            reference = scene.reference(scene.provider(assigned))
            entries.append({**only(resource, "name", "template"), "provider": reference})
        elif provider_name(entries[index]) != assigned:
            refused.append(
                f"resource {index} keeps ResourceProvider {provider_name(entries[index])} and its template: "
                f"switching to ResourceProvider {assigned} is refused"
            )
        else:
            entries[index] = _merged(entries[index], resource)
    return ClaimEdits(provider=None, resources=tuple(entries), refused=tuple(refused))


def _merged(entry: JsonObject, resource: JsonObject) -> JsonObject:
    template = object_at(resource, "template")
    if not template:
        return entry
    before = object_at(entry, "template")
    after = merge(before, template, overwrite=True)
    return entry if same(before, after) else {**entry, "template": after}
