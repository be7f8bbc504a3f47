"""A batch of the ClaimBinder: it handles claims as they arrive, for some seconds; then the next batch begins.

    waiting claims --> bind (binding.py)  --> open their own workflows
    expired claims --> delete (claims.py) --> inform their own workflows

Waiting and expired claims share 16 slots. Workflows are opened and informed when no claim waits.

A claim that cannot be bound never delays others: its own workflow is informed and asks again. If a limit or a person
has moved a claim's end, or a hold applies, the claim's own workflow decides. If a batch is retried because its worker
died, it wakes the claims that earlier attempts have bound, whose workflows might not be open.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from temporalio import activity
from temporalio.service import RPCError

from activities import attempt
from activities.activity_class import Activities
from activities.claims.binder_queue import BinderQueue
from activities.claims.expiry_batch import ExpiryBatch
from activities.claims.tools import Tools
from activities.gather import gathered
from activities.inline_driver import Passed
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE, phases
from domain.claims.claim_binding import lacks
from domain.claims.claim_preparation import Claim
from domain.claims.expiry_batch import ends_in_batch
from domain.claims.ignore_label import is_managed
from domain.claims.json_objects import Name, key_of, text_at
from domain.claims.passes import BinderWorld, ObjectWorld, PassClaim, Serve
from domain.claims.references import holder_of
from domain.claims.timestamps import ahead
from domain.decision import Decision
from domain.identity import Key
from domain.resource import parse_timestamp
from domain.runner import OUTDATED
from engine.clock import now
from engine.errors import ApiError, as_error

AT_ONCE = 16
# Of the AT_ONCE slots, some are reserved for waiting claims, because many expiries at once would delay these claims by
# seconds. Others are reserved for expired claims, because a few slow templates or webhooks would delay their deletion.
SERVED_AT_LEAST = 8
ENDED_AT_LEAST = 4
# Number of attempts of a batch that run at full size. Each later attempt has half the size of the attempt before it,
# because a batch that never completes may be too much for its worker.
WHOLE_ATTEMPTS = 2
# Seconds. Between batches, claims wait until the workflows of bound claims are opened. A burst should therefore fit
# into one batch, even on a busy machine. A claim that asks again during a batch waits for the next batch.
LONGEST_BATCH = 15.0
MOST_SERVED = 400
# Seconds since the batch began. Until then, a batch that only waits for slow claims still starts to delete expired
# claims.
LONGEST_WITH_ENDS = 60.0
# Seconds that a batch waits for more work: a claim may reach this worker's cache milliseconds after the wake.
LINGER = 0.25
OPENED_AT_ONCE = 8
# The most passes of a claim in a batch, if another client keeps writing its objects.
MOST_CONFLICTS = 5
MOST_REMEMBERED = 20_000

Bind = Callable[[Key], Awaitable[tuple[Passed[Claim], ObjectWorld]]]
Open = Callable[[Key, ObjectWorld], Awaitable[None]]
Look = Callable[[PassClaim], Awaitable[ObjectWorld]]
Wake = Callable[[Key], Awaitable[None]]

log = logging.getLogger(__name__)


class BinderActivities(Activities):
    def __init__(
        self, tools: Tools, queue: BinderQueue, bind: Bind, look_at_claim: Look, open_claim: Open, wake: Wake
    ) -> None:
        self._tools = tools
        self._look_at_claim = look_at_claim
        self._cache = tools.cache
        self._queue = queue
        self._bind = bind
        self._open_claim = open_claim
        self._wake = wake
        self._answered: dict[str, Decision] = {}
        self._failures: dict[str, int] = {}
        self.unanswered: list[tuple[Key, ObjectWorld]] = []  # the last batch's results that were not sent

    @activity.defn(name=Serve.activity)
    async def serve(self, look: Serve) -> BinderWorld:
        await self._cache.reached(look.seen)
        if look.dry_run:
            return BinderWorld(key=look.key, decision=self._idle(self._queue.ends.next))
        for request in look.asked:
            self._answered.pop(request.uid, None)  # its workflow waits for an answer
            self._queue.await_binder((request.namespace, request.name))
        if attempt.repeated():
            await self._wake_bound_since(look)
        self._queue.serving += 1
        try:
            more = await Batch(self, look.key.cluster, places_in(attempt.number())).run()
        finally:
            self._queue.serving -= 1
        return BinderWorld(key=look.key, decision=self._idle(self._queue.ends.wait()), more=more)

    def _idle(self, next_end: datetime | None) -> Decision:
        free, waiting = len(self._queue.free), len(self._queue.waiting)
        claims = (self._cache.get(RESOURCE_CLAIM, *name) for name in self._queue.waiting)
        oldest = min((text_at(claim, "metadata", "creationTimestamp") for claim in claims if claim), default="")
        return phases.serving(free, waiting, oldest, next_end)

    async def _wake_bound_since(self, look: Serve) -> None:
        since = attempt.since() - timedelta(seconds=1)
        for claim in self._cache.claims.all():
            start = parse_timestamp(text_at(claim, "status", "lifespan", "start"))  # type: ignore[arg-type]
            if start is not None and start >= since:
                await self._wake(key_of(RESOURCE_CLAIM, claim, look.key.cluster))  # type: ignore[arg-type]

    async def one(self, name: Name, cluster: str) -> tuple[Key, ObjectWorld] | None:
        began, news_then = now(), self._queue.news_for_all
        claim = self._cache.get(RESOURCE_CLAIM, *name)
        if claim is None or not is_managed(self._cache.names, claim):
            self._queue.waiting.pop(name, None)
            return None  # the claim is gone, being deleted or ignored: its own workflow handles that
        key = key_of(RESOURCE_CLAIM, claim, cluster)
        try:
            passed, world = await self._bind(key)
        except ApiError as error:
            return self._news(key, self._failed(name, key, error.type.value, error.message, began))
        except Exception as error:  # a bug must not delay other claims
            log.exception("%s could not be bound", key)
            return self._news(key, self._failed(name, key, "Bug", f"{type(error).__name__}: {error}", began))
        seen = passed.world
        if not (seen.exists and seen.claim and is_managed(self._cache.names, seen.claim)):
            await self._leaves(key)
            return None
        if passed.refusals:
            if all(refusal.type in OUTDATED for refusal in passed.refusals.values()):
                return None  # the claim keeps waiting
            refusal = next(iter(passed.refusals.values()))
            return self._news(key, self._failed(name, key, refusal.type.value, refusal.message, began))
        self._failures.pop(key.uid, None)
        self._queue.served(seen.claim, news_then, lacks(seen))
        return self._news(key, world)

    def still_waits(self, name: Name) -> bool:
        """Whether the claim's next pass would only repeat its last result. If so, this also dequeues the claim."""
        claim = self._cache.get(RESOURCE_CLAIM, *name)
        answered = claim is not None and text_at(claim, "metadata", "uid") in self._answered
        if not answered or not self._queue.still_lacks(name, now()) or self._tools.hold(claim or {}):
            return False
        self._queue.waiting.pop(name, None)
        return True

    def ending(self) -> Name | None:
        """Take the next expired claim that the batch may delete."""
        while (handle_name := self._queue.ends.take(now())) is not None:
            handle = self._cache.get(RESOURCE_HANDLE, self._cache.namespace, handle_name)
            name = holder_of(handle)
            claim = self._cache.get(RESOURCE_CLAIM, *name) if name else None
            held = any(self._tools.hold(each) for each in (claim, handle) if each)
            if claim and handle and not held and ends_in_batch(self._cache.names, claim, handle):
                return name
        return None

    async def end(self, name: Name, cluster: str, batch: ExpiryBatch) -> tuple[Key, ObjectWorld] | None:
        """Delete an expired claim by a pass over it; None if it is gone or its own workflow has to delete it."""
        claim = self._cache.get(RESOURCE_CLAIM, *name)
        if claim is None:
            return None
        key = key_of(RESOURCE_CLAIM, claim, cluster)
        try:
            async with batch.asks(name):
                world = await self._look_at_claim(PassClaim(key=key, woken=False))
            for refusal in world.refusals.values():
                raise as_error(refusal)
            return key, world
        except TimeoutError:
            log.warning("%s was not deleted by its batch in time; its own workflow deletes it", key)
        except ApiError as error:
            log.warning("%s was not deleted by its batch: %s; its own workflow deletes it", key, error.message)
        except Exception:  # a bug must not delay other claims
            log.exception("%s was not deleted by its batch; its own workflow deletes it", key)
        with suppress(RPCError):
            await self._wake(key)
        return None

    async def _leaves(self, key: Key) -> None:
        name = (key.namespace, key.name)
        self._queue.waiting.pop(name, None)
        for handle in self._cache.handles_of_claim(*name):
            await self._wake(key_of(RESOURCE_HANDLE, handle, key.cluster))
        await self._wake(key)

    def _news(self, key: Key, world: ObjectWorld) -> tuple[Key, ObjectWorld] | None:
        if self._answered.get(key.uid) == world.decision:
            return None
        if len(self._answered) >= MOST_REMEMBERED:
            self._answered.clear()
        self._answered[key.uid] = world.decision
        return key, world

    async def open(self, key: Key, world: ObjectWorld) -> None:
        try:
            await self._open_claim(key, world)
        except BaseException:
            self.forget(key)
            raise

    def forget(self, key: Key) -> None:
        if self._answered.pop(key.uid, None):
            self._queue.await_binder((key.namespace, key.name))

    def _failed(self, name: Name, key: Key, type_: str, message: str, began: datetime) -> ObjectWorld:
        self._queue.waiting.pop(name, None)  # its own workflow asks again at the deadline below
        failures = self._failures[key.uid] = self._failures.get(key.uid, 0) + 1
        return ObjectWorld(key=key, decision=phases.not_bound(type_, message, failures, now()), at=began)


def places_in(attempt: int) -> int:
    return max(1, AT_ONCE >> max(0, attempt - WHOLE_ATTEMPTS))


class Batch:
    def __init__(self, activities: BinderActivities, cluster: str, at_once: int = AT_ONCE) -> None:
        self._activities = activities
        self._at_once = at_once
        self._served_at_least = max(1, at_once * SERVED_AT_LEAST // AT_ONCE)
        self._ended_at_least = max(1, at_once * ENDED_AT_LEAST // AT_ONCE)
        self._longest = LONGEST_BATCH * at_once / AT_ONCE
        self._cache = activities._cache
        self._queue = activities._queue
        self._expiring = ExpiryBatch(activities._queue.news.set)
        self._cluster = cluster
        self._under_way: dict[asyncio.Task[tuple[Key, ObjectWorld] | None], Name] = {}
        self._to_open, activities.unanswered = activities.unanswered, []
        self._served = 0
        self._retried: dict[Name, int] = {}

    async def run(self) -> bool:
        began = quiet_since = time.monotonic()
        try:
            while True:
                seconds = time.monotonic() - began
                serves = seconds < self._longest and self._served < MOST_SERVED
                self._queue.news.clear()
                self._queue.nearer_end.clear()
                if serves or (self._serving() and seconds < LONGEST_WITH_ENDS):
                    self._begin_ends()
                else:
                    self._expiring.all_marked()
                if serves:
                    self._begin()
                if self._under_way:
                    await self._next()
                    quiet_since = time.monotonic()
                    continue
                if not serves:
                    break
                await self._open_while_quiet()
                left = quiet_since + LINGER - time.monotonic()
                if left <= 0 and not any(self._startable()) and not self._queue.ends.is_near(now()):
                    break
                near = self._until_next_end() if self._queue.ends.is_near(now()) else None
                await self._news_within(max(left, near or 0.0))
            await self._open_the_rest()
            self._activities.unanswered = self._to_open
        except BaseException:
            self._activities.unanswered = [pair for pair in self._to_open if not pair[1].exists]
            for key, world in self._to_open:
                if world.exists:
                    self._activities.forget(key)
            raise
        finally:
            for task in self._under_way:
                task.cancel()
            for name in self._expiring.members:
                self._queue.end_again(name)
        return bool(self._queue.waiting or self._activities.unanswered) or self._queue.ends.is_near(now())

    def _until_next_end(self) -> float | None:
        end = ahead(self._queue.ends.next, now())
        return (end - now()).total_seconds() if end is not None else None

    def _startable(self) -> Iterator[Name]:
        taken = set(self._under_way.values())
        return (n for n in self._queue.waiting if n not in taken and self._retried.get(n, 0) < MOST_CONFLICTS)

    def _begin_ends(self) -> None:
        most = self._at_once - (self._served_at_least if any(self._startable()) else 0)
        while self._expiring.asking < (most if self._places() > 0 else self._ended_at_least):
            if (name := self._activities.ending()) is None:
                break
            if name in self._under_way.values():
                continue  # that pass sees that the claim has expired
            self._expiring.join(name)
            self._start(name, self._activities.end(name, self._cluster, self._expiring))
        if self._queue.ends.are_over(now()):
            self._expiring.gathers()
        elif not self._expiring.asking:
            self._expiring.all_marked()

    def _begin(self) -> None:
        room = max(0, self._places(), self._served_at_least - self._serving())
        while room and (name := next(self._startable(), None)) is not None:
            if self._activities.still_waits(name):
                continue
            room -= 1
            self._served += 1
            self._retried[name] = self._retried.get(name, 0) + 1
            self._start(name, self._activities.one(name, self._cluster))

    def _serving(self) -> int:
        return len(self._under_way) - len(self._expiring)

    def _places(self) -> int:
        return self._at_once - len(self._under_way) + self._expiring.marked

    def _start(self, name: Name, work: Coroutine[None, None, tuple[Key, ObjectWorld] | None]) -> None:
        self._under_way[asyncio.create_task(work)] = name

    async def _next(self) -> None:
        waits: set[asyncio.Task[object]] = set(self._under_way)
        has_room = self._places() > 0 or self._expiring.asking or self._expiring.is_gathering
        event = self._queue.news if has_room else self._queue.nearer_end
        news = asyncio.create_task(event.wait())
        waits.add(news)
        # An expired claim already waits for a free slot, so it needs no timeout.
        done, _ = await asyncio.wait(waits, timeout=self._until_next_end(), return_when=asyncio.FIRST_COMPLETED)
        news.cancel()
        for task in done:
            if task in self._under_way:
                self._expiring.leave(self._under_way.pop(task))  # type: ignore[arg-type]
                if pair := task.result():
                    self._to_open.append(pair)  # type: ignore[arg-type]

    async def _news_within(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(max(seconds, 0.001)):
                await self._queue.news.wait()
        except TimeoutError:
            return

    async def _open_while_quiet(self) -> None:
        while self._to_open and not self._queue.news.is_set() and not self._queue.ends.are_over(now()):
            some, self._to_open = self._to_open[:OPENED_AT_ONCE], self._to_open[OPENED_AT_ONCE:]
            await self._open(some)

    async def _open_the_rest(self) -> None:
        """Send the results of passes to the claims' workflows. Those of deleted claims come last, and only if no claim
        waits for a handle.
        """
        self._to_open.sort(key=lambda pair: not pair[1].exists)
        while self._to_open and not self._queue.ends.are_over(now()):
            some = self._to_open[:OPENED_AT_ONCE]
            if self._queue.waiting and not some[0][1].exists:
                return
            del self._to_open[:OPENED_AT_ONCE]
            await self._open(some)

    async def _open(self, some: Sequence[tuple[Key, ObjectWorld]]) -> None:
        places = asyncio.Semaphore(OPENED_AT_ONCE)

        async def one(key: Key, world: ObjectWorld) -> None:
            async with places:
                await self._activities.open(key, world)

        await gathered(one(key, world) for key, world in some)
