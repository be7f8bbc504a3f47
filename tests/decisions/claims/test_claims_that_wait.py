"""Claims that wait for a free handle are looked at when one may fit them, and not for every other's handle."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from claim_domain import NAMES
from temporalio.testing import ActivityEnvironment
from unwatched_cache import unwatched_queue

from activities.claims import binder as binder_module
from activities.claims.binder import AT_ONCE, Batch, BinderActivities, places_in
from activities.inline_driver import Passed
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE, RESOURCE_PROVIDER, binder
from domain.claims.claim_preparation import Claim
from domain.claims.evaluator_interface import ClaimPlan, WantedEntry
from domain.claims.handle_matching import Wanted
from domain.claims.json_objects import text_at
from domain.claims.passes import ObjectWorld, Serve
from domain.claims.phases import waits_for_free
from domain.identity import Key
from domain.refusal import ErrorType, Refusal
from domain.runner import OBSERVE
from engine.settings import Settings

NOW = datetime(2026, 1, 1, tzinfo=UTC)
Json = dict[str, Any]


class Area:
    """A worker's area in which every claim asks for the pool `theirs`, and nothing may be made for it."""

    def __init__(self) -> None:
        self.queue = unwatched_queue([])
        self.queue.serving = 1
        self.cache = self.queue.cache
        self.settings = Settings()
        self.held = ""
        self.by_clock = False
        self.meanwhile: Callable[[], object] | None = None  # what happens once while a claim is looked at
        self.looked: list[str] = []
        self.notified: list[str] = []
        self.outcome: dict[str, object] = {}  # how looks end otherwise than decided: fields of the claim's world
        self.activities = BinderActivities(
            cast(Any, self), self.queue, self.bind, cast(Any, None), self.open, self.open
        )
        self.version = 0

    def hold(self, obj: Json) -> str:
        return self.held

    async def open(self, key: Key, world: ObjectWorld | None = None) -> None:
        self.notified.append(key.name)

    async def bind(self, key: Key) -> tuple[Passed[Claim], ObjectWorld]:
        self.looked.append(key.name)
        wanted = Wanted((WantedEntry(provider="things"),), pool="theirs")
        claim = self.queue.cache.get(RESOURCE_CLAIM, key.namespace, key.name)
        if (free := next(self.queue.free.candidates(wanted, NOW), None)) is None:
            happens, self.meanwhile = self.meanwhile, None
            if happens:
                happens()
        else:
            self.handle(free.name, holder=key.name)
            claim = self.claim(key.name, handle=free.name)
        entry = WantedEntry(provider="things")
        plan = ClaimPlan(by_clock=self.by_clock, wanted=(entry,), wanted_pool="theirs")
        seen = Claim.of(key, now=NOW, names=NAMES, handle={}, claim=claim, claim_plan=plan, none_free=free is None)
        seen = seen.model_copy(update=self.outcome)
        decision = waits_for_free(plan, NOW).model_copy(update={"why": self.held})
        return Passed(seen, decision), ObjectWorld(key=key, decision=decision)

    def claim(self, name: str, handle: str = "", created: str = "2026-01-01T00:00:00Z") -> Json:
        status = {"resourceHandle": {"name": handle}} if handle else {}
        return self._learn(RESOURCE_CLAIM, "users", name, created, status=status)

    def handle(self, name: str, pool: str = "theirs", holder: str = "") -> None:
        claim = {"resourceClaim": {"namespace": "users", "name": holder}} if holder else {}
        spec = {"resourcePool": {"name": pool}, "resources": [{"provider": {"name": "things"}}], **claim}
        self._learn(RESOURCE_HANDLE, "poolboy", name, spec=spec)

    def _learn(self, kind: Any, namespace: str, name: str, created: str = "", **fields: Any) -> Json:
        self.version += 1
        metadata = {"namespace": namespace, "name": name, "uid": name, "resourceVersion": str(self.version)}
        metadata |= {"creationTimestamp": created} if created else {}
        obj = {"metadata": metadata, "spec": {}, **fields}
        self.queue.cache.learn(kind, cast(Any, obj))
        return obj

    def provider(self) -> None:
        self._learn(RESOURCE_PROVIDER, "poolboy", "things")

    async def refused(self, *refusals: Refusal, gone: bool = False) -> tuple[Key, ObjectWorld] | None:
        """The world that is sent to the workflow of `b` after an observation with these refusals."""
        self.outcome = {"refusals": dict.fromkeys([OBSERVE], *refusals) if refusals else {}, "exists": not gone}
        self.queue.await_binder(("users", "b"))
        return await self.activities.one(("users", "b"), "")

    async def batch(self, places: int = AT_ONCE) -> list[str]:
        """Who was looked at."""
        self.looked.clear()
        assert not await Batch(self.activities, "", places).run()
        assert not self.queue.waiting
        return sorted(self.looked)


@pytest.fixture
async def area(monkeypatch: pytest.MonkeyPatch) -> Area:
    """Three claims that wait."""
    monkeypatch.setattr(binder_module, "now", lambda: NOW)
    monkeypatch.setattr(binder_module, "LINGER", 0.01)
    area = Area()
    for name in ("a", "b", "c"):
        area.claim(name)
    assert await area.batch() == ["a", "b", "c"]
    assert sorted(area.notified) == ["a", "b", "c"]
    return area


async def test_a_handle_that_fits_no_claim_has_no_claim_checked(area: Area) -> None:
    area.handle("guid-1", pool="others")
    assert area.queue.waiting
    assert await area.batch() == []


async def test_of_many_matching_claims_only_those_begun_together_are_observed(area: Area) -> None:
    for number in range(2 * AT_ONCE):
        area.claim(f"more-{number:02}")
    await area.batch()
    area.handle("guid-1")
    assert len(await area.batch()) == AT_ONCE
    assert area.queue.free.get("guid-1") is None
    area.handle("guid-2")
    await area.batch()
    assert area.queue.free.get("guid-2") is None


async def test_a_batch_that_was_broken_off_twice_looks_at_fewer_at_once(area: Area) -> None:
    assert [places_in(attempt) for attempt in range(1, 10)] == [16, 16, 8, 4, 2, 1, 1, 1, 1]
    for places in (4, 1):
        for number in range(AT_ONCE):
            area.claim(f"more-{number:02}")
        await area.batch()
        area.handle(f"guid-{places}")
        assert len(await area.batch(places)) == places


async def test_the_claim_that_has_waited_longest_is_bound_first(area: Area) -> None:
    for number in range(3 * AT_ONCE):
        area.claim(f"more-{number:02}", created=f"2025-01-01T00:00:{59 - number:02}Z")
    await area.batch()
    area.handle("guid-1")
    await area.batch()
    last = f"more-{3 * AT_ONCE - 1:02}"
    assert text_at(area.queue.cache.get(RESOURCE_CLAIM, "users", last), "status", "resourceHandle", "name") == "guid-1"


async def test_news_of_a_claim_has_it_observed(area: Area) -> None:
    area.claim("b")
    assert await area.batch() == ["b"]


async def test_a_changed_provider_has_all_observed(area: Area) -> None:
    area.provider()
    assert await area.batch() == ["a", "b", "c"]


async def test_a_claim_whose_workflow_asks_is_observed(area: Area, monkeypatch: pytest.MonkeyPatch) -> None:
    async def reached(_: object) -> bool:
        return True

    monkeypatch.setattr(area.cache, "reached", reached)
    area.looked.clear()
    asks = Key(kind=RESOURCE_CLAIM.name, namespace="users", name="c", uid="c")
    await ActivityEnvironment().run(area.activities.serve, Serve(key=binder("", ""), asked=(asks,)))
    assert area.looked == ["c"]


async def test_a_claim_that_has_a_handle_already_is_observed(area: Area) -> None:
    area.handle("guid-1", holder="a")
    assert await area.batch() == ["a"]


async def test_a_claim_that_is_on_hold_has_its_workflow_notified(area: Area) -> None:
    area.held = "the area is paused"
    area.handle("guid-1", pool="others")
    await area.batch()
    assert sorted(area.notified[3:]) == ["a", "b", "c"]


async def test_a_claim_that_time_may_change_is_observed(area: Area) -> None:
    area.by_clock = True
    area.claim("b")
    await area.batch()
    area.handle("guid-1", pool="others")
    assert await area.batch() == ["b"]


@pytest.mark.parametrize("what", ["an edit of the claim", "an edit of its provider", "a handle that fits"])
async def test_news_during_an_observation_of_a_claim_is_not_missed(area: Area, what: str) -> None:
    comes = {
        "an edit of the claim": lambda: area.claim("b"),
        "an edit of its provider": area.provider,
        "a handle that fits": lambda: area.handle("guid-1"),
    }
    area.meanwhile = comes[what]
    area.claim("b")
    assert (await area.batch()).count("b") == 2
    assert area.queue.free.get("guid-1") is None


async def test_a_claim_always_written_by_others_stays_among_the_waiting_ones(area: Area) -> None:
    await area.refused(Refusal(type=ErrorType.CONFLICT, message="changed", at=NOW))
    assert area.queue.waiting
    assert sorted(area.notified) == ["a", "b", "c"]


async def test_a_claim_that_cannot_be_bound_has_its_workflow_notified_and_blocks_no_other(area: Area) -> None:
    notified = await area.refused(Refusal(type=ErrorType.UNAVAILABLE, message="no answer", at=NOW))
    assert notified is not None
    assert (notified[1].decision.at_deadline, notified[1].decision.why) == ("try again", "Unavailable: no answer")
    assert not area.queue.waiting


async def test_a_handle_that_a_claim_got_while_it_was_deleted_ends_as_well(area: Area) -> None:
    area.handle("guid-1", holder="b")
    area.notified.clear()
    assert await area.refused(gone=True) is None
    assert area.notified == ["guid-1", "b"]
    assert not area.queue.waiting
