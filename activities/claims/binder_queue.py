"""What the binder of a worker has to do: claims that wait for a handle, handles that are free, ends that come.

    informer cache, own writes --> free handles, waiting claims, ends --> the batch under way, or a wake of the binder

Claims that came in and that no batch has taken wake the binder, and so does an end that it does not expect.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from typing import cast

from activities.claims.cache import ClaimCache, is_rendered_otherwise
from activities.claims.expiry_queue import Ends
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE, binder
from domain.claims.faults import FAULTS
from domain.claims.marks import Name, is_unbound, name_of
from domain.claims.matching import FreeHandles, Wanted, free_handle, may_fit_now
from domain.claims.merging import TooDeep
from domain.claims.objects import JsonObject, text_at
from domain.claims.references import holder_of
from domain.claims.timestamps import end_of_handle
from engine.kube.store import Listener

UNTAKEN = 1.0
# Ends that come in together are told to the binder together.
ENDS_GATHER = 0.2
END_OVERDUE = timedelta(seconds=1)

log = logging.getLogger(__name__)


class BinderQueue:
    """The work of one installation's binder."""

    def __init__(self, cache: ClaimCache) -> None:
        self.cache = cache
        self._binder = binder(cache.names.domain, cache.cluster)
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
        cache.claims.listen(cast(Listener, self._claim_changed))
        cache.handles.listen(cast(Listener, self._handle_changed))
        cache.providers.listen(cast(Listener, self._provider_changed))

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
        for claim in self.cache.unbound():
            self.await_binder(name_of(claim))

    def may_be_free(self, name: str) -> None:
        """The handle was chosen and could not be bound: it is among the free ones again, if it is free."""
        self._free_or_not(name, self.cache.get(RESOURCE_HANDLE, self.cache.namespace, name))

    def looked_at(self, claim: JsonObject, news_then: int, lacks: Wanted | None = None) -> None:
        """The binder has done what it can for the claim as it is now, if nothing came in while it did.

        Args:
            claim: As the look has left it.
            news_then: `news_for_all` when the look began.
            lacks: What it asks for, if no free handle is that, and only another one, or an edit, can change it.
        """
        name = name_of(claim)
        newest = self.cache.get(RESOURCE_CLAIM, *name)
        if newest is not None and (_version(newest) != _version(claim) or news_then != self.news_for_all):
            return
        self.waiting.pop(name, None)
        if newest is not None and lacks is not None:
            self._lacks[name] = lacks

    def still_lacks(self, name: Name, moment: datetime) -> bool:
        """Whether a look at the claim could only find what the last one has: nothing is new of it, nothing fits."""
        lacks = self._lacks.get(name)
        if lacks is None or self.cache.handles.find("claim", name):
            return False
        try:
            return next(self.free.candidates(lacks, moment), None) is None
        except FAULTS:
            return False

    def _wake_binder(self) -> None:
        """One wake for all: while wakes keep coming faster than it ends a run, a run cannot end."""
        untaken, self._untaken = self._untaken, set()
        if untaken & self.waiting.keys() and not self.serving:
            self.cache.wake(self._binder)

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
            self.cache.wake(self._binder)

    def end_again(self, claim: Name) -> None:
        """The claim was being ended, and whether it was is not known."""
        for handle in self.cache.handles_of_claim(*claim):
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
            log.warning("ResourceHandle %s has a template nested beyond reason: no claim is bound to it", name)
            free = None
        if free is None:
            self.free.remove(name)
        else:
            self.free.add(free)

    def _provider_changed(self, before: JsonObject | None, after: JsonObject | None) -> None:
        if is_rendered_otherwise(before, after):
            self._lacks.clear()
            self.await_binder_all()


def _version(obj: JsonObject) -> str:
    return text_at(obj, "metadata", "resourceVersion")
