"""A paused handle, with its claim, its pool and the binder: nothing is changed on its behalf until it goes on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from claim_domain import NAMES
from claim_scenes import BOUND, claim, handle

from activities.claims.binding import Serving
from activities.claims.claim_validation import Judged
from activities.claims.claims import ClaimActivities
from activities.claims.releasing import Ended
from activities.claims.tools import Tools
from domain.claims.passes import ObjectWorld, PassClaim
from domain.claims.plans import ClaimPlan, HandlePlan
from domain.identity import Key
from domain.levers import PAUSED
from domain.resource import timestamp
from engine.settings import Settings

Json = dict[str, Any]
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
KEY = Key(kind="ResourceClaim", namespace="user-ada", name="mine", uid="claim-uid")


def claiming(**metadata: str) -> Json:
    made = claim({"resourceHandle": {"name": "guid-b7k2q"}})
    return {**made, "metadata": {**made["metadata"], "finalizers": [NAMES.domain], **metadata}}


def paused(each: Json, **metadata: str) -> Json:
    return {**each, "metadata": {**each["metadata"], "annotations": {PAUSED: "true"}, **metadata}}


class Cluster:
    """A claim and its handle, and all that a pass over them works with; it notes what is done."""

    names = NAMES
    namespace = "poolboy"

    def __init__(self, asked: Json, held: Json) -> None:
        self.claim, self.handle = asked, held
        self.done: list[str] = []

    def get(self, kind: Any, namespace: str, name: str) -> Json:
        return self.claim if kind.name == "ResourceClaim" else self.handle

    async def fresh(self, kind: Any, namespace: str, name: str) -> Json:
        return self.get(kind, namespace, name)

    def handles_of_claim(self, namespace: str, name: str) -> list[Json]:
        return [self.handle]

    async def plan(self, *args: Any, **_: object) -> Any:
        if args[0] is KEY:
            return ClaimPlan(status=self.claim["status"]), ()
        spec = {**self.handle["spec"], "vars": {"size": 2}}
        return HandlePlan(spec=spec, end=self.end)

    @property
    def end(self) -> datetime | None:
        said = self.handle["spec"].get("lifespan", {}).get("end")
        return datetime.fromisoformat(said) if said else None

    async def judge(self, key: Key, asked: Json, *_: object, **__: object) -> Judged:
        return Judged(cast(Any, asked), ClaimPlan())

    async def settle(self, *_: object) -> None:
        raise AssertionError("the resources were brought to what they have to be")

    async def end_all(self, *_: object, **__: object) -> Ended:
        raise AssertionError("the handle and its resources were ended")

    async def delete(self, kind: Any, obj: Json, **_: object) -> Json:
        self.done.append(f"delete {kind.name}")
        return obj

    async def let_go(self, kind: Any, obj: Json) -> None:
        self.done.append(f"let go of {kind.name}")

    async def put_status(self, kind: Any, before: Json, status: Json, **_: object) -> Json:
        self.done.append(f"status of {kind.name}")
        return {**before, "status": status}

    def tools(self) -> Tools:
        part = cast(Any, self)
        return Tools(part, part, part, part, cast(Any, Releasing(self)), Settings())


class Releasing:
    """Ends nothing."""

    def __init__(self, cluster: Cluster) -> None:
        self.end = cluster.end_all


async def look(cluster: Cluster, *, woken: bool = True) -> ObjectWorld:
    activities = ClaimActivities(cluster.tools(), cast(Any, None))
    return await activities._pass(PassClaim(key=KEY, woken=woken))


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("claims", "tools"):
        monkeypatch.setattr(f"activities.claims.{module}.now", lambda: NOW)


@pytest.mark.parametrize(
    ("spec", "metadata"),
    [({}, {}), ({"lifespan": {"end": timestamp(NOW)}}, {}), ({}, {"deletionTimestamp": timestamp(NOW)})],
    ids=["as ever", "it has expired", "it is being deleted"],
)
@pytest.mark.parametrize("woken", [True, False])
async def test_nothing_is_done_with_a_paused_handle_and_its_resources(spec: Json, metadata: Json, woken: bool) -> None:
    cluster = Cluster(claiming(), paused(handle(**BOUND, **spec), **metadata))
    world = await look(cluster, woken=woken)
    assert cluster.done == []
    assert world.hold == f"its handle is paused by its annotation {PAUSED}"
    assert world.decision.planned
    assert world.decision.deadline is None or world.decision.deadline > NOW + timedelta(seconds=1)


@pytest.mark.parametrize("woken", [True, False])
async def test_a_handle_that_a_label_leaves_alone_is_not_ended_though_it_is_being_deleted(woken: bool) -> None:
    held = handle(**BOUND)
    held["metadata"] |= {"deletionTimestamp": timestamp(NOW), "labels": {NAMES.ignore_label: ""}}
    cluster = Cluster(claiming(), held)
    assert (await look(cluster, woken=woken)).decision.phase == "Ignored"
    assert cluster.done == []


async def test_a_claim_that_is_deleted_leaves_a_paused_handle_marked_and_with_its_resources() -> None:
    cluster = Cluster(claiming(deletionTimestamp=timestamp(NOW)), paused(handle(**BOUND)))
    world = await look(cluster)
    assert cluster.done == ["delete ResourceHandle", "let go of ResourceClaim"]
    assert not world.exists


async def test_a_claim_whose_handle_was_found_paused_shows_it_and_no_more_is_done() -> None:
    cluster = Cluster(claim(), paused(handle(**BOUND)))
    part, tools = cast(Any, cluster), cluster.tools()
    serving = Serving(part, part, part, part, part, tools.hold)
    _, settled = await serving.serve(KEY, cast(Any, cluster.claim), NOW)
    assert settled is not None
    assert cluster.done == ["status of ResourceClaim"]
