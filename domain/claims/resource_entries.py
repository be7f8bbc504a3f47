"""The entries of a handle's `spec.resources`, and their changes by its provider.

Each entry belongs to one object in the cluster. An entry is identified by provider and name (Poolboy used the index,
and mixed providers up), and is never moved, removed or given to another provider. New resources are appended; entries
that the provider no longer yields stay.
"""

from __future__ import annotations

from collections.abc import Sequence

from domain.claims.json_objects import JsonObject, only, text_at
from domain.claims.references import provider_name


def recomputed(entries: Sequence[JsonObject], yielded: Sequence[JsonObject], own: str = "") -> list[JsonObject]:
    """The entries, updated with the resources that the handle's provider `own` yields; new resources are appended."""
    result = list(entries)
    for resource, index in zip(yielded, paired(entries, yielded, own), strict=True):
        if index is None:
            result.append(resource)
        else:
            result[index] = _replaced(result[index], resource)
    return result


def paired(entries: Sequence[JsonObject], yielded: Sequence[JsonObject], own: str = "") -> list[int | None]:
    """For each yielded resource, the index of its entry; None if the resource is new.

    An entry fits if it has the resource's provider and name or, failing that, the provider and no name. A renamed
    resource of `own`, the handle's provider, keeps its entry.
    """
    free = list(range(len(entries)))
    found: list[int | None] = [None] * len(yielded)
    for nameless in (False, True):  # older releases added entries without names
        for number, resource in enumerate(yielded):
            if found[number] is None:
                name = "" if nameless else text_at(resource, "name")
                found[number] = _take(free, entries, provider_name(resource), name)
    left = [index for index in free if own and provider_name(entries[index]) == own]
    new = [
        number for number, resource in enumerate(yielded) if found[number] is None and provider_name(resource) == own
    ]
    if len(left) == len(new) == 1:  # the resource was renamed
        found[new[0]] = left[0]
    return indices_in_order(yielded, found)


def indices_in_order(yielded: Sequence[JsonObject], found: Sequence[int | None]) -> list[int | None]:
    """The indices in `found`, one for each resource. Resources of equal provider and name are indistinguishable, so
    they get their indices in ascending order.
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
    named = entry if text_at(entry, "name") else {**entry, **only(resource, "name")}
    return {**named, **only(resource, "template")}
