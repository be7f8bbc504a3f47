"""Matching: the free handle for a claim.

A claim gets the free handle with the fewest missing resources, then the fewest different names, then the fewest
differences in templates, all of which the providers must tolerate (`matchIgnore`). Additional content, namespaces,
labels and parameters do not count; the top-level provider counts only for a handle without resources. Equally good
handles are ordered by health, readiness, preference score (highest first), age (oldest first) and name.

For speed with thousands of free handles, handles with equal providers, names, templates and pool form a shelf, which is
compared once. Only a shelf whose list of providers is a prefix of the claim's list can match.
"""

from __future__ import annotations

import hashlib
import heapq
import json
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import groupby
from typing import NamedTuple

from domain.claims.deep_merge import TooDeep, contains
from domain.claims.domain_names import DomainNames
from domain.claims.evaluator_interface import WantedEntry
from domain.claims.ignore_label import is_left_alone
from domain.claims.json_objects import (
    JsonObject,
    flag_at,
    is_deleting,
    object_at,
    objects_at,
    paused,
    text_at,
    value_at,
)
from domain.claims.references import holder_of
from domain.claims.timestamps import born, end_of_handle
from domain.claims.update_filters import differences, matches

# A free handle whose end is nearer than this is not bound.
NEAR_EXPIRY = timedelta(seconds=120)
REMEMBERED_COMPARISONS = 100_000


class Wanted(NamedTuple):
    resources: tuple[WantedEntry, ...]
    pool: str = ""
    provider: str = ""


class HeldResource(NamedTuple):
    provider: str
    name: str = ""
    template: JsonObject = {}


class FreeHandle(NamedTuple):
    name: str
    resources: tuple[HeldResource, ...]
    created: datetime
    healthy: bool | None = None
    ready: bool | None = None
    preference_score: float = 0
    pool: str = ""
    provider: str = ""
    end: datetime | None = None


# The order of handles with equal differences: healthy, ready, score, age, name.
_Rank = tuple[bool, bool, float, datetime, str]


class _Shelf:
    def __init__(self, like: FreeHandle) -> None:
        self.like = like
        self.digests = tuple(_digest(resource.template) for resource in like.resources)
        self.ranked: list[tuple[_Rank, FreeHandle]] = []


# The pool; the top-level provider, empty if there are resources; each resource's provider, name and template digest.
_Likeness = tuple[str, str, tuple[tuple[str, str, str], ...]]


class FreeHandles:
    def __init__(self, handles: Iterable[FreeHandle] = ()) -> None:
        self._where: dict[str, tuple[_Likeness, FreeHandle]] = {}
        self._shelves: dict[_Likeness, _Shelf] = {}
        self._by_providers: dict[tuple[str, ...], dict[_Likeness, _Shelf]] = {}
        self._compared: dict[tuple[str, str, tuple[str, ...]], int | None] = {}
        for handle in handles:
            self.add(handle)

    def __len__(self) -> int:
        return len(self._where)

    def get(self, name: str) -> FreeHandle | None:
        known = self._where.get(name)
        return known[1] if known else None

    def add(self, handle: FreeHandle) -> None:
        self.remove(handle.name)
        likeness = _likeness(handle)
        shelf = self._shelves.get(likeness)
        if shelf is None:
            shelf = self._shelves[likeness] = _Shelf(handle)
            self._by_providers.setdefault(_providers(handle.resources), {})[likeness] = shelf
        insort(shelf.ranked, (_rank(handle), handle), key=lambda entry: entry[0])
        self._where[handle.name] = (likeness, handle)

    def remove(self, name: str) -> None:
        if (known := self._where.pop(name, None)) is None:
            return
        likeness, handle = known
        shelf = self._shelves[likeness]
        del shelf.ranked[bisect_left(shelf.ranked, _rank(handle), key=lambda entry: entry[0])]
        if not shelf.ranked:
            del self._shelves[likeness]
            alike = self._by_providers[_providers(handle.resources)]
            del alike[likeness]
            if not alike:
                del self._by_providers[_providers(handle.resources)]

    def candidates(self, wanted: Wanted, now: datetime) -> Iterator[FreeHandle]:
        """The matching handles, best first, computed lazily: change no handle meanwhile. Raises BadPattern, TooDeep."""
        scored = sorted(((score, shelf) for shelf, score in self._fitting(wanted)), key=lambda entry: entry[0])
        for _, alike in groupby(scored, key=lambda entry: entry[0]):
            best_first = heapq.merge(*(shelf.ranked for _, shelf in alike), key=lambda entry: entry[0])
            for _, handle in best_first:
                if handle.healthy is not False and not _ends_soon(handle, now):
                    yield handle

    def _fitting(self, wanted: Wanted) -> Iterator[tuple[_Shelf, tuple[int, int, int]]]:
        digests = tuple(_digest(resource.template) for resource in wanted.resources)
        providers = _providers(wanted.resources)
        for held in range(len(providers) + 1):
            for shelf in self._by_providers.get(providers[:held], {}).values():
                if wanted.pool and wanted.pool != shelf.like.pool:
                    continue
                if not held and shelf.like.provider and shelf.like.provider != wanted.provider:
                    continue  # the handle's resources are not rendered yet, and might not match
                tolerated = self._tolerated(wanted.resources, digests, shelf)
                if tolerated is not None:
                    yield shelf, (len(providers) - held, _names_that_differ(wanted, shelf), tolerated)

    def _tolerated(self, wanted: tuple[WantedEntry, ...], digests: tuple[str, ...], shelf: _Shelf) -> int | None:
        total = 0
        for resource, digest, held, held_digest in zip(
            wanted, digests, shelf.like.resources, shelf.digests, strict=False
        ):
            question = (digest, held_digest, resource.match_ignore)
            if question not in self._compared:
                if len(self._compared) >= REMEMBERED_COMPARISONS:
                    self._compared.clear()
                self._compared[question] = tolerated_differences(
                    held.template, resource.template, resource.match_ignore
                )
            count = self._compared[question]
            if count is None:
                return None
            total += count
        return total


def tolerated_differences(held: JsonObject, wanted: JsonObject, match_ignore: Iterable[str]) -> int | None:
    """How many values the wanted template adds or replaces; None if one of these differences is not tolerated."""
    patterns = tuple(match_ignore)
    if not patterns:
        return 0 if contains(held, wanted) else None
    count = 0
    for operation in differences(held, wanted):
        if operation.op == "remove":
            continue  # additional content
        if not any(matches(pattern, operation.path) for pattern in patterns):
            return None
        count += 1
    return count


def free_handle(names: DomainNames, handle: JsonObject) -> FreeHandle | None:
    """The handle as a candidate for claims; None if it is bound, being deleted, ignored, paused or unhealthy."""
    held = holder_of(handle)
    deleting = is_deleting(handle)
    left_alone = is_left_alone(names, handle) or paused(handle)
    healthy = flag_at(handle, "status", "healthy")
    if held or deleting or left_alone or healthy is False:
        return None
    score = value_at(handle, "spec", "preferenceScore")
    return FreeHandle(
        name=text_at(handle, "metadata", "name"),
        resources=tuple(_held(resource) for resource in objects_at(handle, "spec", "resources")),
        created=born(handle),
        healthy=healthy,
        ready=flag_at(handle, "status", "ready"),
        preference_score=score if isinstance(score, (int, float)) else 0,
        pool=text_at(handle, "spec", "resourcePool", "name"),
        provider=text_at(handle, "spec", "provider", "name"),
        end=end_of_handle(handle),
    )


def may_fit_now(before: FreeHandle | None, after: FreeHandle | None) -> bool:
    if before is None or after is None:
        return after is not None
    if (before.resources, before.pool, before.provider) != (after.resources, after.pool, after.provider):
        return True
    return before.end is not None and (after.end is None or after.end > before.end)


def _held(resource: JsonObject) -> HeldResource:
    return HeldResource(
        provider=text_at(resource, "provider", "name"),
        name=text_at(resource, "name"),
        template=object_at(resource, "template"),
    )


def _providers(resources: tuple[WantedEntry, ...] | tuple[HeldResource, ...]) -> tuple[str, ...]:
    return tuple(resource.provider for resource in resources)


def _names_that_differ(wanted: Wanted, shelf: _Shelf) -> int:
    return sum(
        wanted_resource.name != held.name
        for wanted_resource, held in zip(wanted.resources, shelf.like.resources, strict=False)
    )


def _rank(handle: FreeHandle) -> _Rank:
    return (handle.healthy is not True, handle.ready is not True, -handle.preference_score, handle.created, handle.name)


def _ends_soon(handle: FreeHandle, now: datetime) -> bool:
    return handle.end is not None and handle.end < now + NEAR_EXPIRY


def _likeness(handle: FreeHandle) -> _Likeness:
    resources = tuple((held.provider, held.name, _digest(held.template)) for held in handle.resources)
    return (handle.pool, "" if resources else handle.provider, resources)


def _digest(template: JsonObject) -> str:
    try:
        return hashlib.sha256(json.dumps(template, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    except RecursionError as error:
        raise TooDeep from error
