"""The binder's work in one worker: claims that wait for a handle, free handles, and the expiry of bound handles.

The queue wakes the binder if a claim has waited for a second and no batch runs, or if a handle expires before the
binder's next timer.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from typing import cast

from activities.claims.cache import ClaimCache, is_rendered_otherwise
from activities.claims.expiry_queue import Ends
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE, binder
from domain.claims.deep_merge import TooDeep
from domain.claims.faults import FAULTS
from domain.claims.handle_matching import FreeHandles, Wanted, free_handle, may_fit_now
from domain.claims.ignore_label import is_unbound
from domain.claims.json_objects import JsonObject, Name, name_of, text_at, version_of
from domain.claims.references import holder_of
from domain.claims.timestamps import end_of_handle
from engine.kube.informer_cache import Listener

UNTAKEN = 1.0  # seconds
# Seconds. Ends that are observed within this time share one wake.
ENDS_GATHER = 0.2
END_OVERDUE = timedelta(seconds=1)

log = logging.getLogger(__name__)


class BinderQueue:
    def __init__(self, cache: ClaimCache) -> None:
        self.cache = cache
        self._binder = binder(cache.names.domain, cache.cluster)
        self.free = FreeHandles()
        self.ends = Ends()
        self.waiting: dict[Name, None] = {}  # unbound claims to handle, in this order
        self.news = asyncio.Event()  # set when work arrives
        self.news_for_all = 0  # number of changes so far that may concern any unbound claim
        self.nearer_end = asyncio.Event()  # set when an end becomes the earliest one
        self.serving = 0  # batches that run in this process: at most one, apart from a batch that is being cancelled
        self._end_unsent = False
        self._end_timer: asyncio.TimerHandle | None = None
        self._untaken: set[Name] = set()  # waiting claims that wake the binder if no batch takes them within `UNTAKEN`
        self._lacks: dict[Name, Wanted] = {}  # by claim, the requirements that no free handle meets
        cache.claims.listen(cast(Listener, self._claim_changed))
        cache.handles.listen(cast(Listener, self._handle_changed))
        cache.providers.listen(cast(Listener, self._provider_changed))

    # --- claims that wait for the binder ---

    def await_binder(self, name: Name) -> None:
        self.waiting[name] = None
        self.news.set()
        if not self.serving:
            if not self._untaken:
                asyncio.get_running_loop().call_later(UNTAKEN, self._wake_binder)
            self._untaken.add(name)

    def await_binder_all(self) -> None:
        """Queue every unbound claim, oldest first: a change may concern any of them."""
        self.news_for_all += 1
        for claim in self.cache.unbound():
            self.await_binder(name_of(claim))

    def may_be_free(self, name: str) -> None:
        self._free_or_not(name, self.cache.get(RESOURCE_HANDLE, self.cache.namespace, name))

    def served(self, claim: JsonObject, news_then: int, lacks: Wanted | None = None) -> None:
        """Remove a claim from the queue after its pass, unless something has changed since.

        `news_then` is the value of `news_for_all` when the pass began. `lacks` is what the claim requires of a free
        handle; None if it does not wait for a free handle.
        """
        name = name_of(claim)
        newest = self.cache.get(RESOURCE_CLAIM, *name)
        if newest is not None and (version_of(newest) != version_of(claim) or news_then != self.news_for_all):
            return
        self.waiting.pop(name, None)
        if newest is not None and lacks is not None:
            self._lacks[name] = lacks

    def still_lacks(self, name: Name, moment: datetime) -> bool:
        """Whether the claim still finds no free handle, so that a pass would repeat the last result."""
        lacks = self._lacks.get(name)
        if lacks is None or self.cache.handles.find("claim", name):
            return False
        try:
            return next(self.free.candidates(lacks, moment), None) is None
        except FAULTS:
            return False

    def _wake_binder(self) -> None:
        """Wake the binder once for all waiting claims: with a wake for each, its workflow run might never end."""
        untaken, self._untaken = self._untaken, set()
        if untaken & self.waiting.keys() and not self.serving:
            self.cache.wake(self._binder)

    # --- handles that expire, which the binder deletes with their claims ---

    def _await_end(self, name: str, handle: JsonObject | None) -> None:
        # A handle that is being deleted stays queued, because its deletion may have been interrupted.
        if not self.ends.put(name, end_of_handle(handle) if handle and holder_of(handle) else None):
            return
        self._look_after(self.ends.next)
        if self.serving:
            self.nearer_end.set()
            self.news.set()
        elif not self._end_unsent:
            self._end_unsent = True
            asyncio.get_running_loop().call_later(ENDS_GATHER, self._wake_for_end)

    def _wake_for_end(self) -> None:
        self._end_unsent = False
        # This machine's clock only decides whether to wake; the binder uses the engine's time.
        if not self.serving and self.ends.await_sooner(datetime.now(UTC)):
            self.cache.wake(self._binder)

    def end_again(self, claim: Name) -> None:
        for handle in self.cache.handles_of_claim(*claim):
            self.ends.give_back(text_at(handle, "metadata", "name"))
        self.nearer_end.set()
        self.news.set()
        self._look_after(datetime.now(UTC))

    def _look_after(self, end: datetime | None) -> None:
        if end is None:
            return
        loop = asyncio.get_running_loop()
        seconds = max(timedelta(0), end - datetime.now(UTC)) + END_OVERDUE
        moment = loop.time() + seconds.total_seconds()
        if self._end_timer is None or moment < self._end_timer.when():
            if self._end_timer is not None:
                self._end_timer.cancel()
            self._end_timer = loop.call_at(moment, self._wake_for_overdue)

    def _wake_for_overdue(self) -> None:
        self._end_timer = None
        moment = datetime.now(UTC)
        if self.ends.become_overdue(moment) and not self.serving:
            self.cache.wake(self._binder)
        self._look_after(self.ends.next_after(moment))

    # --- changes ---

    def _claim_changed(self, before: JsonObject | None, after: JsonObject | None) -> None:
        name = name_of(after or before or {})
        self._lacks.pop(name, None)
        if after is not None and is_unbound(self.cache.names, after):
            self.await_binder(name)
        else:
            self.waiting.pop(name, None)

    def _handle_changed(self, before: JsonObject | None, after: JsonObject | None) -> None:
        name, holder = text_at(after or before, "metadata", "name"), holder_of(after)
        free_before = self.free.get(name)
        if holder and holder != holder_of(before):
            claim = self.cache.get(RESOURCE_CLAIM, *holder)
            if claim and is_unbound(self.cache.names, claim):
                self.await_binder(holder)
        self._free_or_not(name, after)
        self._await_end(name, after)
        if self.cache.claims.values_of("unbound") and may_fit_now(free_before, self.free.get(name)):
            self.await_binder_all()

    def _free_or_not(self, name: str, handle: JsonObject | None) -> None:
        try:
            free = free_handle(self.cache.names, handle) if handle is not None else None
        except TooDeep:
            log.warning("ResourceHandle %s has a template that is nested too deeply: no claim is bound to it", name)
            free = None
        if free is None:
            self.free.remove(name)
        else:
            self.free.add(free)

    def _provider_changed(self, before: JsonObject | None, after: JsonObject | None) -> None:
        if is_rendered_otherwise(before, after):
            self._lacks.clear()
            self.await_binder_all()
