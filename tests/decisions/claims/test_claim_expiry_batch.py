"""Claims whose ends have come are ended by the binder, many at once; all are asked to go before one is let go."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from claim_domain import BINDER, NAMES
from unwatched_cache import MOMENT, a_moment, unwatched_queue
from waiting import PATIENT

from activities.claims import binder as binder_module
from activities.claims import binder_queue as queue_module
from activities.claims import expiry_batch as batch_module
from activities.claims.binder import AT_ONCE, SERVED_AT_LEAST, Batch, BinderActivities
from activities.claims.binder_queue import BinderQueue
from activities.claims.expiry_batch import ExpiryBatch, behind_the_others
from activities.claims.expiry_queue import Ends
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE, phases
from domain.claims.evaluator_interface import HandlePlan
from domain.claims.expiry_batch import agreed_end
from domain.claims.passes import ObjectWorld, PassClaim
from domain.decision import Decision, Outcome
from domain.identity import Key
from domain.resource import timestamp
from domain.runner import wait_summary
from engine.errors import Conflict, Unavailable
from engine.settings import Settings

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER, LATEST = NOW + timedelta(hours=1), NOW + timedelta(hours=2)


# --- which end is plain ---


def a_claim(name: str = "mine", *, end: datetime | None = NOW, **status: Any) -> dict[str, Any]:
    shown = {"lifespan": {"end": timestamp(end)}} if end else {}
    return {
        "metadata": {"namespace": "users", "name": name, "uid": name, "resourceVersion": "1"},
        "spec": {},
        "status": {"resourceHandle": {"name": f"guid-{name}"}, **shown, **status},
    }


def a_handle(name: str = "mine", *, end: datetime | None = NOW, version: int = 1) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "poolboy", "name": f"guid-{name}", "uid": name, "resourceVersion": str(version)},
        "spec": {
            "resourceClaim": {"namespace": "users", "name": name},
            **({"lifespan": {"end": timestamp(end)}} if end else {}),
        },
    }


@pytest.mark.parametrize(
    ("requested", "shown", "of_handle", "agreed"),
    [
        ("", NOW, NOW, NOW),
        (timestamp(NOW), NOW, NOW, NOW),
        ("2026-01-01T00:00:00.0Z", NOW, NOW, NOW),
        (timestamp(LATER), NOW, NOW, None),
        ("soon", NOW, NOW, None),
        ("", LATER, NOW, None),
        ("", None, NOW, None),
        (timestamp(NOW), NOW, None, None),
        ("", None, None, None),
    ],
)
def test_an_end_is_plain_where_claim_and_handle_say_the_same(
    requested: str, shown: datetime | None, of_handle: datetime | None, agreed: datetime | None
) -> None:
    claim = a_claim(end=shown) | {"spec": {"lifespan": {"end": requested}} if requested else {}}
    assert agreed_end(cast(Any, claim), cast(Any, a_handle(end=of_handle))) == agreed


@pytest.mark.parametrize(
    ("binder_ends_at", "look_at", "patient"),
    [(LATER, LATEST, True), (None, LATEST, False), (LATER, NOW, False), (LATER, LATER, True)],
)
def test_a_claim_that_the_binder_ends_is_patient_only_at_its_end(
    binder_ends_at: datetime | None, look_at: datetime, patient: bool
) -> None:
    decision = phases.settled(
        cast(Any, a_handle(end=LATER)),
        HandlePlan(end=LATER),
        (),
        claimed=True,
        look_at=look_at,
        binder_ends_at=binder_ends_at,
    )
    assert decision.patience == (phases.LEFT_TO_BINDER if patient else timedelta(0))


# --- which end comes next ---


def test_ends_are_given_in_their_order_each_once() -> None:
    ends = Ends()
    for name, end in (("b", LATER), ("a", NOW), ("c", LATEST)):
        ends.put(name, end)
    assert ends.next == NOW
    assert [ends.take(LATER) for _ in range(3)] == ["a", "b", None]
    ends.put("a", NOW)
    assert ends.next == LATEST, "the same end put again is not given again"
    ends.put("a", LATER)
    assert ends.next == LATER, "another end is"


def test_an_end_that_moves_or_goes_is_forgotten() -> None:
    ends = Ends()
    ends.put("a", NOW)
    ends.put("a", LATEST)
    ends.put("b", LATER)
    ends.put("b", None)
    assert (ends.next, ends.take(LATER)) == (LATEST, None)


def test_an_unfinished_expiry_is_given_again() -> None:
    ends = Ends()
    ends.put("a", NOW)
    assert ends.take(NOW) == "a"
    ends.give_back("a")
    ends.give_back("b")
    assert ends.take(NOW) == "a"


@pytest.mark.parametrize(
    ("awaited", "comes", "notified"),
    [(None, LATER, True), (LATEST, LATER, True), (LATER, LATEST, False), (NOW, LATER, True), (LATER, NOW, False)],
)
def test_the_binder_is_woken_for_an_earlier_expiry_than_it_waits_for(
    awaited: datetime | None, comes: datetime, notified: bool
) -> None:
    ends = Ends()
    if awaited:
        ends.put("a", awaited)
        ends.wait()
    ends.put("b", comes)
    assert ends.await_sooner(NOW) is notified
    assert ends.await_sooner(NOW) is False, "once"


# --- the worker wakes the binder ---


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> list[Key]:
    """The lifecycles that the process has woken."""
    monkeypatch.setattr(queue_module, "ENDS_GATHER", MOMENT)
    return []


@pytest.fixture
def queue(woken: list[Key]) -> BinderQueue:
    return unwatched_queue(woken)


def far(hours: int) -> datetime:
    return datetime.now(UTC).replace(microsecond=0) + timedelta(hours=hours)


async def test_ends_that_come_in_wake_the_binder_once_and_again_only_for_a_sooner_one(
    queue: BinderQueue, woken: list[Key]
) -> None:
    for number in range(10):
        queue.cache.learn(RESOURCE_HANDLE, cast(Any, a_handle(str(number), end=far(10 + number))))
    await a_moment()
    assert woken == [BINDER]
    queue.cache.learn(RESOURCE_HANDLE, cast(Any, a_handle("late", end=far(30))))
    queue.cache.learn(RESOURCE_HANDLE, cast(Any, a_handle("0", end=far(40), version=2)))
    await a_moment()
    assert woken == [BINDER]
    queue.cache.learn(RESOURCE_HANDLE, cast(Any, a_handle("soon", end=far(1))))
    await a_moment()
    assert woken == [BINDER] * 2


async def test_a_batch_under_way_notices_a_nearer_expiry_by_itself(queue: BinderQueue, woken: list[Key]) -> None:
    queue.serving = 1
    queue.news.clear()
    queue.cache.learn(RESOURCE_HANDLE, cast(Any, a_handle(end=far(1))))
    assert queue.news.is_set()
    await a_moment()
    assert woken == []


async def test_handles_without_claim_end_by_themselves(queue: BinderQueue, woken: list[Key]) -> None:
    free = a_handle("free")
    del free["spec"]["resourceClaim"]
    queue.cache.learn(RESOURCE_HANDLE, cast(Any, free))
    await a_moment()
    assert (queue.ends.next, woken) == (None, [])


# --- the batch ---


class Area:
    """A worker's area with claims whose ends have come; what comes of looking at one is the test's."""

    def __init__(self, queue: BinderQueue, woken: list[Key]) -> None:
        self.queue, self.woken, self.held = queue, woken, ""
        self.cache = queue.cache
        self.looked: list[str] = []
        self.begun = asyncio.Event()
        self.notified: list[tuple[str, bool]] = []
        self.served: list[str] = []
        self.slowly: asyncio.Event | None = None
        self.answer: Callable[[str], Awaitable[None]] = self.gone
        self.settings = Settings()

    def hold(self, obj: Any) -> str:
        return self.held if obj["metadata"]["name"].endswith("held") else ""

    async def gone(self, name: str) -> None:
        await asyncio.sleep(0)

    def hangs(self) -> asyncio.Event:
        """From now on each end waits for this."""
        go_on = asyncio.Event()

        async def wait(name: str) -> None:
            await go_on.wait()

        self.answer = wait
        return go_on

    async def look(self, look: PassClaim) -> ObjectWorld:
        assert look.woken is False
        self.looked.append(look.key.name)
        self.begun.set()
        await self.answer(look.key.name)
        return ObjectWorld(key=look.key, exists=False, decision=phases.GONE)

    async def open(self, key: Key, world: ObjectWorld) -> None:
        self.notified.append((key.name, world.exists))

    async def wake(self, key: Key) -> None:
        self.woken.append(key)

    def has(self, *claims: dict[str, Any], **fields: Any) -> None:
        for claim in claims:
            self.queue.cache.learn(RESOURCE_CLAIM, cast(Any, claim))
            self.queue.cache.learn(RESOURCE_HANDLE, cast(Any, a_handle(claim["metadata"]["name"], **fields)))

    async def batch(self) -> bool:
        return await Batch(self.activities(), "").run()

    def activities(self) -> BinderActivities:
        activities = BinderActivities(cast(Any, self), self.queue, cast(Any, None), self.look, self.open, self.wake)
        self.queue.serving = 1

        async def serve(name: tuple[str, str], cluster: str) -> None:
            self.served.append(name[1])
            if self.slowly is not None:
                await self.slowly.wait()
            self.queue.waiting.pop(name, None)

        activities.one = serve  # type: ignore[assignment, method-assign]
        return activities


@pytest.fixture
def ended(queue: BinderQueue, woken: list[Key], monkeypatch: pytest.MonkeyPatch) -> Area:
    monkeypatch.setattr(binder_module, "now", lambda: NOW)
    monkeypatch.setattr(binder_module, "LINGER", 0.01)
    return Area(queue, woken)


async def test_all_that_expire_are_ended_and_their_workflows_notified(ended: Area) -> None:
    names = [f"c{number}" for number in range(5 * AT_ONCE)]
    ended.has(*map(a_claim, names))
    assert await ended.batch() is False
    assert sorted(ended.looked) == sorted(names)
    assert sorted(ended.notified) == sorted((name, False) for name in names)


async def test_a_claim_in_a_special_state_is_left_to_its_own_workflow(ended: Area) -> None:
    ignored, detached = a_claim("ignored"), a_claim("detached")
    ignored["metadata"]["labels"] = {NAMES.ignore_label: "true"}
    detached["status"]["resourceHandle"]["detached"] = True
    another, cut = a_claim("another"), a_claim("cut", end=LATER)
    another["status"]["resourceHandle"]["name"] = "guid-of-another"
    ended.held = "paused"
    ended.has(ignored, detached, another, cut, a_claim("held"), a_claim("plain"))
    await ended.batch()
    assert ended.looked == ["plain"]


async def test_a_claim_that_cannot_be_ended_blocks_no_other_and_checks_itself(
    ended: Area, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(name: str) -> None:
        if name == "unanswered":
            raise Unavailable("no answer")
        if name == "bug":
            raise KeyError("a bug")

    ended.answer = fail
    ended.has(*map(a_claim, ("bug", "unanswered", "plain")))
    await ended.batch()
    assert ended.notified == [("plain", False)]
    assert sorted(key.name for key in ended.woken if key != BINDER) == ["bug", "unanswered"]
    assert "users/unanswered was not deleted by its batch: no answer" in caplog.text


async def test_ends_leave_places_to_the_claims_that_wait(ended: Area) -> None:
    go_on = ended.hangs()
    ended.has(*(a_claim(f"c{number}") for number in range(3 * AT_ONCE)))
    waiting = {("users", f"new-{number}") for number in range(SERVED_AT_LEAST)}
    ended.queue.waiting |= dict.fromkeys(waiting)
    batch = asyncio.create_task(ended.batch())
    await a_moment()
    assert len(ended.served) == SERVED_AT_LEAST
    go_on.set()
    await batch
    assert len(ended.looked) == 3 * AT_ONCE


async def test_all_deletions_are_requested_before_the_first_release(ended: Area) -> None:
    did: list[str] = []

    async def end(name: str) -> None:
        did.append("asked")
        async with behind_the_others():
            did.append("let go")
        did.append("gone")

    ended.answer = end
    many = 10 * AT_ONCE
    ended.has(*(a_claim(f"c{number}") for number in range(many)))
    async with asyncio.timeout(5):
        await ended.batch()
    assert did[:many] == ["asked"] * many
    assert (did.count("let go"), did.count("gone")) == (many, many)


async def test_a_claim_that_a_dead_batch_was_ending_is_ended_by_the_next(ended: Area) -> None:
    async def never(name: str) -> None:
        await asyncio.sleep(60)

    ended.answer = never
    ended.has(*(a_claim(f"c{number}") for number in range(3)))
    batch = asyncio.create_task(ended.batch())
    await a_moment()
    batch.cancel()
    await asyncio.gather(batch, return_exceptions=True)
    ended.answer, ended.looked = ended.gone, []
    await ended.batch()
    assert sorted(ended.looked) == ["c0", "c1", "c2"]


async def test_a_batch_goes_on_for_an_end_that_is_near(ended: Area, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    monkeypatch.setattr(binder_module, "now", lambda: NOW + timedelta(seconds=loop.time() - began))
    ended.has(a_claim("near", end=NOW + timedelta(seconds=1)), end=NOW + timedelta(seconds=1))
    ended.has(a_claim("far", end=LATER), end=LATER)
    assert await ended.batch() is False
    assert ended.looked == ["near"]
    assert loop.time() - began >= 0.9, "not before its time"


async def test_only_who_ends_a_member_waits_and_not_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    arrived: list[bool] = []
    batch = ExpiryBatch(lambda: arrived.append(True))
    one = ("users", "one")
    batch.join(one)
    batch.gathers()
    async with behind_the_others():  # a pass of the claim's own workflow, say
        assert (batch.asking, arrived) == (1, [])

    async def let_go() -> None:
        async with batch.asks(one), behind_the_others():
            pass

    task = asyncio.create_task(let_go())
    await asyncio.sleep(0)
    assert (batch.asking, batch.marked, arrived, task.done()) == (0, 1, [True], False)
    batch.all_marked()
    async with asyncio.timeout(1):
        await task
    monkeypatch.setattr(batch_module, "LONGEST_WAIT", MOMENT)
    batch.gathers()
    async with asyncio.timeout(1):
        await let_go()


async def test_a_claim_whose_request_is_late_observes_itself_and_waiting_is_no_request(
    ended: Area, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_module, "LONGEST_ASKING", MOMENT)

    async def end(name: str) -> None:
        if name == "hangs":
            await asyncio.sleep(60)
        async with behind_the_others():
            await asyncio.sleep(2 * MOMENT)

    ended.answer = end
    ended.has(a_claim("hangs"), a_claim("plain"))
    async with asyncio.timeout(5):
        await ended.batch()
    assert (ended.notified, [key.name for key in ended.woken if key != BINDER]) == ([("plain", False)], ["hangs"])


async def test_an_end_comes_in_time_however_slowly_others_are_served(
    ended: Area, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, slow = asyncio.get_running_loop(), asyncio.Event()
    began = loop.time()
    monkeypatch.setattr(binder_module, "now", lambda: NOW + timedelta(seconds=loop.time() - began))
    monkeypatch.setattr(binder_module, "LONGEST_BATCH", 0.1)
    end = NOW + timedelta(seconds=1)
    ended.has(a_claim("mine", end=end), end=end)
    ended.queue.waiting |= dict.fromkeys(("users", f"new-{number}") for number in range(AT_ONCE))
    ended.slowly = slow
    batch = asyncio.create_task(ended.batch())
    async with asyncio.timeout(PATIENT):
        await ended.begun.wait()
    assert loop.time() - began >= 0.9
    assert not slow.is_set(), "all places are taken, and no more claims are begun"
    slow.set()
    await batch


async def test_a_new_claim_is_bound_however_slowly_others_end(ended: Area) -> None:
    go_on = ended.hangs()
    ended.has(*(a_claim(f"c{number}") for number in range(3 * AT_ONCE)))
    batch = asyncio.create_task(ended.batch())
    await a_moment()
    ended.queue.waiting[("users", "new")] = None
    ended.queue.news.set()
    await a_moment()
    assert ended.served == ["new"]
    go_on.set()
    await batch


async def test_a_batch_that_is_over_begins_no_more_ends_and_gives_way(
    ended: Area, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binder_module, "LONGEST_BATCH", MOMENT)

    async def slow(name: str) -> None:
        await asyncio.sleep(2 * MOMENT)

    ended.answer = slow
    ended.has(*(a_claim(f"c{number}") for number in range(3 * AT_ONCE)))
    assert await ended.batch() is True
    assert len(ended.looked) == AT_ONCE
    while await ended.batch():
        pass
    assert len(ended.looked) == 3 * AT_ONCE


async def test_a_nearer_expiry_is_noticed_while_all_places_are_taken(ended: Area) -> None:
    slow = asyncio.Event()
    ended.slowly = slow
    ended.queue.waiting |= dict.fromkeys(("users", f"new-{number}") for number in range(AT_ONCE))
    batch = asyncio.create_task(ended.batch())
    await a_moment()
    assert len(ended.served) == AT_ONCE
    ended.has(a_claim())
    async with asyncio.timeout(1):
        await ended.begun.wait()
    slow.set()
    await batch


async def test_a_claim_that_is_served_still_is_not_ended_beside_that(ended: Area) -> None:
    slow = asyncio.Event()
    ended.slowly = slow
    ended.queue.waiting[("users", "mine")] = None
    batch = asyncio.create_task(ended.batch())
    await a_moment()
    ended.has(a_claim(), a_claim("other"))
    await a_moment()
    assert (ended.served, ended.looked) == (["mine"], ["other"])
    slow.set()
    await batch


async def test_a_claim_written_meanwhile_is_requested_once_more() -> None:
    batch = ExpiryBatch(lambda: None)
    one = ("users", "one")
    batch.join(one)
    async with batch.asks(one):
        with pytest.raises(Conflict):
            async with behind_the_others():
                raise Conflict("written")
        assert (batch.asking, batch.marked) == (1, 0)
        async with behind_the_others():
            assert (batch.asking, batch.marked) == (0, 1)
    batch.leave(one)
    assert (batch.asking, batch.marked) == (0, 0)


async def test_ended_workflows_are_notified_by_the_next_batch_if_the_current_one_is_over(
    ended: Area, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binder_module, "LONGEST_BATCH", MOMENT)

    async def slow(name: str) -> None:
        await asyncio.sleep(2 * MOMENT)
        ended.queue.waiting[("users", "new")] = None

    ended.answer = slow
    ended.has(a_claim())
    activities = ended.activities()
    assert await Batch(activities, "").run() is True
    assert (ended.looked, ended.notified) == (["mine"], [])
    monkeypatch.setattr(binder_module, "LONGEST_BATCH", 1.0)
    assert await Batch(activities, "").run() is False
    assert ended.notified == [("mine", False)]


async def test_a_claim_being_deleted_goes_on_at_its_expiry(ended: Area) -> None:
    going = a_claim("going")
    going["metadata"]["deletionTimestamp"] = timestamp(NOW)
    ended.has(going)
    marked = a_handle("marked")
    marked["metadata"]["deletionTimestamp"] = timestamp(NOW)
    ended.has(a_claim("marked"))
    ended.queue.cache.learn(RESOURCE_HANDLE, cast(Any, marked))
    await ended.batch()
    assert sorted(ended.looked) == ["going", "marked"]


async def test_an_expiry_that_the_binder_does_not_take_is_sent_once_more(
    queue: BinderQueue, woken: list[Key], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_module, "END_OVERDUE", timedelta(seconds=MOMENT))
    monkeypatch.setattr(queue_module, "ENDS_GATHER", 60.0)  # a wake sent at once is lost
    queue.cache.learn(RESOURCE_HANDLE, cast(Any, a_handle(end=datetime.now(UTC))))
    await a_moment()
    assert woken == [BINDER]
    await a_moment()
    assert woken == [BINDER], "once: a paused one stays where it is"
    soon = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=1)
    queue.cache.learn(RESOURCE_HANDLE, cast(Any, a_handle("next", end=soon)))
    await asyncio.sleep((soon - datetime.now(UTC)).total_seconds() + 3 * MOMENT)
    assert woken == [BINDER] * 2


AGAIN = "the object is observed again 20 s after that time"


@pytest.mark.parametrize(
    ("patience", "until", "retries", "text"),
    [
        (0, NOW, {}, "until 00:00:00 UTC, then: end"),
        (20, NOW + timedelta(seconds=20), {}, f"until 00:00:00 UTC, then: end; {AGAIN}"),
        (0, NOW + timedelta(seconds=1), {}, "until 00:00:01 UTC, then: end"),
        (0, NOW, {"look": NOW}, "until 00:00:00 UTC, then: end"),
        (0, LATER, {"look": LATER}, "until 01:00:00 UTC, then: try again look"),
    ],
)
def test_the_timeline_says_until_when_and_what_follows(
    patience: int, until: datetime, retries: dict[str, datetime], text: str
) -> None:
    decision = Decision(
        phase="Ready",
        outcome=Outcome.SETTLED,
        why="a test",
        deadline=NOW,
        at_deadline="end",
        patience=timedelta(seconds=patience),
    )
    assert wait_summary(decision, until, retries) == text
