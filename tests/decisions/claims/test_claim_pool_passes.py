"""A pool's pass over handles that fail: at what pace it goes on, when it looks again, and how it deletes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from claim_domain import NAMES
from claim_scenes import settled
from temporalio.testing import ActivityEnvironment

from activities.claims.handle_deletion import Ended
from activities.claims.object_writes import WriteActivities
from activities.claims.pools import PoolActivities
from activities.claims.tools import Tools
from activities.inline_driver import SECOND_LOOKS, effects_of
from domain.claims import RESOURCE_POOL, RESOURCE_POOL_SCALING
from domain.claims.constants import MANAGE_POOLS_INTERVAL
from domain.claims.evaluator_interface import Fault, HandleBody, HandlePlan, PoolQuestion
from domain.claims.handle_reconciliation import HandleWorld
from domain.claims.passes import PassPool, PoolMemory, PoolWorld
from domain.claims.phases import SOON
from domain.claims.references import reference_to
from domain.control_annotations import PAUSED
from domain.identity import Key, Kind
from domain.resource import timestamp
from domain.writes import RecordEvents
from engine.errors import ApiError, Conflict, Denied, Invalid, Unavailable
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
    edits = 0

    def __init__(self, fault: Fault | None = None) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.pool = POOL
        self.handles: dict[str, Json] = {}
        self.unseen: dict[str, Json] = {}  # those that the mirror does not know
        self.let_go_with: list[str] | None = None  # what was there when the pool lost its finalizer
        self.made: list[datetime] = []
        self.fault = fault
        self.healthy = False
        self.refused = 0  # handles whose name was taken
        self.refusal: ApiError | None = None  # the API server's answer to each new handle
        self.disturbed = 0  # how often another client writes a handle while it is being deleted
        self.scalings: dict[str, Json] = {}
        self.events: list[tuple[str, str]] = []
        self.status_refusal: ApiError | None = None  # the API server's answer to each write of a status
        self.owner_refused = False  # whether this worker may not make the pool the owner of its scalings

    async def fresh_handles(self) -> list[Json]:
        return [*self.handles.values(), *self.unseen.values()]

    async def reached(self, seen: Mapping[str, str]) -> bool:
        return True

    def newest(self, *kinds: Kind) -> dict[str, str]:
        return {kind.name: str(len(self.made)) for kind in kinds}

    def check_later(self, key: Key, edits: int) -> None:
        pass

    async def own(self, kind: Kind, key: Key, *, fresh: bool) -> Json | None:
        return self.pool

    async def fresh(self, kind: Kind, namespace: str, name: str) -> Json | None:
        return self.handles.get(name) or self.unseen.get(name)

    def handles_of_pool(self, name: str) -> list[Json]:
        return [*self.handles.values()]

    def scalings_of_pool(self, name: str) -> list[Json]:
        return [*self.scalings.values()]

    def get(self, kind: object, namespace: str, name: str) -> Json | None:
        return self.scalings.get(name)

    async def providers_for(self, pool: Json) -> Json:
        return {}

    async def pool_handle(self, question: PoolQuestion) -> HandleBody:
        return HandleBody(spec={"resourcePool": reference_to(NAMES, RESOURCE_POOL, question.pool)}, fault=self.fault)

    async def planned(self, key: Key, handle: Json, now: datetime) -> HandlePlan:
        return HandlePlan()

    async def settle(self, world: HandleWorld) -> HandleWorld:
        name = str(cast(Json, world.handle["metadata"])["name"])
        self.handles[name]["status"] = {"healthy": self.healthy, "ready": False}
        return settled(self.handles[name], now=self.now)

    async def create(self, kind: object, body: Json, namespace: str) -> Json:
        if self.refusal:
            raise self.refusal
        if body["metadata"]["name"] in {**self.handles, **self.unseen}:
            self.refused += 1
            raise Conflict("it exists", code="AlreadyExists")
        self.made.append(self.now)
        metadata = {**body["metadata"], "uid": body["metadata"]["name"], "creationTimestamp": timestamp(self.now)}
        self.handles[body["metadata"]["name"]] = made = {**body, "metadata": metadata}
        return made

    async def put(self, kind: object, before: Json, after: Json) -> Json:
        if kind is RESOURCE_POOL_SCALING and self.owner_refused:
            raise Denied("cannot set an ownerRef on a resource you can't delete")
        return after

    async def put_status(self, kind: object, before: Json, status: Json) -> Json:
        if self.status_refusal:
            raise self.status_refusal
        after = {**before, "status": status}
        if kind is RESOURCE_POOL:
            self.pool = after
        else:
            self.scalings[before["metadata"]["name"]] = after
        return after

    async def end(self, handle: Json, **_: object) -> Ended:
        if self.disturbed:
            self.disturbed -= 1
            raise Conflict("the object has been modified")
        for there in (self.handles, self.unseen):
            there.pop(handle["metadata"]["name"], None)
        return Ended()

    async def let_go(self, kind: object, pool: Json) -> None:
        self.let_go_with = [*self.handles, *self.unseen]

    async def record(self, action: RecordEvents) -> None:
        self.events += [(notice.reason, notice.message) for notice in action.notices]

    async def look(self, known: PoolMemory | None = None, activity: str = "1", **user_claim: Any) -> PoolWorld:
        """One pass, within an activity of that id."""

        async def opened(*_: object) -> None:
            pass

        part = cast(Any, self)
        self.effects = effects_of(*WriteActivities(part).all()) | {RecordEvents.activity: self.record}
        tools = Tools(part, part, part, part, Settings())
        environment = ActivityEnvironment()
        environment.info = replace(environment.info, activity_id=activity)
        look = PassPool(key=KEY, memory=known or PoolMemory(), **user_claim)
        world: PoolWorld = await environment.run(PoolActivities(tools, part, opened).pass_pool, look)
        return world


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """Its time is the passes' time."""
    cluster = Cluster()
    for module in ("activities.inline_driver", "activities.claims.pools"):
        monkeypatch.setattr(f"{module}.now", lambda: cluster.now)
    return cluster


async def looks(cluster: Cluster, lasting: timedelta) -> list[PoolWorld]:
    """All observations in that time: each deletion wakes the pool again, so there is one a second, or a deadline."""
    until, worlds = cluster.now + lasting, [PoolWorld(key=KEY)]
    while cluster.now < until:
        worlds.append(await cluster.look(worlds[-1].known, str(len(worlds))))
        cluster.now += timedelta(seconds=1)
    return worlds[1:]


async def test_handles_of_a_provider_that_only_fails_are_not_replaced_without_rest(cluster: Cluster) -> None:
    worlds = await looks(cluster, timedelta(seconds=31))
    began = cluster.made[0]
    # The first two and their replacements, which might have had bad luck; then two at each of Poolboy's polls.
    assert [(moment - began).total_seconds() for moment in cluster.made] == [0, 0, 0, 0, 10, 10, 20, 20, 30, 30]
    assert worlds[0].decision.deadline == began + MANAGE_POOLS_INTERVAL


async def test_the_next_pass_of_a_pool_sees_the_handles_that_this_one_made(cluster: Cluster) -> None:
    cluster.healthy = True
    assert (await cluster.look()).known.wrote == {"ResourceHandle": "2"}


async def test_a_pool_that_can_make_no_handle_looks_again_by_itself(cluster: Cluster) -> None:
    cluster.fault = Fault(reason="TemplateLimit", message="more than 1.5 s")
    (world,) = await looks(cluster, timedelta(seconds=1))
    assert world.decision.phase == "Stalled"
    assert world.decision.deadline == datetime(2026, 1, 1, tzinfo=UTC) + Settings().claims_interval


async def test_a_pools_fault_is_reported_once_by_an_event(cluster: Cluster) -> None:
    cluster.fault = Fault(reason="ProviderMissing", message="ResourceProvider lab: not found")
    for activity in ("1", "2"):
        await cluster.look(activity=activity)
    assert cluster.events == [("ProviderMissing", "ResourceProvider lab: not found")]
    cluster.fault = None
    await cluster.look(activity="3")
    assert (len(cluster.events), "conditions" in cluster.pool["status"]) == (1, False)


@pytest.mark.parametrize("refusal", [Denied("exceeded quota: handles"), Invalid("denied by a policy")])
async def test_a_pool_shows_that_the_api_server_refuses_its_handles(cluster: Cluster, refusal: ApiError) -> None:
    cluster.refusal = refusal
    world = await cluster.look()
    (stalled,) = cluster.pool["status"]["conditions"]
    reported = f"no ResourceHandle can be created: {refusal.message}"
    assert (stalled["reason"], reported in stalled["message"]) == ("HandleRefused", True)
    assert world.decision.phase == "Stalled"
    cluster.refusal, cluster.healthy = None, True
    await cluster.look(world.known, "2")
    assert (len(cluster.handles), "conditions" in cluster.pool["status"]) == (2, False)


async def test_a_pass_that_is_made_again_finds_the_handles_of_the_one_before(cluster: Cluster) -> None:
    cluster.healthy = True
    await cluster.look()
    made = {**cluster.handles}
    cluster.handles, cluster.unseen = {}, made
    world = await cluster.look()
    assert (cluster.refused, [*cluster.handles]) == (2, [])
    assert world.decision.phase == "Filling"
    assert cluster.pool["status"]["resourceHandleCount"] == {"available": 2, "ready": 0}


SCALING: Json = {
    "apiVersion": NAMES.api_version,
    "kind": "ResourcePoolScaling",
    "metadata": {"namespace": "poolboy", "name": "more", "uid": "2", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {"count": 1, "resourcePool": {"name": "spare"}},
}


@pytest.fixture
def scaled(cluster: Cluster) -> Cluster:
    """The pool keeps no free handle of its own; a scaling wants one."""
    cluster.healthy = True
    cluster.pool = {**POOL, "spec": {"minAvailable": 0}}
    cluster.scalings = {"more": SCALING}
    return cluster


async def test_a_scaling_counts_a_handle_that_was_bound_before_its_status(scaled: Cluster) -> None:
    scaled.status_refusal = Unavailable("the API server is away")
    await scaled.look()
    (handle,) = scaled.handles.values()
    handle["spec"]["resourceClaim"] = {"namespace": "user", "name": "mine"}

    scaled.status_refusal = None
    await scaled.look()

    assert len(scaled.handles) == 1
    assert (scaled.scalings["more"]["status"]["count"], scaled.scalings["more"]["status"]["state"]) == (1, "done")


async def test_a_scaling_counts_though_its_pool_may_not_own_it(scaled: Cluster) -> None:
    scaled.owner_refused = True
    await scaled.look()
    assert scaled.scalings["more"]["status"]["count"] == 1


@pytest.mark.parametrize(
    ("times", "holder", "there", "message"),
    [
        (2, None, False, []),
        (2, {"name": "mine"}, True, []),
        (SECOND_LOOKS + 1, None, True, ["the object has been modified"]),
    ],
    ids=["written meanwhile", "bound meanwhile", "written all the time"],
)
async def test_a_handle_that_is_written_while_it_is_deleted_goes_all_the_same(
    cluster: Cluster, times: int, holder: Json | None, there: bool, message: list[str]
) -> None:
    cluster.pool = leaving()
    cluster.handles["guid-a"] = free("guid-a")
    cluster.disturbed = times
    before = cluster.end

    async def end(handle: Json, **more: object) -> Ended:
        if holder:
            cluster.handles["guid-a"] = free("guid-a", resourceClaim=holder)
        return await before(handle, **more)

    cluster.end = end  # type: ignore[method-assign]
    world = await cluster.look()
    assert [refusal.message for refusal in world.refusals.values()] == message
    assert (world.exists, "guid-a" in cluster.handles) == (bool(message), there)


async def test_a_paused_handle_stays_and_its_pool_with_it(cluster: Cluster) -> None:
    cluster.pool = leaving()
    paused = free("guid-a")
    cluster.handles = {"guid-a": {**paused, "metadata": {"name": "guid-a", "annotations": {PAUSED: "true"}}}}
    world = await cluster.look()
    assert world.exists
    assert world.decision.why.endswith(f"guid-a is paused by its annotation {PAUSED}")
    assert [refusal.retry_at - cluster.now for refusal in world.refusals.values()] == [SOON]
    assert (list(cluster.handles), cluster.let_go_with) == (["guid-a"], None)


async def test_free_handles_that_the_mirror_does_not_know_go_with_the_pool(cluster: Cluster) -> None:
    cluster.pool = leaving()
    cluster.handles = {"guid-a": free("guid-a")}
    held = free("guid-c", resourceClaim={"name": "mine"})
    others = free("guid-d", resourcePool={**reference_to(NAMES, RESOURCE_POOL, cast(Any, POOL)), "name": "other"})
    cluster.unseen = {"guid-b": free("guid-b"), "guid-c": held, "guid-d": others}
    world = await cluster.look()
    assert (world.exists, cluster.let_go_with) == (False, ["guid-c", "guid-d"])


async def test_a_dry_run_says_what_would_be_done_and_does_nothing(cluster: Cluster) -> None:
    cluster.pool = {**POOL, "metadata": {**POOL["metadata"], "finalizers": [NAMES.finalizer]}}
    world = await cluster.look(dry_run=True)
    assert world.decision.planned == (
        "create a handle with its resources (2 times)",
        "write status of ResourcePool spare",
    )
    assert (cluster.made, cluster.pool.get("status")) == ([], None)


def leaving() -> Json:
    """The pool while it is being deleted."""
    metadata = {**POOL["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [NAMES.finalizer]}
    return {**POOL, "metadata": metadata}


def free(name: str, **spec: Any) -> Json:
    """A handle of the pool."""
    metadata = {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"metadata": metadata, "spec": {"resourcePool": reference_to(NAMES, RESOURCE_POOL, cast(Any, POOL)), **spec}}
