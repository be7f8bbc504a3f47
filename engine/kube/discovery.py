"""Resolves an object's apiVersion and kind to the kind as the API serves it, with its plural and scope.

An answer is cached until a caller finds it wrong (`forget`). A missing kind is looked up again, because its CRD may
be added; all callers together cause at most one lookup in two seconds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from domain.identity import Kind, is_possible_name
from engine.errors import Absent, unless_absent
from engine.kube.api import KubeApi
from engine.kube.errors import NO_SUCH_KIND
from engine.kube.json import JsonObject, flag, sequence, text

# Seconds between two lookups of a missing kind.
LOOK_AGAIN = 2.0


@dataclass(frozen=True)
class Served:
    kind: Kind
    namespaced: bool


@dataclass
class _Version:
    kinds: dict[str, Served] = field(default_factory=dict)
    read_at: float | None = None
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def may_be_read(self) -> bool:
        return self.read_at is None or time.monotonic() - self.read_at >= LOOK_AGAIN


class Discovery:
    def __init__(self, api: KubeApi) -> None:
        self._api = api
        self._versions: dict[str, _Version] = {}

    async def served(self, api_version: str, kind: str) -> Served:
        """The kind as the API serves it, from the last lookup that found it.

        Raises Absent if the API does not serve the kind; this answer is reused for `LOOK_AGAIN` seconds. Raises another
        ApiError if a lookup fails.
        """
        version = self._versions.setdefault(api_version, _Version())
        async with version.reading:
            if kind not in version.kinds and version.may_be_read:
                version.kinds = {one.kind.name: one for one in await self._read(api_version)}
                version.read_at = time.monotonic()
        if kind not in version.kinds:
            raise Absent(f"the API server serves no kind {kind} of {api_version}", code=NO_SUCH_KIND)
        return version.kinds[kind]

    async def in_any_version(self, api_version: str, kind: str) -> Served | None:
        """The kind in any version that the API serves; None if there is none. Raises ApiError as `served` does."""
        versions = await self._versions_of(api_version.rpartition("/")[0]) if _is_possible(api_version) else []
        for each in versions:
            if served := await unless_absent(self.served(each, kind)):
                return served
        return None

    async def _versions_of(self, group: str) -> list[str]:
        listed = Kind(name="APIGroup" if group else "APIVersions", group=group, version="", plural="", area="")
        answer = await unless_absent(self._api.get(listed, "", ""))
        if not group:
            return [str(each) for each in sequence(answer, "versions")]
        preferred = text(answer, "preferredVersion", "groupVersion")
        served = [text(each, "groupVersion") for each in sequence(answer, "versions")]
        return sorted(filter(None, served), key=lambda each: each != preferred)

    def forget(self, api_version: str, kind: str) -> None:
        """Drop the cached kind; for a caller whose request found no such path."""
        version = self._versions.get(api_version)
        if version and version.kinds.pop(kind, None):
            version.read_at = None  # if the kind is served after all, other callers must not take it for missing

    async def _read(self, api_version: str) -> list[Served]:
        if not _is_possible(api_version):
            return []
        group, _, version = api_version.rpartition("/")
        listed = Kind(name="APIResourceList", group=group, version=version, plural="", area="")
        return list(_kinds(group, version, await unless_absent(self._api.get(listed, "", "")) or {}))


def _is_possible(api_version: str) -> bool:
    """Whether `api_version` is `VERSION` or `GROUP/VERSION`. In the path of a request, anything else would
    address other resources.
    """
    parts = api_version.split("/")
    return len(parts) <= 2 and all(part and is_possible_name(part) for part in parts)


def _kinds(group: str, version: str, answer: JsonObject) -> Iterator[Served]:
    for resource in sequence(answer, "resources"):
        plural, name = text(resource, "name"), text(resource, "kind")
        if plural and name and "/" not in plural:
            kind = Kind(name=name, group=group, version=version, plural=plural, area="", lifecycle=False)
            yield Served(kind, flag(resource, "namespaced"))
