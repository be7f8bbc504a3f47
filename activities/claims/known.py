"""What a worker knows of claims, handles, pools and providers, so that a pass reads others' objects without a request.

    watch streams, own writes --> mirrors --> indices: free handles, handles by claim and by pool, ends, waiting claims

Mirrors are some milliseconds behind the API server. Where that could lose something it is made good:

- what a pass writes is put in at once, and every write carries the resourceVersion that it was decided upon;
- a pass that was woken reads its own objects from the API server;
- what a pass has read of others is noted (`read`): a change of it that comes in right afterwards wakes that lifecycle
  once more, as the pass may have missed what the watcher woke it for;
- claims that came in and that no batch has taken wake the binder, and so does an end that it does not expect.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import cast

from activities.claims.expiry_queue import Ends
from domain.claims import (
    RESOURCE_CLAIM,
    RESOURCE_HANDLE,
    RESOURCE_POOL,
    RESOURCE_POOL_SCALING,
    RESOURCE_PROVIDER,
    binder,
)
from domain.claims.domain_names import DomainNames
from domain.claims.faults import FAULTS
from domain.claims.marks import Name, is_unbound, name_of
from domain.claims.matching import FreeHandles, Wanted, free_handle, may_fit_now
from domain.claims.merging import TooDeep
from domain.claims.objects import JsonObject, object_at, text_at
from domain.claims.providers import named_providers, providers_to_fetch
from domain.claims.references import holder_of, key_of
from domain.claims.timestamps import end_of_handle
from domain.identity import Key, Kind
from engine import kube
from engine.errors import Absent
from engine.kube import KubeApi
from engine.kube.store import Followed, Mirror, Store
from engine.settings import Settings

# For how long after a read a change of what was read may have been missed: far more than a mirror ever lags.
MAY_HAVE_MISSED = 2.0
UNTAKEN = 1.0
# Ends that come in together are told to the binder together.
ENDS_GATHER = 0.2
END_OVERDUE = timedelta(seconds=1)

Wake = Callable[[Key], Awaitable[None]]

log = logging.getLogger(__name__)


class Known:
    """The area's objects as one worker process knows them."""

    def __init__(self, api: KubeApi, store: Store, settings: Settings, wake: Wake) -> None:
        self.namespace = settings.claims_namespace
        self.names = DomainNames(domain=settings.claims_domain)
        self._api = api
        self._cluster = settings.cluster
        self._binder = binder(settings.claims_domain, settings.cluster)
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
        self.free = FreeHandles()
        self.ends = Ends()
        self.waiting: dict[Name, None] = {}  # unbound claims that have to be looked at, in this order
        self.news = asyncio.Event()  # something has come to wait
        self.news_for_all = 0  # how often something has changed that any unbound claim may wait for
        self.nearer_end = asyncio.Event()  # an end has come in that is the next one now
        self.serving = 0  # batches of this process: one, and at times one more that is being given up
        self._end_untold = False
        self._end_timer: asyncio.TimerHandle | None = None
        self._untaken: set[Name] = set()  # those that the binder is woken for, if they still wait in a moment
        self._lacks: dict[Name, Wanted] = {}  # what claims ask for that no free handle was, while that is still so
        self._readers: defaultdict[str, dict[Key, float]] = defaultdict(dict)
        self._tasks: set[asyncio.Task[None]] = set()
        self.claims.listen(cast("kube.store.Listener", self._claim_changed))
        self.handles.listen(cast("kube.store.Listener", self._handle_changed))
        self.providers.listen(cast("kube.store.Listener", self._provider_changed))
        self.namespaces.listen(cast("kube.store.Listener", self._namespace_changed))

    async def settled(self) -> None:
        """Until every kind is known completely, or known not to be installed."""
        for mirror in self._mirrors.values():
            await mirror.settled()

    # --- reading ---

    async def fresh(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        """The object as the API server has it, None if there is none."""
        try:
            answer = await self._api.get(kind, namespace, name)
        except Absent:
            return None
        self.learn(kind, cast("JsonObject", answer))
        return cast("JsonObject", answer)

    async def fresh_handles(self) -> list[JsonObject]:
        """All handles as the API server has them: a mirror may have lost its stream, and hold old ones for long."""
        return cast("list[JsonObject]", (await self._api.list(RESOURCE_HANDLE, self.namespace)).items)

    def get(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        """The object as it is known."""
        return cast("JsonObject | None", self._mirrors[kind.name].get(namespace, name))

    async def seen(self, kind: Kind, namespace: str, name: str, *, fresh: bool) -> JsonObject | None:
        """The object as the API server has it, or as it is known."""
        return await self.fresh(kind, namespace, name) if fresh else self.get(kind, namespace, name)

    def may_be_opened(self, key: Key) -> bool:
        """Whether the object is there for a workflow to look after; if it goes right afterwards, that is woken."""
        self.read(key, _of_object(key.kind, key.namespace, key.name))
        there = self._mirrors[key.kind].get(key.namespace, key.name)
        return there is not None and text_at(cast("JsonObject", there), "metadata", "uid") == key.uid

    def learn(self, kind: Kind, obj: JsonObject) -> None:
        """What a write has answered."""
        if kind.name in self._mirrors:
            self._mirrors[kind.name].learn(cast("kube.JsonObject", obj))

    def handles_of_claim(self, namespace: str, name: str) -> list[JsonObject]:
        """The handles that name the claim as theirs, oldest first; one is as it should be."""
        found = cast("list[JsonObject]", self.handles.find("claim", (namespace, name)))
        return sorted(found, key=lambda handle: text_at(handle, "metadata", "creationTimestamp"))

    def handles_of_pool(self, name: str) -> list[JsonObject]:
        """The handles that name the pool as theirs."""
        return cast("list[JsonObject]", self.handles.find("pool", name))

    def scalings_of_pool(self, name: str) -> list[JsonObject]:
        """The pool's scalings."""
        return cast("list[JsonObject]", self.scalings.find("pool", name))

    def all_providers(self) -> dict[str, JsonObject]:
        """Every provider by name."""
        everything = cast("Iterator[JsonObject]", self.providers.all())
        return {text_at(provider, "metadata", "name"): provider for provider in everything}

    async def providers_for(
        self, key: Key, *objects: JsonObject | None, names: Iterable[str] = ()
    ) -> dict[str, JsonObject]:
        """Every provider that the objects name, and all that these link to; those that do not exist are left out."""
        wanted = set(names).union(*(named_providers(each) for each in objects if each))
        found: dict[str, JsonObject] = {}
        absent: set[str] = set()
        while missing := providers_to_fetch(wanted - absent, found) - absent:
            for name in missing:
                self.read(key, f"provider/{name}")
                # One that was made a moment ago may not be known yet; one that is missing is seldom asked for.
                provider = self.get(RESOURCE_PROVIDER, self.namespace, name) or await self.fresh(
                    RESOURCE_PROVIDER, self.namespace, name
                )
                if provider is None:
                    absent.add(name)
                else:
                    found[name] = provider
        return found

    def read(self, key: Key, topic: str) -> None:
        """Note that a pass of this lifecycle has read this: `provider/<name>`, `pool/<name>`, `namespace/<name>`.

        A reader that read it too long ago to be told is forgotten: claims come and go, and a provider stays for months.
        """
        readers, moment = self._readers[topic], time.monotonic()
        readers.pop(key, None)
        readers[key] = moment  # at the end: the oldest come first
        while moment - readers[oldest := next(iter(readers))] >= MAY_HAVE_MISSED:
            del readers[oldest]

    # --- claims that wait for the binder ---

    def await_binder(self, name: Name) -> None:
        """The claim has to be looked at by the binder."""
        self.waiting[name] = None
        self.news.set()
        if not self.serving:
            if not self._untaken:
                asyncio.get_running_loop().call_later(UNTAKEN, self._wake_binder)
            self._untaken.add(name)

    def await_binder_all(self) -> None:
        """Every unbound claim has to be looked at, the oldest first: something that any may wait for has changed."""
        self.news_for_all += 1
        unbound = cast("list[JsonObject]", self.claims.find("unbound", True))
        for claim in sorted(unbound, key=lambda each: text_at(each, "metadata", "creationTimestamp")):
            self.await_binder(name_of(claim))

    def _unbound(self, claim: object) -> tuple[bool, ...]:
        return (True,) if is_unbound(self.names, cast("JsonObject", claim)) else ()

    def may_be_free(self, name: str) -> None:
        """The handle was chosen and could not be bound: it is among the free ones again, if it is free."""
        self._free_or_not(name, self.get(RESOURCE_HANDLE, self.namespace, name))

    def looked_at(self, claim: JsonObject, news_then: int, lacks: Wanted | None = None) -> None:
        """The binder has done what it can for the claim as it is now, if nothing came in while it did.

        Args:
            claim: As the look has left it.
            news_then: `news_for_all` when the look began.
            lacks: What it asks for, if no free handle is that, and only another one, or an edit, can change it.
        """
        name = name_of(claim)
        newest = self.get(RESOURCE_CLAIM, *name)
        if newest is not None and (_version(newest) != _version(claim) or news_then != self.news_for_all):
            return
        self.waiting.pop(name, None)
        if newest is not None and lacks is not None:
            self._lacks[name] = lacks

    def still_lacks(self, name: Name, moment: datetime) -> bool:
        """Whether a look at the claim could only find what the last one has: nothing is new of it, nothing fits."""
        lacks = self._lacks.get(name)
        if lacks is None or self.handles.find("claim", name):
            return False
        try:
            return next(self.free.candidates(lacks, moment), None) is None
        except FAULTS:
            return False

    def _wake_binder(self) -> None:
        """One wake for all: while wakes keep coming faster than it ends a run, a run cannot end."""
        untaken, self._untaken = self._untaken, set()
        if untaken & self.waiting.keys() and not self.serving:
            self._spawn(self._binder)

    # --- ends that the binder carries out ---

    def _await_end(self, name: str, handle: JsonObject | None) -> None:
        # One that is on its way out keeps its end: who was ending it may have died in the middle.
        if not self.ends.put(name, end_of_handle(handle) if handle and holder_of(handle) else None):
            return
        self._look_after(self.ends.next)
        if self.serving:
            self.nearer_end.set()
            self.news.set()
        elif not self._end_untold:
            self._end_untold = True
            asyncio.get_running_loop().call_later(ENDS_GATHER, self._tell_of_end)

    def _tell_of_end(self) -> None:
        self._end_untold = False
        # This machine's clock: it tells only whether to ask, and the binder goes by the engine's.
        if not self.serving and self.ends.await_sooner(datetime.now(UTC)):
            self._spawn(self._binder)

    def end_again(self, claim: Name) -> None:
        """The claim was being ended, and whether it was is not known."""
        for handle in self.handles_of_claim(*claim):
            self.ends.give_back(text_at(handle, "metadata", "name"))
        self.nearer_end.set()
        self.news.set()
        self._look_after(datetime.now(UTC))

    def _look_after(self, end: datetime | None) -> None:
        """Who should have told the binder may have died, or not been heard: what it does not take is told once more."""
        if end is None:
            return
        loop = asyncio.get_running_loop()
        seconds = max(timedelta(0), end - datetime.now(UTC)) + END_OVERDUE
        moment = loop.time() + seconds.total_seconds()
        if self._end_timer is None or moment < self._end_timer.when():
            if self._end_timer is not None:
                self._end_timer.cancel()
            self._end_timer = loop.call_at(moment, self._tell_of_overdue)

    def _tell_of_overdue(self) -> None:
        self._end_timer = None
        moment = datetime.now(UTC)
        if self.ends.become_overdue(moment) and not self.serving:
            self._spawn(self._binder)
        self._look_after(self.ends.next_after(moment))

    # --- changes ---

    def _claim_changed(self, before: JsonObject | None, after: JsonObject | None) -> None:
        claim = after or before or {}
        name = name_of(claim)
        self._lacks.pop(name, None)
        if after is None or not is_unbound(self.names, after):
            self.waiting.pop(name, None)
            if after is None:
                self._tell_readers(_of_object(RESOURCE_CLAIM.name, *name))
            elif is_unbound(self.names, before or {}):
                self._doubled(name)
        else:
            self.await_binder(name)

    def _handle_changed(self, before: JsonObject | None, after: JsonObject | None) -> None:
        name = text_at(after or before, "metadata", "name")
        free_before, holder = self.free.get(name), holder_of(after)
        if holder != holder_of(before):
            self._doubled(holder)
            claim = self.get(RESOURCE_CLAIM, *holder) if holder else None
            if holder and claim and is_unbound(self.names, claim):
                self.await_binder(holder)
        if after is None:
            self._tell_readers(_of_object(RESOURCE_HANDLE.name, self.namespace, name))
        for pool in {*_pools(before), *_pools(after)}:
            self._tell_readers(f"pool/{pool}")
        self._free_or_not(name, after)
        self._await_end(name, after)
        if self.claims.values_of("unbound") and may_fit_now(free_before, self.free.get(name)):
            self.await_binder_all()

    def _free_or_not(self, name: str, handle: JsonObject | None) -> None:
        try:
            free = free_handle(self.names, handle) if handle is not None else None
        except TooDeep:
            log.warning("ResourceHandle %s has a template nested beyond reason: no claim is bound to it", name)
            free = None
        if free is None:
            self.free.remove(name)
        else:
            self.free.add(free)

    def _doubled(self, claim: Name | None) -> None:
        """Where several handles name one claim, each looks whether the claim has another (duplicate_bindings.py)."""
        handles = self.handles.find("claim", claim) if claim else ()
        if len(handles) > 1:
            for handle in cast("list[JsonObject]", handles):
                self._spawn(key_of(RESOURCE_HANDLE, handle, self._cluster))

    def _provider_changed(self, before: JsonObject | None, after: JsonObject | None) -> None:
        if before is not None and after is not None and _as_rendered(before) == _as_rendered(after):
            return  # its status, which no pass reads
        self._tell_readers(f"provider/{text_at(after or before, 'metadata', 'name')}")
        self._lacks.clear()
        self.await_binder_all()

    def _namespace_changed(self, before: JsonObject | None, after: JsonObject | None) -> None:
        self._tell_readers(f"namespace/{text_at(after or before, 'metadata', 'name')}")

    def _tell_readers(self, topic: str) -> None:
        readers = self._readers.pop(topic, None)
        for key, moment in (readers or {}).items():
            if time.monotonic() - moment < MAY_HAVE_MISSED:
                self._spawn(key)

    def _spawn(self, key: Key) -> None:
        task = asyncio.get_running_loop().create_task(self._told(key))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _told(self, key: Key) -> None:
        try:
            await self._wake(key)
        except Exception as error:  # the watcher wakes as well; this is the second chance
            log.warning("%s could not be woken: %s", key, error)


def _as_rendered(provider: JsonObject) -> tuple[JsonObject, ...]:
    """What passes read of a provider."""
    metadata = object_at(provider, "metadata")
    return object_at(provider, "spec"), object_at(metadata, "labels"), object_at(metadata, "annotations")


def _of_object(kind: str, namespace: str, name: str) -> str:
    return f"{kind}/{namespace}/{name}"


def _version(obj: JsonObject) -> str:
    return text_at(obj, "metadata", "resourceVersion")


def _holders(handle: object) -> tuple[Name, ...]:
    holder = holder_of(cast("JsonObject", handle))
    return (holder,) if holder else ()


def _pools(obj: object) -> tuple[str, ...]:
    """The pool that a handle or scaling names."""
    name = text_at(cast("JsonObject", obj), "spec", "resourcePool", "name")
    return (name,) if name else ()
