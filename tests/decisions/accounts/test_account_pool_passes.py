"""The pass over an AccountPool as an activity: what it reads, what it gives, and what it writes of pools and claims."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any, cast
from unittest.mock import AsyncMock

import pytest
from account_objects import CONFIG, DATA, NAME, NOW, POOL, claim, pool, ready_account
from memory_kube import MemoryKube
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from activities.accounts.cache import Reader
from activities.accounts.handover import HandOver
from activities.accounts.observation import ObserveActivities
from activities.accounts.pool import AFTER_CONFLICT, AFTER_REFUSAL, PoolActivities
from domain.accounts import ACCOUNT, ACCOUNT_CLAIM, ACCOUNT_POOL
from domain.accounts.actions.handover import BindWithoutPool
from domain.accounts.claim_lifecycle import decide as decide_claim
from domain.accounts.constants import CLAIM_UID_ANNOTATION, FINALIZER, OPERATOR_NAMESPACE
from domain.accounts.constants import CONFIG_MAP as CONFIG_MAP_NAME
from domain.accounts.observed import ClaimWorld
from domain.accounts.passes import ObserveClaim, PassPool, PoolMemory, PoolWorld
from domain.accounts.pool import PoolView, Room, decide
from domain.accounts.resources import AccountPool
from domain.decision import Outcome
from domain.identity import Kind
from domain.resource import CustomResource
from engine.errors import Absent, ApiError, Denied, Invalid, Unavailable
from engine.kube import CONFIG_MAP, KubeApi
from engine.kube.api import Listing
from engine.kube.informer_cache import Store
from engine.kube.reflector import Followed
from engine.settings import Settings
from starters.watch.accounts import WATCHED


class Kube:
    """An API server with these objects and the operator's ConfigMap, to read from; how often each kind was listed."""

    def __init__(self, *objects: tuple[Kind, CustomResource]) -> None:
        self._objects = [(kind.name, found.model_dump(mode="json", by_alias=True)) for kind, found in objects]
        self.listed: Counter[str] = Counter()

    async def get(self, kind: Kind, namespace: str, name: str) -> dict[str, Any]:
        for each, found in self._objects:
            if (each, found["metadata"]["namespace"], found["metadata"]["name"]) == (kind.name, namespace, name):
                return found
        if kind.name == "ConfigMap":
            return {"data": DATA}
        raise Absent(name)

    async def list(self, kind: Kind, namespace: str = "") -> Listing:
        self.listed[kind.name] += 1
        found = [each for name, each in self._objects if name == kind.name]
        return Listing([each for each in found if namespace in ("", each["metadata"]["namespace"])], "1")


class Temporal:
    """The organization's workflow, which has measured nothing."""

    def get_workflow_handle(self, id_: str) -> Temporal:
        return self

    async def query(self, name: str, **more: Any) -> None:
        return None


class LaterHandOver:
    """Hand-overs are left to the claims."""

    def prepare(self, base: str, legal_entities: Iterable[str]) -> None:
        """No OU is asked for."""

    async def carry_on(self, world: ClaimWorld) -> None:
        """The claim's own lifecycle continues."""


def passes_over(kube: Kube | MemoryKube) -> PoolActivities:
    reader = Reader(cast("KubeApi", kube), Settings(mode="observe") if isinstance(kube, Kube) else Settings())
    return PoolActivities(reader, cast("HandOver", LaterHandOver()), cast("Client", Temporal()))


async def cluster(*objects: CustomResource, kube: MemoryKube | None = None) -> MemoryKube:
    """These objects, a pool that wants no account, and the operator's ConfigMap."""
    kube = kube or MemoryKube()
    await kube.put(pool(size=0), *objects)
    await kube.create(CONFIG_MAP, {"metadata": {"name": CONFIG_MAP_NAME}, "data": DATA}, OPERATOR_NAMESPACE)
    return kube


async def passed(kube: Kube | MemoryKube, of: AccountPool, known: PoolMemory, *, attempt: int = 1) -> PoolWorld:
    """A pass; over `Kube` it observes only."""
    environment = ActivityEnvironment()
    environment.info = dataclasses.replace(environment.info, attempt=attempt)
    return await environment.run(passes_over(kube).pass_pool, PassPool(key=of.key, memory=known))


# --- a binding that was left half made ---

ENTITY = claim().spec.legal_entity.model_dump()
HOLDER = {"claimLink": "claim", "claimLinkNamespace": "tenant", "legalEntity": ENTITY}
LINKED = ready_account(spec=HOLDER, status={"claimed": True})
FULL = pool(size=0)
GIFT = f"bind {LINKED.metadata.name} to claim tenant/claim"


@pytest.mark.parametrize(
    ("known", "attempt"),
    [
        pytest.param(PoolMemory(), 1, id="first pass of a run"),
        pytest.param(PoolMemory(bonds_seen=True), 2, id="the attempt before died"),
    ],
)
async def test_a_claim_whose_account_says_claimed_already_gets_its_link(known: PoolMemory, attempt: int) -> None:
    kube = Kube((ACCOUNT, LINKED), (ACCOUNT_CLAIM, claim(status={"state": "Pending"})), (ACCOUNT_POOL, FULL))
    found = await passed(kube, FULL, known, attempt=attempt)
    assert GIFT in found.decision.planned
    assert not found.known.bonds_seen, "nothing was written: the next pass looks again"


async def test_claims_are_not_read_again_at_each_pass_over_accounts_that_are_all_claimed() -> None:
    kube = Kube((ACCOUNT, LINKED), (ACCOUNT_CLAIM, claim(spec={"accountLink": "a"})), (ACCOUNT_POOL, FULL))
    await passed(kube, FULL, PoolMemory())
    assert kube.listed[ACCOUNT_CLAIM.name] == 1
    await passed(kube, FULL, PoolMemory(bonds_seen=True))
    assert kube.listed[ACCOUNT_CLAIM.name] == 1


async def test_accounts_that_have_not_changed_are_read_once_in_a_pass() -> None:
    waiting = claim(status={"state": "Pending"})
    kube = Kube((ACCOUNT, ready_account()), (ACCOUNT_CLAIM, waiting), (ACCOUNT_POOL, FULL))
    await passed(kube, FULL, PoolMemory(bonds_seen=True))
    assert kube.listed == {ACCOUNT.name: 1, ACCOUNT_CLAIM.name: 1}


# --- accounts that become free meanwhile ---


class Releasing(MemoryKube):
    """An API server on which an account becomes free just before claims are read."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    async def list(self, kind: Kind, namespace: str = "", **more: Any) -> Listing:
        if kind is ACCOUNT_CLAIM:
            free = {"spec": {"claimLink": "", "claimLinkNamespace": ""}}
            await self.patch(ACCOUNT, OPERATOR_NAMESPACE, self._name, free)
            await self.patch(
                ACCOUNT, OPERATOR_NAMESPACE, self._name, {"status": {"claimed": False}}, subresource="status"
            )
        return await super().list(kind, namespace, **more)


async def test_a_claim_gets_its_legal_entitys_account_that_became_free_just_before_it() -> None:
    fresh = ready_account(meta={"name": "a-fresh", "uid": "u-fresh"})
    left = ready_account(
        meta={"name": "b-left", "uid": "u-left"},
        spec={"claimLink": "earlier", "claimLinkNamespace": "tenant", "legalEntity": ENTITY},
        status={"claimed": True, "reused": True},
    )
    kube = Releasing("b-left")
    await kube.put(FULL, fresh, left, claim(status={"state": "Pending"}))
    await kube.create(CONFIG_MAP, {"metadata": {"name": CONFIG_MAP_NAME}, "data": DATA}, OPERATOR_NAMESPACE)
    reader = Reader(cast("KubeApi", kube), Settings(), cast("Store", kube))
    for kind in (ACCOUNT, ACCOUNT_POOL, CONFIG_MAP):
        for obj in (await kube.list(kind)).items:
            kube.follow(Followed(kind)).learn(obj)
    passes = PoolActivities(reader, cast("HandOver", LaterHandOver()), cast("Client", Temporal()))
    await ActivityEnvironment().run(passes.pass_pool, PassPool(key=FULL.key, memory=PoolMemory(bonds_seen=True)))
    bound = await kube.get(ACCOUNT_CLAIM, "tenant", "claim")
    assert bound["spec"]["accountLink"] == "b-left"


class Stopped(MemoryKube):
    """An API server on which a pass was stopped before it linked its account, and another attempt bound another one."""

    async def patch(self, kind: Kind, namespace: str, name: str, patch: Any, **more: Any) -> dict[str, Any]:
        if kind == ACCOUNT and name == "a-stopped" and patch["spec"]["claimLink"]:
            holder = {"metadata": {"annotations": {CLAIM_UID_ANNOTATION: "uid-claim"}}, "spec": HOLDER}
            await super().patch(ACCOUNT, OPERATOR_NAMESPACE, "b-bound", holder)
            await super().patch(ACCOUNT_CLAIM, "tenant", "claim", {"spec": {"accountLink": "b-bound"}})
        return await super().patch(kind, namespace, name, patch, **more)


async def test_a_stopped_pass_leaves_a_claim_the_account_that_another_attempt_gave() -> None:
    fresh = ready_account(meta={"name": "a-stopped", "uid": "u-stopped"})
    other = ready_account(meta={"name": "b-bound", "uid": "u-bound"}, status={"claimed": True})
    kube = await cluster(fresh, other, claim(status={"state": "Pending"}), kube=Stopped())
    await passed(kube, FULL, PoolMemory())
    assert (await kube.get(ACCOUNT_CLAIM, "tenant", "claim"))["spec"]["accountLink"] == "b-bound"
    left = await kube.get(ACCOUNT, OPERATOR_NAMESPACE, "a-stopped")
    assert (left["spec"]["claimLink"], left["spec"]["legalEntity"]["id"]) == ("", "")


class Showing(MemoryKube):
    """An API server on which a claim's own lifecycle writes its status while the pool binds the claim."""

    async def patch(self, kind: Kind, namespace: str, name: str, patch: Any, **more: Any) -> dict[str, Any]:
        if kind == ACCOUNT and patch["spec"]["claimLink"]:
            await super().patch(
                ACCOUNT_CLAIM, "tenant", "claim", {"status": {"state": "Pending"}}, subresource="status"
            )
        return await super().patch(kind, namespace, name, patch, **more)


async def test_a_claim_is_bound_in_the_same_pass_if_its_status_is_written_meanwhile() -> None:
    kube = await cluster(ready_account(), claim(), kube=Showing())
    await passed(kube, FULL, PoolMemory())
    assert (await kube.get(ACCOUNT_CLAIM, "tenant", "claim"))["spec"]["accountLink"] == NAME


# --- a pool without an AccountPool ---

ORPHANED: dict[str, Any] = {"ownerReferences": []}


@pytest.mark.parametrize("named", [{"accountPool": POOL}, {}], ids=["named", "by default"])
async def test_a_claim_gets_an_account_of_a_pool_that_has_no_account_pool(named: dict[str, str]) -> None:
    """The replaced operator looks at the Accounts only."""
    other = ready_account("osd-creds-mgmt-zzzzzz", meta=ORPHANED, spec={"accountPool": "another"})
    kube = MemoryKube()
    await kube.put(other, ready_account(meta=ORPHANED), claim(spec=named, status={"state": "Pending"}))
    await kube.create(CONFIG_MAP, {"metadata": {"name": CONFIG_MAP_NAME}, "data": DATA}, OPERATOR_NAMESPACE)
    reader = Reader(cast("KubeApi", kube), Settings())
    environment = ActivityEnvironment()
    seen = await environment.run(ObserveActivities(reader).observe_claim, ObserveClaim(key=claim().key))
    (look,) = decide_claim(seen, NOW).actions
    assert isinstance(look, BindWithoutPool)
    await environment.run(passes_over(kube).bind_without_pool, look)
    assert (await kube.get(ACCOUNT_CLAIM, "tenant", "claim"))["spec"]["accountLink"] == NAME
    assert (await kube.get(ACCOUNT, OPERATOR_NAMESPACE, NAME))["spec"]["claimLink"] == "claim"


async def test_a_claim_without_account_pool_says_why_none_of_its_accounts_fits() -> None:
    kube = MemoryKube()
    failed = ready_account(meta=ORPHANED, status={"state": "Failed"})
    await kube.put(failed, claim(status={"state": "Pending"}))
    await kube.create(CONFIG_MAP, {"metadata": {"name": CONFIG_MAP_NAME}, "data": DATA}, OPERATOR_NAMESPACE)
    with pytest.raises(Invalid, match="can't find a suitable account to claim: 1 failed"):
        await passes_over(kube).bind_without_pool(BindWithoutPool(claim=claim().key, pool=POOL))


@pytest.mark.parametrize(("linked", "given"), [({}, False), (HOLDER, True)], ids=["free", "a binding half made"])
async def test_a_claim_gets_no_account_that_is_deleted_with_its_pool(linked: dict[str, Any], given: bool) -> None:
    """Kubernetes removes the pool first, then its Accounts."""
    kube = MemoryKube()
    await kube.put(ready_account(spec=linked), claim(status={"state": "Pending"}))
    await kube.create(CONFIG_MAP, {"metadata": {"name": CONFIG_MAP_NAME}, "data": DATA}, OPERATOR_NAMESPACE)
    with nullcontext() if given else pytest.raises(Invalid, match="can't find a suitable account"):
        await passes_over(kube).bind_without_pool(BindWithoutPool(claim=claim().key, pool=POOL))
    assert (await kube.get(ACCOUNT_CLAIM, "tenant", "claim"))["spec"]["accountLink"] == (NAME if given else "")


# --- other namespaces ---


@pytest.mark.parametrize(("namespace", "given"), [(OPERATOR_NAMESPACE, True), ("elsewhere", False)])
async def test_a_pool_neither_counts_nor_gives_accounts_outside_the_operators_namespace(
    namespace: str, given: bool
) -> None:
    free = ready_account(meta={"namespace": namespace})
    waiting = claim(status={"state": "Pending"})
    filled = pool(size=1)
    kube = Kube((ACCOUNT, free), (ACCOUNT_CLAIM, waiting), (ACCOUNT_POOL, filled))
    found = await passed(kube, filled, PoolMemory())
    assert (GIFT in found.decision.planned) is given, found.decision


def test_accounts_of_every_namespace_are_watched() -> None:
    (watched,) = (each for each in WATCHED if each.kind is ACCOUNT)
    assert (watched.followed.namespace, watched.kind.lifecycle) == ("", True)


async def test_a_pool_of_another_namespace_is_reported_and_neither_filled_nor_counted() -> None:
    kube = MemoryKube()
    made = await kube.create(ACCOUNT_POOL, pool(size=3).model_dump(mode="json", exclude_none=True), "tenant")
    key = pool().key.model_copy(update={"namespace": "tenant", "uid": made["metadata"]["uid"]})
    found = await passes_over(kube).pass_pool(PassPool(key=key, memory=PoolMemory()))
    assert found.decision.outcome is Outcome.WAITING
    assert OPERATOR_NAMESPACE in found.decision.why
    assert (await kube.list(ACCOUNT, OPERATOR_NAMESPACE)).items == []
    assert await kube.get(ACCOUNT_POOL, "tenant", POOL) == made


@pytest.mark.parametrize("lacking", ["", "accountsPending", "awsLimitDelta"])
async def test_a_status_that_lacks_a_number_is_completed_and_a_whole_one_left_alone(lacking: str) -> None:
    whole = PoolView(pool=pool(size=0), accounts=(), claims=(), config=CONFIG, room=None)
    numbers = decide(whole, NOW).status.model_dump(mode="json", exclude={"conditions"})
    kube = await cluster()
    status = {name: number for name, number in numbers.items() if name != lacking}
    made = await kube.patch(ACCOUNT_POOL, OPERATOR_NAMESPACE, POOL, {"status": status}, subresource="status")
    found = await passed(kube, FULL, PoolMemory())
    assert found.known.bonds_seen
    after = await kube.get(ACCOUNT_POOL, OPERATOR_NAMESPACE, POOL)
    assert after["status"] == numbers
    assert (after == made) is (lacking == "")


GO_STRUCTS = {"byocSecretRef": {"name": "", "namespace": ""}, "fleetManagerConfig": {"trustedARN": ""}}


@pytest.mark.parametrize(("finalizers", "added"), [(["theirs"], GO_STRUCTS), (["theirs", FINALIZER], {})])
async def test_the_finalizer_comes_with_the_fields_that_go_structs_always_show(
    finalizers: list[str], added: dict[str, Any]
) -> None:
    """A claim that has the finalizer gets its link only."""
    kube = await cluster(ready_account())
    requested = {
        "legalEntity": {"id": "e", "name": "E"},
        "awsCredentialSecret": {"name": "aws", "namespace": "tenant"},
        "aws": {"regions": [{"name": "us-east-1"}]},
        "accountLink": "",
    }
    waits = {"metadata": {"name": "claim", "finalizers": finalizers}, "spec": requested, "status": {"state": "Pending"}}
    await kube.create(ACCOUNT_CLAIM, waits, "tenant")
    await passed(kube, FULL, PoolMemory())
    bound = await kube.get(ACCOUNT_CLAIM, "tenant", "claim")
    assert bound["metadata"]["finalizers"] == ["theirs", FINALIZER]
    assert bound["spec"] == {**requested, "accountLink": NAME, **added}


# --- writes that the API server refuses ---


class Refusing(MemoryKube):
    """An API server that refuses changes of these claims."""

    def __init__(self, refusal: ApiError, *claims: str) -> None:
        super().__init__()
        self._claims, self._refusal = claims, refusal

    async def patch(self, kind: Kind, namespace: str, name: str, patch: Any, **more: Any) -> dict[str, Any]:
        if kind == ACCOUNT_CLAIM and name in self._claims:
            raise self._refusal
        return await super().patch(kind, namespace, name, patch, **more)


@pytest.mark.parametrize("refusal", [Denied("claim odd: a webhook says no"), Invalid("claim odd: not valid")])
async def test_a_claim_that_cannot_be_written_holds_up_no_other_claim_and_no_count(
    monkeypatch: pytest.MonkeyPatch, refusal: ApiError
) -> None:
    counted = AsyncMock(return_value=Room(active=10, limit=100, free=90, budget=30).model_dump(mode="json"))
    monkeypatch.setattr(Temporal, "query", counted)
    second = ready_account("osd-creds-mgmt-zzzzzz", spec={"awsAccountID": "222222222222"})
    waiting = [claim(name, status={"state": "Pending"}) for name in ("odd", "well")]
    kube = await cluster(ready_account(), second, *waiting, kube=Refusing(refusal, "odd"))
    found = await passed(kube, FULL, PoolMemory(died=("osd-creds-mgmt-dead22",)))
    assert (await kube.get(ACCOUNT_CLAIM, "tenant", "well"))["spec"]["accountLink"]
    assert found.heard == ("osd-creds-mgmt-dead22",)
    assert (found.decision.outcome, found.known.bonds_seen) == (Outcome.WAITING, False)
    assert refusal.message in found.decision.why
    # The environment's time is 1970.
    assert found.decision.deadline == datetime(1970, 1, 1, tzinfo=UTC) + AFTER_REFUSAL


async def test_the_account_that_a_claim_was_refused_goes_to_the_next_claim() -> None:
    new = {"meta": {"finalizers": []}, "status": {"state": "Pending"}}
    waiting = [claim(name, **new) for name in ("odd", "well")]
    kube = await cluster(ready_account(), *waiting, kube=Refusing(Denied("claim odd: no"), "odd"))
    first = await passed(kube, FULL, PoolMemory())
    assert not (await kube.get(ACCOUNT_CLAIM, "tenant", "well"))["spec"]["accountLink"]
    assert first.decision.deadline == datetime(1970, 1, 1, tzinfo=UTC) + AFTER_CONFLICT
    await passed(kube, FULL, first.known)
    assert (await kube.get(ACCOUNT_CLAIM, "tenant", "well"))["spec"]["accountLink"] == NAME


@pytest.mark.parametrize(("well", "link"), [(("well",), NAME), ((), None)], ids=["a third claim", "only refused ones"])
async def test_two_refused_claims_share_their_turns_and_starve_no_third(
    well: tuple[str, ...], link: str | None
) -> None:
    new = {"meta": {"finalizers": []}, "status": {"state": "Pending"}}
    waiting = [claim(name, **new) for name in ("odd", "strange", *well)]
    kube = await cluster(ready_account(), *waiting, kube=Refusing(Denied("no"), "odd", "strange"))
    known = PoolMemory()
    for _ in range(3):
        found = await passed(kube, FULL, known)
        known = found.known
    linked = {name: (await kube.get(ACCOUNT_CLAIM, "tenant", name))["spec"].get("accountLink") for name in well}
    assert linked == dict.fromkeys(well, link)
    if not well:
        soon = datetime(1970, 1, 1, tzinfo=UTC) + AFTER_CONFLICT
        assert found.decision.deadline is not None
        assert found.decision.deadline > soon


async def test_an_api_server_without_an_answer_ends_the_pass() -> None:
    waiting = claim(status={"state": "Pending"})
    kube = await cluster(ready_account(), waiting, kube=Refusing(Unavailable("no answer"), "claim"))
    with pytest.raises(Unavailable):
        await passed(kube, FULL, PoolMemory())
