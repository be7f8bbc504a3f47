"""The informer cache of the claims area, with the indexes by which a pass finds related objects.

    ResourceClaim without a handle · ResourceHandle by its claim and by its pool · ResourcePoolScaling by its pool

A pass waits until the cache has reached the versions that woke its lifecycle and those that the last pass wrote. An
object that the cache lacks is looked up at the API server before it counts as missing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import cast

from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE, RESOURCE_POOL, RESOURCE_POOL_SCALING, RESOURCE_PROVIDER
from domain.claims.constants import NAMESPACE_REQUESTER_ANNOTATION
from domain.claims.domain_names import DomainNames
from domain.claims.ignore_label import is_unbound
from domain.claims.json_objects import JsonObject, Name, object_at, text_at
from domain.claims.linked_providers import linked_names
from domain.claims.references import holder_of, named_providers
from domain.identity import Key, Kind
from engine import kube
from engine.kube import KubeApi
from engine.kube.informer_cache import LONGEST_BEHIND, InformerCache, Listener, Store, reached
from engine.kube.reflector import Followed
from engine.settings import Settings

Wake = Callable[[Key], Awaitable[None]]

log = logging.getLogger(__name__)


class ClaimCache(InformerCache):
    def __init__(self, api: KubeApi, store: Store, settings: Settings, wake: Wake) -> None:
        self.namespace = settings.claims_namespace
        self.names = DomainNames(domain=settings.claims_domain)
        self.cluster = settings.cluster
        self._wake = wake
        self.claims = store.follow(Followed(self.names.of(RESOURCE_CLAIM)), {"unbound": self._unbound})
        handles = Followed(self.names.of(RESOURCE_HANDLE), self.namespace)
        self.handles = store.follow(handles, {"claim": _holders, "pool": _pools})
        self.pools = store.follow(Followed(self.names.of(RESOURCE_POOL), self.namespace))
        scalings = Followed(self.names.of(RESOURCE_POOL_SCALING), self.namespace)
        self.scalings = store.follow(scalings, {"pool": _pools})
        self.providers = store.follow(Followed(self.names.of(RESOURCE_PROVIDER), self.namespace))
        self.namespaces = store.follow(Followed(kube.NAMESPACE))
        super().__init__(api, (self.claims, self.handles, self.pools, self.scalings, self.providers, self.namespaces))
        self.edits = 0  # number of changes of providers and Namespaces that may change what templates render
        self._tasks: set[asyncio.Task[None]] = set()
        self.providers.listen(cast(Listener, self._provider_changed))
        self.namespaces.listen(cast(Listener, self._namespace_changed))

    async def settled(self) -> None:
        for mirror in self.mirrors.values():
            await mirror.settled()

    async def reached(self, seen: Mapping[str, str]) -> bool:
        """Wait until the cache has the versions `seen`. If watch streams hang, list the small kinds again and return
        False: the pass must then read its own claim and handle from the API server.
        """
        await self.settled()
        if await reached(self.mirrors.values(), seen):
            return True
        for mirror in (self.pools, self.scalings, self.providers, self.namespaces):
            await mirror.refresh(seen.get(mirror.followed.kind.name, ""))
        return False

    def wake(self, key: Key) -> None:
        task = asyncio.get_running_loop().create_task(self._send_wake(key))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def check_later(self, key: Key, edits: int) -> None:
        """After a moment, wake the new lifecycle if its object is gone, or if templates may render something different.

        The watcher cannot wake a lifecycle that does not exist yet. `edits` is the value that `self.edits` had when the
        templates were evaluated.
        """
        asyncio.get_running_loop().call_later(LONGEST_BEHIND, self._check, key, edits)

    # --- reading ---

    async def own(self, kind: Kind, key: Key, *, fresh: bool) -> JsonObject | None:
        """The object with the key's uid; None if it does not exist. With `fresh`, read it from the API server."""
        found = None if fresh else self.get(kind, key.namespace, key.name)
        if text_at(found, "metadata", "uid") != key.uid:
            found = await self.fresh(kind, key.namespace, key.name)
        return found if text_at(found, "metadata", "uid") == key.uid else None

    async def fresh(  # type: ignore[override]
        self, kind: Kind, namespace: str, name: str
    ) -> JsonObject | None:
        return cast("JsonObject | None", await super().fresh(kind, namespace, name))

    async def fresh_handles(self) -> list[JsonObject]:
        """All handles from the API server, because the cache may be outdated if its stream is broken."""
        return cast("list[JsonObject]", (await self._api.list(RESOURCE_HANDLE, self.namespace)).items)

    def get(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        return cast("JsonObject | None", self.mirrors[kind.name].get(namespace, name))

    async def find(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        return self.get(kind, namespace, name) or await self.fresh(kind, namespace, name)

    def exists(self, key: Key) -> bool:
        """Whether the cache has the object with this uid. True if objects of its kind are not cached."""
        if (mirror := self.mirrors.get(key.kind)) is None:
            return True
        there = cast("JsonObject | None", mirror.get(key.namespace, key.name))
        return there is not None and text_at(there, "metadata", "uid") == key.uid

    def unbound(self) -> list[JsonObject]:
        found = cast("list[JsonObject]", self.claims.find("unbound", True))
        return sorted(found, key=lambda claim: text_at(claim, "metadata", "creationTimestamp"))

    def _unbound(self, claim: object) -> tuple[bool, ...]:
        return (True,) if is_unbound(self.names, cast("JsonObject", claim)) else ()

    def handles_of_claim(self, namespace: str, name: str) -> list[JsonObject]:
        """The handles that name the claim, oldest first; normally one."""
        found = cast("list[JsonObject]", self.handles.find("claim", (namespace, name)))
        return sorted(found, key=lambda handle: text_at(handle, "metadata", "creationTimestamp"))

    def handles_of_pool(self, name: str) -> list[JsonObject]:
        return cast("list[JsonObject]", self.handles.find("pool", name))

    def scalings_of_pool(self, name: str) -> list[JsonObject]:
        return cast("list[JsonObject]", self.scalings.find("pool", name))

    def all_providers(self) -> dict[str, JsonObject]:
        everything = cast("Iterator[JsonObject]", self.providers.all())
        return {text_at(provider, "metadata", "name"): provider for provider in everything}

    async def providers_for(self, *objects: JsonObject | None, names: Iterable[str] = ()) -> dict[str, JsonObject]:
        """The providers that the objects name, and all providers that these link to, even by links whose `when` is
        false; missing providers are left out.
        """
        ahead = [*set(names).union(*(named_providers(each) for each in objects if each))]
        found: dict[str, JsonObject | None] = {}
        while ahead:
            name = ahead.pop()
            if name not in found:
                found[name] = provider = await self.find(RESOURCE_PROVIDER, self.namespace, name)
                ahead += linked_names(provider) if provider else []
        return {name: provider for name, provider in found.items() if provider}

    # --- changes ---

    def _provider_changed(self, before: JsonObject | None, after: JsonObject | None) -> None:
        self.edits += is_rendered_otherwise(before, after)

    def _namespace_changed(self, before: JsonObject | None, after: JsonObject | None) -> None:
        self.edits += None not in (before, after) and _requester(before) != _requester(after)

    def _check(self, key: Key, edits: int) -> None:
        if edits != self.edits or not self.exists(key):
            self.wake(key)

    async def _send_wake(self, key: Key) -> None:
        try:
            await self._wake(key)
        except Exception as error:  # the watcher wakes as well; this is an additional chance
            log.warning("%s could not be woken: %s", key, error)


def is_rendered_otherwise(before: JsonObject | None, after: JsonObject | None) -> bool:
    """Whether a provider was created, deleted, or changed in its spec, labels or annotations."""
    return before is None or after is None or _as_rendered(before) != _as_rendered(after)


def _as_rendered(provider: JsonObject) -> tuple[JsonObject, ...]:
    metadata = object_at(provider, "metadata")
    return object_at(provider, "spec"), object_at(metadata, "labels"), object_at(metadata, "annotations")


def _requester(namespace: JsonObject | None) -> str:
    return text_at(namespace, "metadata", "annotations", NAMESPACE_REQUESTER_ANNOTATION)


def _holders(handle: object) -> tuple[Name, ...]:
    holder = holder_of(cast("JsonObject", handle))
    return (holder,) if holder else ()


def _pools(obj: object) -> tuple[str, ...]:
    name = text_at(cast("JsonObject", obj), "spec", "resourcePool", "name")
    return (name,) if name else ()
