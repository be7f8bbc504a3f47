"""A pool's pass over handles that fail: at what pace it goes on, when it looks again, and how it deletes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from claim_domain import NAMES

from activities.claims.bundle import Bundle, Settled
from activities.claims.filling import Filling, PoolTools
from activities.claims.pools import PoolActivities
from activities.claims.releasing import Ended
from activities.claims.tools import Tools
from activities.conflicts import MOST_CONFLICTS
from domain.claims.constants import MANAGE_POOLS_INTERVAL
from domain.claims.passes import PoolKnown, PoolWorld
from domain.claims.plans import Fault, HandleBody, HandlePlan, PoolQuestion
from domain.claims.references import pool_reference
from domain.identity import Key
from domain.levers import PAUSED
from domain.resource import timestamp
from engine.errors import Conflict
from engine.settings import Settings

Json = dict[str, Any]
POOL: Json = {
    "apiVersion": NAMES.api_version,
    "kind": "ResourcePool",
    "metadata": {"namespace": "poolboy", "name": "spare", "uid": "1"},
    "spec": {"minAvailable": 2, "deleteUnhealthyResourceHandles": True},
}
KEY = Key(kind="ResourcePool", namespace="poolboy", name="spare", uid="1")


class Cluster:
    """The handles that there are: what is made is unhealthy at once. It plays all that a pass works with."""

    names = NAMES
    namespace = "poolboy"

    def __init__(self, fault: Fault | None = None) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.handles: dict[str, Json] = {}
        self.unseen: dict[str, Json] = {}  # those that the mirror does not know
        self.let_go_with: list[str] | None = None  # what was there when the pool lost its finalizer
        self.made: list[datetime] = []
        self.fault = fault
        self.disturbed = 0  # so often somebody writes a handle while it is being deleted

    async def fresh_handles(self) -> list[Json]:
        return [*self.handles.values(), *self.unseen.values()]

    async def fresh(self, kind: object, namespace: str, name: str) -> Json | None:
        return self.handles.get(name) or self.unseen.get(name)

    def read(self, key: Key, topic: str) -> None:
        pass

    def handles_of_pool(self, name: str) -> list[Json]:
        return [*self.handles.values()]

    def scalings_of_pool(self, name: str) -> list[Json]:
        return []

    async def providers_for(self, key: Key, pool: Json) -> Json:
        return {}

    async def pool_handle(self, question: PoolQuestion) -> HandleBody:
        return HandleBody(spec={"resourcePool": pool_reference(NAMES, question.pool)}, fault=self.fault)

    async def plan(self, *_: object) -> HandlePlan:
        return HandlePlan()

    async def settle(self, bundle: Bundle, *_: object) -> Settled:
        name = str(cast(Json, bundle.handle["metadata"])["name"])
        self.handles[name]["status"] = {"healthy": False, "ready": False}
        return Settled(self.handles[name], None, HandlePlan())

    async def create(self, kind: object, body: Json, namespace: str) -> Json:
        self.made.append(self.now)
        metadata = {**body["metadata"], "uid": body["metadata"]["name"], "creationTimestamp": timestamp(self.now)}
        self.handles[body["metadata"]["name"]] = made = {**body, "metadata": metadata}
        return made

    async def put(self, kind: object, before: Json, after: Json) -> Json:
        return after

    async def put_status(self, kind: object, before: Json, status: Json) -> Json:
        return before

    async def end(self, handle: Json, **_: object) -> Ended:
        if self.disturbed:
            self.disturbed -= 1
            raise Conflict("the object has been modified")
        for there in (self.handles, self.unseen):
            there.pop(handle["metadata"]["name"], None)
        return Ended()

    async def let_go(self, kind: object, pool: Json) -> None:
        self.let_go_with = [*self.handles, *self.unseen]

    def tools(self) -> PoolTools:
        async def opened(*_: object) -> None:
            pass

        part = cast(Any, self)
        tools = Tools(part, part, cast(Any, SimpleNamespace()), part, part, Settings())
        return PoolTools(tools, part, opened)

    async def look(self, known: PoolKnown, token: str) -> PoolWorld:
        return await Filling(self.tools(), KEY, cast(Any, POOL), token, known).fill()


async def looks(cluster: Cluster, lasting: timedelta) -> list[PoolWorld]:
    """All looks in that time: each deletion wakes the pool anew, so there is one a second, or a deadline."""
    until, worlds = cluster.now + lasting, [PoolWorld(key=KEY)]
    while cluster.now < until:
        worlds.append(await cluster.look(worlds[-1].known, str(len(worlds))))
        cluster.now += timedelta(seconds=1)
    return worlds[1:]


async def test_handles_of_a_provider_that_only_fails_are_not_replaced_without_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster()
    monkeypatch.setattr("activities.claims.filling.now", lambda: cluster.now)
    worlds = await looks(cluster, timedelta(seconds=31))
    began = cluster.made[0]
    # The first two and their replacements, which might have had bad luck; then two at each of Poolboy's polls.
    assert [(moment - began).total_seconds() for moment in cluster.made] == [0, 0, 0, 0, 10, 10, 20, 20, 30, 30]
    assert worlds[0].decision.deadline == began + MANAGE_POOLS_INTERVAL


async def test_a_pool_that_can_make_no_handle_looks_again_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(Fault(reason="TemplateLimit", message="more than 1.5 s"))
    monkeypatch.setattr("activities.claims.filling.now", lambda: cluster.now)
    (world,) = await looks(cluster, timedelta(seconds=1))
    assert world.decision.phase == "Stalled"
    assert world.decision.deadline == datetime(2026, 1, 1, tzinfo=UTC) + Settings().claims_interval


@pytest.mark.parametrize(
    ("times", "holder", "there", "said"),
    [
        (2, None, False, ""),
        (2, {"name": "mine"}, True, ""),
        (MOST_CONFLICTS, None, True, "the object has been modified"),
    ],
    ids=["written meanwhile", "bound meanwhile", "written all the time"],
)
async def test_a_handle_that_is_written_while_it_is_deleted_goes_all_the_same(
    times: int, holder: Json | None, there: bool, said: str
) -> None:
    cluster = Cluster()
    cluster.handles["guid-a"] = {"metadata": {"name": "guid-a"}, "spec": {}}
    cluster.disturbed = times
    before = cluster.end

    async def end(handle: Json, **more: object) -> Ended:
        if holder:
            cluster.handles["guid-a"] = {**handle, "spec": {"resourceClaim": holder}}
        return await before(handle, **more)

    cluster.end = end  # type: ignore[method-assign]
    assert await cluster.tools().delete_handle("guid-a") == said
    assert ("guid-a" in cluster.handles) is there


async def test_a_paused_handle_stays_and_its_pool_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("activities.claims.pools.now", lambda: datetime(2026, 1, 1, tzinfo=UTC))
    cluster = Cluster()
    metadata = {"name": "guid-a", "annotations": {PAUSED: "true"}}
    cluster.handles = {
        "guid-a": {"metadata": metadata, "spec": {"resourcePool": pool_reference(NAMES, cast(Any, POOL))}}
    }
    world = await PoolActivities(cluster.tools())._end(KEY, cast(Any, POOL))
    assert world.exists
    assert world.decision.why.endswith(f"guid-a is paused by its annotation {PAUSED}")
    assert (list(cluster.handles), cluster.let_go_with) == (["guid-a"], None)


async def test_free_handles_that_the_mirror_does_not_know_go_with_the_pool() -> None:
    cluster = Cluster()
    reference = pool_reference(NAMES, cast(Any, POOL))

    def handle(name: str, **spec: Any) -> Json:
        return {"metadata": {"name": name}, "spec": {"resourcePool": reference, **spec}}

    cluster.handles = {"guid-a": handle("guid-a")}
    held = handle("guid-c", resourceClaim={"name": "mine"})
    others = handle("guid-d", resourcePool={**reference, "name": "other"})
    cluster.unseen = {"guid-b": handle("guid-b"), "guid-c": held, "guid-d": others}
    world = await PoolActivities(cluster.tools())._end(KEY, cast(Any, POOL))
    assert (world.exists, cluster.let_go_with) == (False, ["guid-c", "guid-d"])
