"""All Accounts, as the passes of pools and of the organization read them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from kube_fault_proxy import FaultProxy

from activities.accounts.cache import ALL_ACCOUNTS, ALL_POOLS, Reader
from domain.accounts import ACCOUNT, ACCOUNT_POOL
from domain.accounts.constants import OPERATOR_NAMESPACE
from domain.accounts.resources import AccountPool
from domain.control_annotations import PAUSED, RETRY
from domain.identity import Key
from engine.kube import JsonObject, KubeApi
from engine.kube.informer_cache import Store
from engine.kube.json import text
from engine.settings import Settings

pytestmark = pytest.mark.integration

LISTED = ("GET", "accounts")


@pytest.fixture
async def account(kube: KubeApi) -> AsyncIterator[JsonObject]:
    """An Account that nothing is done for."""
    made = await created(kube, "osd-creds-mgmt-cached")
    yield made
    await kube.delete(ACCOUNT, OPERATOR_NAMESPACE, text(made, "metadata", "name"))


async def created(kube: KubeApi, name: str) -> JsonObject:
    spec = {"awsAccountID": "", "iamUserSecret": "", "claimLink": "", "legalEntity": {"id": "", "name": ""}}
    manifest: JsonObject = {"metadata": {"name": name, "annotations": {PAUSED: "true"}}, "spec": spec}
    return await kube.create(ACCOUNT, manifest, OPERATOR_NAMESPACE)


async def followed(store: Store) -> None:
    """Accounts and pools are listed and watched."""
    for mirror in map(store.follow, (ALL_ACCOUNTS, ALL_POOLS)):
        await mirror.settled()
        await mirror.current()


async def legal_entity(reader: Reader, seen: dict[str, str] | None, having: tuple[str, ...] = ()) -> str:
    """What the Account of the test says of its legal entity, as a pass reads it."""
    found = await reader.accounts(seen, OPERATOR_NAMESPACE, having)
    return next(each.spec.legal_entity.id for each in found if each.metadata.name == "osd-creds-mgmt-cached")


@pytest.mark.usefixtures("patient")
async def test_accounts_are_no_older_than_what_has_woken_the_pass_and_cost_no_request(
    kube: KubeApi, account: JsonObject, proxy: FaultProxy, proxied: KubeApi
) -> None:
    async with Store(proxied) as store:
        reader = Reader(proxied, Settings(), store)
        await followed(store)
        proxy.asked.clear()
        for entity in ("one", "two"):
            assert await legal_entity(reader, await changed(kube, entity)) == entity
        assert LISTED not in proxy.asked


async def test_where_the_watch_hangs_the_accounts_are_listed(
    kube: KubeApi, account: JsonObject, proxy: FaultProxy, proxied: KubeApi
) -> None:
    async with Store(proxied) as store:
        reader = Reader(proxied, Settings(), store)
        await followed(store)
        proxy.freeze()
        assert await legal_entity(reader, await changed(kube, "three")) == "three"
        assert LISTED in proxy.asked


@pytest.mark.parametrize(
    ("seen", "having"),
    [pytest.param(None, (), id="thorough"), pytest.param({}, ("osd-creds-mgmt-absent",), id="one is missing")],
)
async def test_accounts_are_listed_where_the_cache_may_be_behind(
    account: JsonObject, proxy: FaultProxy, proxied: KubeApi, seen: dict[str, str] | None, having: tuple[str, ...]
) -> None:
    async with Store(proxied) as store:
        reader = Reader(proxied, Settings(), store)
        await followed(store)
        proxy.asked.clear()
        assert await legal_entity(reader, seen, having) == ""
        assert LISTED in proxy.asked


async def test_a_write_of_ones_own_is_there_at_once(account: JsonObject, proxy: FaultProxy, proxied: KubeApi) -> None:
    async with Store(proxied) as store:
        reader = Reader(proxied, Settings(), store)
        await followed(store)
        proxy.freeze()
        found = await reader.accounts({}, OPERATOR_NAMESPACE, ("osd-creds-mgmt-cached",))
        mine = next(each for each in found if each.metadata.name == "osd-creds-mgmt-cached")
        await reader.write(mine, {"spec": {"legalEntity": {"id": "four", "name": "four"}}})
        proxy.asked.clear()
        assert await legal_entity(reader, {}) == "four"
        assert LISTED not in proxy.asked


@pytest.mark.usefixtures("patient")
async def test_a_pool_costs_no_request_unless_a_retry_is_asked_for(
    kube: KubeApi, proxy: FaultProxy, proxied: KubeApi
) -> None:
    """The cache may not show yet that a retry was honoured."""
    made = await kube.create(
        ACCOUNT_POOL,
        {"metadata": {"name": "cached", "annotations": {PAUSED: "true"}}, "spec": {"poolSize": 0}},
        OPERATOR_NAMESPACE,
    )
    key = AccountPool.model_validate(made).key
    async with Store(proxied) as store:
        reader = Reader(proxied, Settings(), store)
        await followed(store)
        assert (await size(reader, proxy, key, await resized(kube, 2, {}))) == (2, False)
        assert (await size(reader, proxy, key, await resized(kube, 3, {RETRY: "1"}))) == (3, True)
        other = key.model_copy(update={"uid": "that of an earlier one"})
        assert await reader.pool(other, {}) is None
    await kube.delete(ACCOUNT_POOL, OPERATOR_NAMESPACE, "cached")


async def size(reader: Reader, proxy: FaultProxy, key: Key, seen: dict[str, str]) -> tuple[int, bool]:
    """What the pool wants, and whether the API server was asked."""
    proxy.asked.clear()
    pool = await reader.pool(key, seen)
    assert pool is not None
    return pool.spec.pool_size, ("GET", "accountpools") in proxy.asked


async def resized(kube: KubeApi, size: int, annotations: dict[str, str]) -> dict[str, str]:
    patch: JsonObject = {"metadata": {"annotations": {**annotations}}, "spec": {"poolSize": size}}
    found = await kube.patch(ACCOUNT_POOL, OPERATOR_NAMESPACE, "cached", patch)
    return {ACCOUNT_POOL.name: text(found, "metadata", "resourceVersion")}


async def changed(kube: KubeApi, entity: str) -> dict[str, str]:
    """The Account names this legal entity; what a wake says of it."""
    patch: JsonObject = {"spec": {"legalEntity": {"id": entity, "name": entity}}}
    found = await kube.patch(ACCOUNT, OPERATOR_NAMESPACE, "osd-creds-mgmt-cached", patch)
    return {ACCOUNT.name: text(found, "metadata", "resourceVersion")}
