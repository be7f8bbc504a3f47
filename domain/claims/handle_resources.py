"""The handle's resource list over time: what a provider yields anew and what a claim changes, entry by entry.

An entry of the handle stands for an object in the cluster, so it is identified by its provider and its name, never
moved, never removed and never given to another provider. What a provider yields for the first time (a link whose
`when` has become true) is appended at the end, although it stands earlier in the provider's own order; what it yields
no more stays as it is. Poolboy identified entries by their index: a flipping `when` put one provider's template into
another's resource.

A claim's list (list mode) is different: people number its entries, its names may change, and binding has set both lists
side by side. There entries meet by index, and one whose provider differs is refused, template and all.

Claim edits are merged over the handle's templates without any filter, and take nothing away; filters stand between
the handle and the live resource only. In provider mode the claim hands over its parameter values, and its handle's
templates then follow from these, whole: merging a rendering made without the handle's variables first, as Poolboy does,
would only be overwritten by that.
"""

from __future__ import annotations

from collections.abc import Sequence

from domain.claims.merging import merge, same
from domain.claims.objects import JsonObject, object_at, objects_at, only, text_at, value_at
from domain.claims.providers import Scene, provider_name, reference
from domain.model import Model


class Pushed(Model):
    """What a claim's edit makes of its handle's spec; `provider` None means the handle has none (list mode)."""

    provider: JsonObject | None
    resources: tuple[JsonObject, ...]
    refused: tuple[str, ...] = ()  # a sentence each, for a warning


def recomputed(entries: Sequence[JsonObject], yielded: Sequence[JsonObject], own: str = "") -> list[JsonObject]:
    """The handle's entries with the templates that its provider yields now, and what it yields newly at the end.

    `own` is the handle's provider: the one resource of its own is the same under whatever name.
    """
    result = list(entries)
    for resource, index in zip(yielded, paired(entries, yielded, own), strict=True):
        if index is None:
            result.append(resource)
        else:
            result[index] = _replaced(result[index], resource)
    return result


def paired(entries: Sequence[JsonObject], yielded: Sequence[JsonObject], own: str = "") -> list[int | None]:
    """For each yielded resource the index of its entry: of the same provider and name, else a nameless one of it.

    Handles that older releases extended have entries without a name; they are taken in order and named from then on.
    Where a provider's own resource has got another name, its entry keeps the former one.
    """
    free = list(range(len(entries)))
    found: list[int | None] = [None] * len(yielded)
    for nameless in (False, True):
        for number, resource in enumerate(yielded):
            if found[number] is None:
                name = "" if nameless else text_at(resource, "name")
                found[number] = _take(free, entries, provider_name(resource), name)
    left = [index for index in free if own and provider_name(entries[index]) == own]
    new = [
        number for number, resource in enumerate(yielded) if found[number] is None and provider_name(resource) == own
    ]
    if len(left) == len(new) == 1:
        found[new[0]] = left[0]
    return _in_order(yielded, found)


def _in_order(yielded: Sequence[JsonObject], found: Sequence[int | None]) -> list[int | None]:
    """The same entries, given in their own order to resources that nothing tells apart.

    A provider linked twice under one name yields such resources. Once all their entries bear the name they are met in
    order; handing them out otherwise this time would swap the templates of two objects the next time.
    """
    groups: dict[tuple[str, str], list[int]] = {}
    for resource, index in zip(yielded, found, strict=True):
        if index is not None:
            groups.setdefault((provider_name(resource), text_at(resource, "name")), []).append(index)
    waiting = {key: iter(sorted(indices)) for key, indices in groups.items()}
    return [next(waiting.get((provider_name(each), text_at(each, "name")), iter(())), None) for each in yielded]


def _take(free: list[int], entries: Sequence[JsonObject], provider: str, name: str) -> int | None:
    for index in free:
        if provider_name(entries[index]) == provider and text_at(entries[index], "name") == name:
            free.remove(index)
            return index
    return None


def _replaced(entry: JsonObject, resource: JsonObject) -> JsonObject:
    """The entry with the resource's template whole, and its name if it had none; its reference stays."""
    named = entry if text_at(entry, "name") else {**entry, **only(resource, "name")}
    return {**named, **only(resource, "template")}


def pushed(scene: Scene, provider_names: Sequence[str]) -> Pushed:
    """What the handle's spec has to be after the claim's edits; both stand in the scene.

    In list mode `provider_names` are the providers assigned to the claim's entries.

    Raises:
        ProviderMissing: the provider of a new entry does not exist.
    """
    claim, handle = scene.claim or {}, scene.handle or {}
    entries = objects_at(handle, "spec", "resources")
    provider = object_at(claim, "spec", "provider")
    if provider:
        values = value_at(claim, "status", "provider", "parameterValues")
        effective: JsonObject = {} if values is None else {"parameterValues": values}
        return Pushed(provider={"name": text_at(provider, "name"), **effective}, resources=tuple(entries))
    refused: list[str] = []
    for index, resource in enumerate(objects_at(claim, "spec", "resources")):
        assigned = provider_names[index]
        if index >= len(entries):
            entries.append(
                {**only(resource, "name", "template"), "provider": reference(scene.names, scene.provider(assigned))}
            )
        elif provider_name(entries[index]) != assigned:
            refused.append(
                f"resource {index} is of ResourceProvider {provider_name(entries[index])} in the handle: "
                f"its provider and template cannot change to those of {assigned}"
            )
        else:
            entries[index] = _merged(entries[index], resource)
    return Pushed(provider=None, resources=tuple(entries), refused=tuple(refused))


def _merged(entry: JsonObject, resource: JsonObject) -> JsonObject:
    template = object_at(resource, "template")
    if not template:
        return entry
    before = object_at(entry, "template")
    after = merge(before, template, overwrite=True)
    return entry if same(before, after) else {**entry, "template": after}
