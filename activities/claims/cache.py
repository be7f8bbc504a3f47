"""The informer cache of the claims area, with indexes by which a pass finds related objects.

    ResourceClaim: unbound ones · ResourceHandle by its claim and by its pool · ResourcePoolScaling by its pool

It lags the API server by some milliseconds. Where that could lose a change:

- objects that a pass writes are put in at once, and writes carry the resourceVersion that was decided upon;
- a pass that was woken reads its own objects from the API server;
- reads of other objects are recorded (`read`): a change that arrives right afterwards wakes the lifecycle once more.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import cast

from domain.claims import (
    RESOURCE_CLAIM,
    RESOURCE_HANDLE,
    RESOURCE_POOL,
    RESOURCE_POOL_SCALING,
    RESOURCE_PROVIDER,
)
from domain.claims.domain_names import DomainNames
from domain.claims.marks import Name, is_unbound, name_of
from domain.claims.objects import JsonObject, object_at, text_at
from domain.claims.providers import named_providers, providers_to_fetch
from domain.claims.references import holder_of, key_of
from domain.identity import Key, Kind
from engine import kube
from engine.errors import Absent
from engine.kube import KubeApi
from engine.kube.store import Followed, Listener, Mirror, Store
from engine.settings import Settings

# Seconds after a read in which a change may have been missed; far more than a cache ever lags.
MAY_HAVE_MISSED = 2.0

Wake = Callable[[Key], Awaitable[None]]

log = logging.getLogger(__name__)


class ClaimCache:
    def __init__(self, api: KubeApi, store: Store, settings: Settings, wake: Wake) -> None:
        self.namespace = settings.claims_namespace
        self.names = DomainNames(domain=settings.claims_domain)
        self.cluster = settings.cluster
        self._api = api
        self._wake = wake
        self.claims = store.follow(Followed(self.names.of(RESOURCE_CLAIM)), {"unbound": self._unbound})
        handles = Followed(self.names.of(RESOURCE_HANDLE), self.namespace)
        self.handles = store.follow(handles, {"claim": _holders, "pool": _pools})
        self.pools = store.follow(Followed(self.names.of(RESOURCE_POOL), self.namespace))
        scalings = Followed(self.names.of(RESOURCE_POOL_SCALING), self.namespace)
        self.scalings = store.follow(scalings, {"pool": _pools})
        self.providers = store.follow(Followed(self.names.of(RESOURCE_PROVIDER), self.namespace))
        self.namespaces = store.follow(Followed(kube.NAMESPACE))
        self._mirrors: dict[str, Mirror] = {
            mirror.followed.kind.name: mirror
            for mirror in (self.claims, self.handles, self.pools, self.scalings, self.providers, self.namespaces)
        }
        self._readers: defaultdict[str, dict[Key, float]] = defaultdict(dict)
        self._tasks: set[asyncio.Task[None]] = set()
        self.claims.listen(cast(Listener, self._claim_changed))
        self.handles.listen(cast(Listener, self._handle_changed))
        self.providers.listen(cast(Listener, self._provider_changed))
        self.namespaces.listen(cast(Listener, self._namespace_changed))

    async def settled(self) -> None:
        """Wait until every kind is listed, or known not to be installed."""
        for mirror in self._mirrors.values():
            await mirror.settled()

    def wake(self, key: Key) -> None:
        task = asyncio.get_running_loop().create_task(self._told(key))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- reading ---

    async def fresh(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        """From the API server; None if it does not exist."""
        try:
            answer = await self._api.get(kind, namespace, name)
        except Absent:
            return None
        self.learn(kind, cast("JsonObject", answer))
        return cast("JsonObject", answer)

    async def fresh_handles(self) -> list[JsonObject]:
        """From the API server: a cache whose stream is broken may be outdated for long."""
        return cast("list[JsonObject]", (await self._api.list(RESOURCE_HANDLE, self.namespace)).items)

    def get(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        return cast("JsonObject | None", self._mirrors[kind.name].get(namespace, name))

    async def seen(self, kind: Kind, namespace: str, name: str, *, fresh: bool) -> JsonObject | None:
        return await self.fresh(kind, namespace, name) if fresh else self.get(kind, namespace, name)

    def may_be_opened(self, key: Key) -> bool:
        """True if the object exists; if it vanishes right afterwards, the lifecycle is woken."""
        self.read(key, _of_object(key.kind, key.namespace, key.name))
        there = self._mirrors[key.kind].get(key.namespace, key.name)
        return there is not None and text_at(cast("JsonObject", there), "metadata", "uid") == key.uid

    def learn(self, kind: Kind, obj: JsonObject) -> None:
        if kind.name in self._mirrors:
            self._mirrors[kind.name].learn(cast("kube.JsonObject", obj))

    def unbound(self) -> list[JsonObject]:
        """Claims without a handle, the oldest first."""
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

    async def providers_for(
        self, key: Key, *objects: JsonObject | None, names: Iterable[str] = ()
    ) -> dict[str, JsonObject]:
        """The providers that the objects name, and all that these link to; missing ones are left out."""
        wanted = set(names).union(*(named_providers(each) for each in objects if each))
        found: dict[str, JsonObject] = {}
        absent: set[str] = set()
        while missing := providers_to_fetch(wanted - absent, found) - absent:
            for name in missing:
                self.read(key, f"provider/{name}")
                # A new provider may not be cached yet; missing ones are rarely named.
                provider = self.get(RESOURCE_PROVIDER, self.namespace, name) or await self.fresh(
                    RESOURCE_PROVIDER, self.namespace, name
                )
                if provider is None:
                    absent.add(name)
                else:
                    found[name] = provider
        return found

    def read(self, key: Key, topic: str) -> None:
        """Record what a pass of this lifecycle has read: `provider/<name>`, `pool/<name>`, `namespace/<name>`.

        Old reads are dropped, as claims come and go while a provider stays for months.
        """
        readers, moment = self._readers[topic], time.monotonic()
        readers.pop(key, None)
        readers[key] = moment  # last: the oldest come first
        while moment - readers[oldest := next(iter(readers))] >= MAY_HAVE_MISSED:
            del readers[oldest]

    # --- changes ---

    def _claim_changed(self, before: JsonObject | None, after: JsonObject | None) -> None:
        claim = after or before or {}
        if after is None:
            self._tell_readers(_of_object(RESOURCE_CLAIM.name, *name_of(claim)))
        elif is_unbound(self.names, before or {}) and not is_unbound(self.names, after):
            self._doubled(name_of(claim))

    def _handle_changed(self, before: JsonObject | None, after: JsonObject | None) -> None:
        if (holder := holder_of(after)) != holder_of(before):
            self._doubled(holder)
        if after is None:
            name = text_at(before, "metadata", "name")
            self._tell_readers(_of_object(RESOURCE_HANDLE.name, self.namespace, name))
        for pool in {*_pools(before), *_pools(after)}:
            self._tell_readers(f"pool/{pool}")

    def _doubled(self, claim: Name | None) -> None:
        """If several handles name one claim, wake each: it checks for duplicates (duplicate_bindings.py)."""
        handles = self.handles.find("claim", claim) if claim else ()
        if len(handles) > 1:
            for handle in cast("list[JsonObject]", handles):
                self.wake(key_of(RESOURCE_HANDLE, handle, self.cluster))

    def _provider_changed(self, before: JsonObject | None, after: JsonObject | None) -> None:
        if is_rendered_otherwise(before, after):
            self._tell_readers(f"provider/{text_at(after or before, 'metadata', 'name')}")

    def _namespace_changed(self, before: JsonObject | None, after: JsonObject | None) -> None:
        self._tell_readers(f"namespace/{text_at(after or before, 'metadata', 'name')}")

    def _tell_readers(self, topic: str) -> None:
        readers = self._readers.pop(topic, None)
        for key, moment in (readers or {}).items():
            if time.monotonic() - moment < MAY_HAVE_MISSED:
                self.wake(key)

    async def _told(self, key: Key) -> None:
        try:
            await self._wake(key)
        except Exception as error:  # the watcher wakes as well; this is an additional chance
            log.warning("%s could not be woken: %s", key, error)


def is_rendered_otherwise(before: JsonObject | None, after: JsonObject | None) -> bool:
    """Whether a provider differs in the parts that passes read, not only in its status."""
    return before is None or after is None or _as_rendered(before) != _as_rendered(after)


def _as_rendered(provider: JsonObject) -> tuple[JsonObject, ...]:
    metadata = object_at(provider, "metadata")
    return object_at(provider, "spec"), object_at(metadata, "labels"), object_at(metadata, "annotations")


def _of_object(kind: str, namespace: str, name: str) -> str:
    return f"{kind}/{namespace}/{name}"


def _holders(handle: object) -> tuple[Name, ...]:
    holder = holder_of(cast("JsonObject", handle))
    return (holder,) if holder else ()


def _pools(obj: object) -> tuple[str, ...]:
    name = text_at(cast("JsonObject", obj), "spec", "resourcePool", "name")
    return (name,) if name else ()
