"""Objects of one name in one tenant, and what they have there: whose it is, and who may delete it."""

from __future__ import annotations

import pytest
from threescale_lab import Shop, true_conditions
from threescale_objects import ANN_SPEC
from threescale_passes_lab import Passes
from threescale_process import Client
from threescale_scene import everything

from domain.identity import Kind
from domain.threescale import ACTIVE_DOC, BACKEND, CUSTOM_POLICY_DEFINITION, DEVELOPER_ACCOUNT, DEVELOPER_USER, PRODUCT

pytestmark = pytest.mark.integration

IDS = {PRODUCT: "productId", BACKEND: "backendId", ACTIVE_DOC: "activeDocId", CUSTOM_POLICY_DEFINITION: "policyID"}
NAMES = {PRODUCT: "goods", BACKEND: "stock", ACTIVE_DOC: "goods", CUSTOM_POLICY_DEFINITION: "mine"}


@pytest.mark.parametrize("kind", list(IDS), ids=lambda kind: kind.name)
async def test_of_two_owners_of_one_entry_the_deleted_one_leaves_it_to_the_other(
    bare_shop: Shop, passes: Passes, kind: Kind
) -> None:
    await everything(bare_shop)
    await passes.settled(bare_shop)
    name = NAMES[kind]
    elder = await bare_shop.get(kind, name) or {}
    younger = await bare_shop.create(kind, "younger", elder["spec"], finalizers=[kind.finalizer])
    await bare_shop.kube.patch(kind, bare_shop.namespace, "younger", {"status": elder["status"]}, subresource="status")
    assert younger["metadata"]["creationTimestamp"] >= elder["metadata"]["creationTimestamp"]
    await bare_shop.delete(kind, "younger")
    await passes.round(bare_shop)

    assert await bare_shop.get(kind, "younger") is None
    await bare_shop.annotate(kind, name, **{"perdure.dev/retry": "1"})
    await passes.settled(bare_shop)
    found = await bare_shop.get(kind, name) or {}
    assert found["status"][IDS[kind]] == elder["status"][IDS[kind]]


async def test_of_one_manifest_in_two_namespaces_of_a_tenant_one_has_the_thing(
    bare_shop: Shop, passes: Passes, tenant: Client
) -> None:
    other = await Shop(bare_shop.kube, tenant).open()
    for shop in (bare_shop, other):
        await shop.backend()
        await shop.product()
    for shop in (other, bare_shop, other, bare_shop):
        await passes.round(shop)
    standing = {
        (kind.name, each.namespace): true_conditions(await each.get(kind, name) or {})
        for kind, name in ((BACKEND, "stock"), (PRODUCT, "goods"))
        for each in (bare_shop, other)
    }
    for kind in (BACKEND, PRODUCT):
        both = sorted(sorted(shown) for (name, _), shown in standing.items() if name == kind.name)
        assert both == [["Failed", "Invalid"], ["Synced"]], standing

    for kind, name, path in ((BACKEND, "stock", "backend_apis"), (PRODUCT, "goods", "services")):
        made = [each["id"] for each in tenant.list(path) if each["system_name"] == name]
        second = bare_shop if "Invalid" in standing[kind.name, bare_shop.namespace] else other
        await second.delete(kind, name)
        await passes.round(second)
        assert await second.get(kind, name) is None
        assert [each["id"] for each in tenant.list(path) if each["system_name"] == name] == made


async def test_an_account_is_one_objects_until_that_goes(bare_shop: Shop, passes: Passes, tenant: Client) -> None:
    other = await Shop(bare_shop.kube, tenant).open()
    for shop in (bare_shop, other):
        await shop.secret("ann-password", password="secret123")
        await shop.create(DEVELOPER_ACCOUNT, "acme", {"orgName": "Acme"})
        await shop.create(DEVELOPER_USER, "ann", ANN_SPEC)
    await passes.settled(bare_shop)
    for _ in range(3):
        await passes.round(other)
    made = (await bare_shop.get(DEVELOPER_ACCOUNT, "acme") or {})["status"]["accountID"]
    second = await other.get(DEVELOPER_ACCOUNT, "acme") or {}
    assert "accountID" not in second["status"]
    message = await other.message(DEVELOPER_ACCOUNT, "acme", "Invalid")
    assert message == f"DeveloperAccount {bare_shop.namespace}/acme already manages 3scale account {made}"

    await bare_shop.delete(DEVELOPER_ACCOUNT, "acme")
    for _ in range(3):
        await passes.round(bare_shop)
    await passes.settled(other)
    second = await other.get(DEVELOPER_ACCOUNT, "acme") or {}
    assert [each["id"] for each in tenant.list("accounts") if each["org_name"] == "Acme"] == [
        second["status"]["accountID"]
    ]
