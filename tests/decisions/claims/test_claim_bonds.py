"""A claim has one handle, whatever becomes of the answers to the writes that bind it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from claim_domain import NAMES
from claim_scenes import Parts
from temporalio.testing import ActivityEnvironment
from unwatched_cache import unwatched_queue

from activities.claims.binder_queue import BinderQueue
from activities.claims.binding import Binding
from activities.claims.duplicate_bindings import is_surplus, wake_duplicates
from activities.claims.handle_reconciliation import Reconciliation
from activities.claims.object_writes import Writer
from activities.claims.tools import Tools
from activities.inline_driver import Inline, effects_of
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE
from domain.claims.claim_binding import MOST_TRIES, decide
from domain.claims.claim_preparation import Claim
from domain.claims.evaluator_interface import ClaimPlan, Fault, HandleBody, HandlePlan, WantedEntry
from domain.claims.handle_matching import Wanted
from domain.claims.json_objects import text_at
from domain.claims.references import reference_to
from domain.identity import Key, Kind
from domain.runner import State
from engine.errors import Absent, ApiError, Conflict, Unavailable, as_error
from engine.kube import KubeApi
from engine.kube.api import FIELD_MANAGER
from engine.kube.informer_cache import Mirror
from engine.settings import Settings

Json = dict[str, Any]
HOLDER = reference_to(NAMES, RESOURCE_CLAIM, cast(Any, {"metadata": {"namespace": "users", "name": "mine"}}))
Knower = Callable[["Cluster"], BinderQueue]
NOW = datetime(2026, 1, 1, tzinfo=UTC)
CLAIM: Json = {"metadata": {"namespace": "users", "name": "mine", "uid": "1", "resourceVersion": "1"}, "spec": {}}
KEY = Key(kind="ResourceClaim", namespace="users", name="mine", uid="1")
PLAN = ClaimPlan(wanted=(WantedEntry(provider="lab", name="lab", template={}, match_ignore=()),))
WANTED = Wanted(resources=(WantedEntry(provider="lab", name="lab"),))
BOUND_BY_US = {"f:spec": {"f:resourceClaim": {"f:name": {}, "f:namespace": {}}}}
OURS = [{"manager": FIELD_MANAGER, "fieldsV1": BOUND_BY_US}]


def a_handle(name: str, holder: Json | None = None, **metadata: Any) -> Json:
    spec: Json = {"resources": [{"name": "lab", "provider": {"name": "lab"}}]}
    meta = {"namespace": "poolboy", "name": name, "uid": name, "resourceVersion": "1", **metadata}
    created = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"metadata": {**created, **meta}, "spec": spec | ({"resourceClaim": holder} if holder else {})}


class Cluster:
    """The API server, and what becomes of each write to it: nothing odd, unless a test says so."""

    def __init__(self, *handles: Json) -> None:
        self.there = {each["metadata"]["name"]: each for each in handles}
        self.fates: list[str] = []
        self.written: list[str] = []
        self.mirrored: list[Mirror] = []
        self.deaf = False

    async def get(self, kind: Kind, namespace: str, name: str) -> Json:
        if self.deaf:
            raise Unavailable("no answer")
        if name not in self.there:
            raise Absent(name)
        return self.there[name]

    async def replace(self, kind: Kind, namespace: str, name: str, obj: Json, subresource: str = "") -> Json:
        fate = self.fates.pop(0) if self.fates else ""
        version = self.there[name]["metadata"]["resourceVersion"]
        if fate == "refused" or obj["metadata"]["resourceVersion"] != version:
            raise Conflict(name)
        made = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(int(version) + 1)}}
        self.there[name] = made
        self.written.append(name)
        if fate == "seen before it is unanswered":
            for mirror in self.mirrored:
                mirror.learn(made)
        if fate:
            self.deaf = fate == "seen before it is unanswered"
            raise Unavailable("no answer")
        return made

    async def create(self, kind: Kind, obj: Json, namespace: str) -> Json:
        fate = self.fates.pop(0) if self.fates else ""
        name = obj["metadata"]["name"]
        if name in self.there or fate == "refused":
            raise Conflict(name)
        if fate != "not heard":
            made = {**obj, "metadata": {**obj["metadata"], "resourceVersion": "1", "uid": name}}
            self.there[name] = made
        if fate:
            raise Unavailable("no answer")
        return made


class Answers(Parts):
    """Binds without asking a template."""

    async def binding(self, question: Any) -> HandleBody:
        holder = reference_to(NAMES, RESOURCE_CLAIM, question.claim)
        return HandleBody(spec={**question.handle["spec"], "resourceClaim": holder})

    async def handle(self, question: Any) -> HandlePlan:
        return HandlePlan()


class Refuses(Answers):
    """Binds all but these."""

    def __init__(self, *names: str) -> None:
        self.names = names

    async def binding(self, question: Any) -> HandleBody:
        if question.handle["metadata"]["name"] in self.names:
            return HandleBody(fault=Fault(reason="DurationUnreadable", message="lifespan.default is 'soon'"))
        return await super().binding(question)


@pytest.fixture
def woken() -> list[Key]:
    """The lifecycles that the process has woken."""
    return []


@pytest.fixture
def know(woken: list[Key]) -> Knower:
    """What a worker knows of a cluster, once it has read it."""

    def queue(cluster: Cluster) -> BinderQueue:
        found = unwatched_queue(woken, cluster)
        wake_duplicates(found.cache)
        cluster.mirrored.append(found.cache.handles)
        for handle in cluster.there.values():
            found.cache.learn(RESOURCE_HANDLE, handle)
        return found

    return queue


async def bound(queue: BinderQueue, cluster: Cluster, answers: Answers | None = None, **fields: Any) -> Claim:
    """The claim after the binder has looked for a handle; nothing else is done."""
    queue.cache.learn(RESOURCE_CLAIM, cast(Any, CLAIM))
    part, writer = cast(Any, answers or Answers()), Writer(cast(KubeApi, cluster), queue.cache)
    reconciliation = Reconciliation(queue.cache, writer, part, part, part, part)
    binding = Binding(Tools(queue.cache, writer, reconciliation, part, Settings()), queue, part)
    requested = {"now": NOW, "names": NAMES, "handle": {}, "claim": CLAIM, "claim_observed": CLAIM}
    world = Claim.of(KEY, **requested, binds=True, wrote=("ResourceClaim metadata and defaults",), **fields)
    passed = await ActivityEnvironment().run(
        Inline(decide, effects_of(*binding.all())).go_on, State(world, dirty=False)
    )
    for refusal in passed.world.refusals.values():
        raise as_error(refusal)
    return cast(Claim, passed.world)


def free(queue: BinderQueue, name: str) -> bool:
    return queue.free.get(name) is not None


async def taken(
    queue: BinderQueue, cluster: Cluster, answers: Answers | None = None, creation: dict[str, Any] | None = None
) -> str:
    """The free handle that the claim gets; empty if it gets none."""
    plan = PLAN.model_copy(update={"creation": creation})
    world = await bound(queue, cluster, answers, claim_plan=plan)
    assert creation is None or world.made
    return "" if world.made else text_at(cast(Any, world.handle), "metadata", "name")


def held(cluster: Cluster) -> list[str]:
    return [name for name, handle in cluster.there.items() if handle["spec"].get("resourceClaim")]


@pytest.mark.parametrize("fates", [[], ["unanswered"], ["refused"], ["refused", "refused"], ["refused", "unanswered"]])
async def test_a_claim_gets_the_best_handle_and_no_other(know: Knower, fates: list[str]) -> None:
    cluster = Cluster(a_handle("guid-best"), a_handle("guid-other", creationTimestamp="2026-01-01T00:00:01Z"))
    cluster.fates = fates
    queue = know(cluster)
    assert await taken(queue, cluster) == "guid-best"
    assert held(cluster) == ["guid-best"]
    assert (free(queue, "guid-best"), free(queue, "guid-other")) == (False, True)


async def test_a_handle_that_is_always_refused_is_left_to_others(know: Knower) -> None:
    cluster = Cluster(a_handle("guid-best"), a_handle("guid-other", creationTimestamp="2026-01-01T00:00:01Z"))
    cluster.fates = ["refused"] * MOST_TRIES
    queue = know(cluster)
    assert await taken(queue, cluster) == "guid-other"
    assert (free(queue, "guid-best"), free(queue, "guid-other")) == (True, False)


async def test_a_handle_that_cannot_be_bound_keeps_no_claim_from_another(know: Knower) -> None:
    cluster = Cluster(a_handle("guid-best"), a_handle("guid-other", creationTimestamp="2026-01-01T00:00:01Z"))
    assert await taken(know(cluster), cluster, Refuses("guid-best")) == "guid-other"
    cluster = Cluster(a_handle("guid-best"))
    assert await taken(know(cluster), cluster, Refuses("guid-best"), creation={}) == ""
    cluster = Cluster(a_handle("guid-best"))
    world = await bound(know(cluster), cluster, Refuses("guid-best"), claim_plan=PLAN)
    assert "'soon'" in str(world.validation.fault)


async def test_a_binding_that_was_seen_before_its_answer_was_missed_leaves_no_free_handle(know: Knower) -> None:
    cluster = Cluster(a_handle("guid-best"), a_handle("guid-other", creationTimestamp="2026-01-01T00:00:01Z"))
    cluster.fates = ["seen before it is unanswered"]
    queue = know(cluster)
    with pytest.raises(ApiError):
        await taken(queue, cluster)
    assert (free(queue, "guid-best"), free(queue, "guid-other")) == (False, True)


async def test_a_handle_that_is_known_to_be_held_is_not_bound_again(know: Knower) -> None:
    cluster = Cluster(a_handle("guid-best"))
    queue = know(cluster)
    candidate = next(iter(queue.free.candidates(WANTED, NOW)))
    another = {**CLAIM, "metadata": {**CLAIM["metadata"], "name": "another"}}
    bound = a_handle("guid-best", reference_to(NAMES, RESOURCE_CLAIM, another), resourceVersion="2")
    cluster.there["guid-best"] = bound
    queue.cache.learn(RESOURCE_HANDLE, bound)
    queue.free.add(candidate)
    assert await taken(queue, cluster) == ""
    assert cluster.written == []


@pytest.mark.parametrize(
    ("fates", "made"),
    [([], 1), (["unanswered"], 1), (["refused"], 1), (["refused", "unanswered"], 1), (["not heard"], 0)],
    ids=str,
)
async def test_a_handle_that_is_made_without_an_answer_is_found(know: Knower, fates: list[str], made: int) -> None:
    cluster = Cluster()
    cluster.fates = fates
    queue = know(cluster)
    fields = {"claim_plan": ClaimPlan(creation={"resourceClaim": HOLDER}), "none_free": True}
    if made:
        handle = (await bound(queue, cluster, **fields)).handle
        assert [text_at(handle, "metadata", "name")] == held(cluster)
    else:
        with pytest.raises(Unavailable):
            await bound(queue, cluster, **fields)
        assert held(cluster) == []


# --- a second handle ---

SAYS_THE_FIRST = {**CLAIM, "status": {"resourceHandle": {"name": "guid-first"}}}
ANOTHERS = {**HOLDER, "name": "another"}
SECOND = a_handle("guid-second", HOLDER, managedFields=OURS)
BY_A_PERSON = a_handle("guid-second", HOLDER, managedFields=[{**OURS[0], "manager": "kubectl"}])
LEFT_OF_OURS = {"f:spec": {"f:resourceClaim": {"f:apiVersion": {}, "f:kind": {}, "f:namespace": {}}}}
MOVED = {"manager": "kubectl", "fieldsV1": {"f:spec": {"f:resourceClaim": {"f:name": {}}}}}
MOVED_BY_A_PERSON = a_handle("guid-second", HOLDER, managedFields=[{**OURS[0], "fieldsV1": LEFT_OF_OURS}, MOVED])


@pytest.mark.parametrize(
    ("first", "second", "claim", "surplus"),
    [
        (a_handle("guid-first", HOLDER), SECOND, SAYS_THE_FIRST, True),
        (a_handle("guid-first", HOLDER), BY_A_PERSON, SAYS_THE_FIRST, False),
        (a_handle("guid-first", HOLDER), MOVED_BY_A_PERSON, SAYS_THE_FIRST, False),
        (a_handle("guid-first", HOLDER), SECOND, CLAIM, False),
        (a_handle("guid-first", ANOTHERS), SECOND, SAYS_THE_FIRST, False),
        (a_handle("guid-first"), SECOND, SAYS_THE_FIRST, False),
        (a_handle("guid-first", HOLDER, deletionTimestamp="2026-01-01T00:00:00Z"), SECOND, SAYS_THE_FIRST, False),
        (None, SECOND, SAYS_THE_FIRST, False),
    ],
    ids=[
        "bound late",
        "bound by a person",
        "moved from another claim by a person",
        "no handle shown yet",
        "the one shown is another's",
        "the one shown is free",
        "the one shown ends",
        "the one shown is not there",
    ],
)
async def test_only_what_perdure_bound_beside_the_claims_own_handle_is_surplus(
    know: Knower, first: Json | None, second: Json, claim: Json, surplus: bool
) -> None:
    cluster = Cluster(*([first] if first else []), second)
    queue = know(cluster)
    assert await is_surplus(queue.cache, cast(Any, second), cast(Any, claim)) is surplus
    cluster = Cluster(a_handle("guid-first", HOLDER, managedFields=OURS), second)
    queue = know(cluster)
    own = cluster.there["guid-first"]
    assert not await is_surplus(queue.cache, own, cast(Any, SAYS_THE_FIRST))


async def test_two_handles_of_one_claim_wake_when_the_second_appears_and_after_the_choice(
    know: Knower, woken: list[Key]
) -> None:
    cluster = Cluster(a_handle("guid-first", HOLDER))
    queue = know(cluster)
    queue.cache.learn(RESOURCE_CLAIM, CLAIM)
    await asyncio.sleep(0)
    assert woken == []
    queue.cache.learn(RESOURCE_HANDLE, a_handle("guid-second", HOLDER))
    await asyncio.sleep(0)
    assert sorted(key.name for key in woken) == ["guid-first", "guid-second"]
    woken.clear()
    chosen = {**SAYS_THE_FIRST, "metadata": {**CLAIM["metadata"], "resourceVersion": "2"}}
    queue.cache.learn(RESOURCE_CLAIM, chosen)
    await asyncio.sleep(0)
    assert sorted(key.name for key in woken) == ["guid-first", "guid-second"]
