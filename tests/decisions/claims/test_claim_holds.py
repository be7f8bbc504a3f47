"""A paused handle, with its claim, its pool and the binder: nothing is changed on its behalf until it goes on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from claim_domain import NAMES
from claim_scenes import BOUND, Parts, claim, handle
from temporalio.testing import ActivityEnvironment

from activities.claims.binding import Binding
from activities.claims.claims import ClaimActivities
from activities.claims.handle_deletion import Ended
from activities.claims.handle_reconciliation import Reconciliation
from activities.claims.handles import HandleActivities
from activities.claims.tools import Tools
from domain.claims.evaluator_interface import ClaimPlan, HandlePlan
from domain.claims.passes import ObjectWorld, PassClaim
from domain.control_annotations import PAUSED
from domain.identity import Key
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


class Cluster(Parts):
    """A claim and its handle, and all that a pass over them works with; it notes what is done."""

    edits = 0

    def __init__(self, user_claim: Json, held: Json) -> None:
        self.claim, self.handle = user_claim, held
        self.done: list[str] = []

    def get(self, kind: Any, namespace: str, name: str) -> Json:
        return self.claim if kind.name == "ResourceClaim" else self.handle

    async def fresh(self, kind: Any, namespace: str, name: str) -> Json:
        return self.get(kind, namespace, name)

    find = fresh

    def handles_of_claim(self, namespace: str, name: str) -> list[Json]:
        return [self.handle]

    async def own(self, kind: Any, key: Key, *, fresh: bool) -> Json:
        return self.get(kind, key.namespace, key.name)

    def check_later(self, key: Key, edits: int) -> None:
        pass

    async def claim_plan(self, *_: object) -> ClaimPlan:
        return ClaimPlan(status=self.claim.get("status", {}))

    async def handle_plan(self, *_: object) -> HandlePlan:
        spec = {**self.handle["spec"], "vars": {"size": 2}}
        return HandlePlan(spec=spec, end=self.end, handle_status={})

    @property
    def end(self) -> datetime | None:
        message = self.handle["spec"].get("lifespan", {}).get("end")
        return datetime.fromisoformat(message) if message else None

    async def end_all(self, *_: object, **__: object) -> Ended:
        raise AssertionError("the handle and its resources were ended")

    async def delete(self, kind: Any, obj: Json, **_: object) -> Json:
        self.done.append(f"delete {kind.name}")
        return obj

    async def let_go(self, kind: Any, obj: Json) -> None:
        self.done.append(f"let go of {kind.name}")

    async def put(self, kind: Any, before: Json, after: Json) -> Json:
        self.done.append(kind.name)
        return {**after, "status": before.get("status", {})}

    async def put_status(self, kind: Any, before: Json, status: Json) -> Json:
        self.done.append(f"status of {kind.name}")
        return {**before, "status": status}

    def tools(self) -> Tools:
        part = cast(Any, self)
        evaluation = cast(Any, SimpleNamespace(claim=self.claim_plan, handle=self.handle_plan))
        reconciliation = Reconciliation(part, part, part, evaluation, part, part)
        releasing = cast(Any, SimpleNamespace(end=self.end_all))
        return Tools(part, part, reconciliation, releasing, Settings())


async def look(cluster: Cluster, *, cached: bool = True) -> ObjectWorld:
    tools = cluster.tools()
    HandleActivities(tools, cast(Any, None))
    activities = ClaimActivities(tools)

    async def pass_claim() -> ObjectWorld:
        return await activities.look(PassClaim(key=KEY), cached=cached)

    world: ObjectWorld = await ActivityEnvironment().run(pass_claim)
    return world


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("claims.claims", "claims.binding", "inline_driver"):
        monkeypatch.setattr(f"activities.{module}.now", lambda: NOW)


@pytest.mark.parametrize(
    ("spec", "metadata"),
    [({}, {}), ({"lifespan": {"end": timestamp(NOW)}}, {}), ({}, {"deletionTimestamp": timestamp(NOW)})],
    ids=["as ever", "it has expired", "it is being deleted"],
)
@pytest.mark.parametrize("cached", [True, False])
async def test_nothing_is_done_with_a_paused_handle_and_its_resources(spec: Json, metadata: Json, cached: bool) -> None:
    cluster = Cluster(claiming(), paused(handle(**BOUND, **spec), **metadata))
    world = await look(cluster, cached=cached)
    assert cluster.done == []
    assert world.hold == f"its handle is paused by its annotation {PAUSED}"
    assert world.decision.planned
    assert world.decision.deadline is None or world.decision.deadline > NOW + timedelta(seconds=1)


@pytest.mark.parametrize("cached", [True, False])
async def test_a_handle_that_a_label_leaves_alone_is_not_ended_though_it_is_being_deleted(cached: bool) -> None:
    held = handle(**BOUND)
    held["metadata"] |= {"deletionTimestamp": timestamp(NOW), "labels": {NAMES.ignore_label: ""}}
    cluster = Cluster(claiming(), held)
    assert (await look(cluster, cached=cached)).decision.phase == "Ignored"
    assert cluster.done == []


async def test_a_deleted_claim_leaves_a_paused_handle_marked_with_its_resources() -> None:
    cluster = Cluster(claiming(deletionTimestamp=timestamp(NOW)), paused(handle(**BOUND)))
    world = await look(cluster)
    assert cluster.done == ["delete ResourceHandle", "let go of ResourceClaim"]
    assert not world.exists


async def test_a_claim_whose_handle_was_found_paused_shows_it_and_no_more_is_done() -> None:
    cluster = Cluster(claim(), paused(handle(**BOUND)))
    tools = cluster.tools()
    binding = Binding(tools, cast(Any, None), cast(Any, None))
    passed, _ = await ActivityEnvironment().run(binding.bind, KEY)
    passed.confirm()
    assert cluster.done == ["ResourceClaim", "status of ResourceClaim"]
