"""3scale objects as their users see them: the product at work on a real API server, a real Temporal and the simulator.

Each test has a tenant and a namespace of its own. Calls are counted by the simulator.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from threescale_lab import Shop
from threescale_process import Client
from threescale_scene import EVERYTHING, everything

from domain.threescale import APPLICATION, BACKEND, DEVELOPER_ACCOUNT, PRODUCT
from localcloud.threescale.control import ThreescaleControl

pytestmark = pytest.mark.integration


async def test_a_product_waits_for_its_backend_and_is_synced_when_that_arrives(shop: Shop, tenant: Client) -> None:
    """3scale weakness 2: a waiting object was not woken when the object that it waits for appeared."""
    await shop.product(backendUsages={"stock": {"path": "/v1"}})
    orphan = await shop.shown(PRODUCT, "goods", "Orphan")
    assert "productId" not in orphan["status"]
    assert "goods" not in {each["system_name"] for each in tenant.list("services")}

    await shop.backend()
    backend, product = await shop.synced(BACKEND, "stock"), await shop.synced(PRODUCT, "goods")

    (service,) = [each for each in tenant.list("services") if each["system_name"] == "goods"]
    assert service["id"] == product["status"]["productId"]
    (usage,) = tenant.list(f"services/{service['id']}/backend_usages")
    assert (usage["path"], usage["backend_id"]) == ("/v1", backend["status"]["backendId"])
    assert product["metadata"]["finalizers"] == [PRODUCT.finalizer]
    assert product["status"]["providerAccountHost"] == tenant.url


async def test_deleted_objects_go_in_their_order_and_leave_nothing(shop: Shop, tenant: Client) -> None:
    await shop.backend()
    await shop.product(backendUsages={"stock": {"path": "/"}})
    made = await shop.synced(PRODUCT, "goods")

    await shop.delete(BACKEND, "stock")
    await shop.shown(PRODUCT, "goods", "Orphan")
    assert await shop.get(BACKEND, "stock") is not None
    await shop.delete(PRODUCT, "goods")
    await shop.gone(PRODUCT, "goods")
    await shop.gone(BACKEND, "stock")

    assert made["status"]["productId"] not in [each["id"] for each in tenant.list("services")]
    assert tenant.list("backend_apis") == []


async def test_a_synced_object_costs_no_call_until_it_changes_and_then_only_the_difference(
    shop: Shop, control: ThreescaleControl
) -> None:
    await shop.backend()
    metrics = {"hits": {"friendlyName": "Hits", "unit": "hit"}, "bytes": {"friendlyName": "Bytes", "unit": "byte"}}
    plans = {"basic": {"setupFee": "20", "pricingRules": [_price("20")], "limits": [_limit(5)]}}
    await shop.product(metrics=metrics, applicationPlans=plans, backendUsages={"stock": {"path": "v1/"}})
    await shop.synced(PRODUCT, "goods")
    control.reset_ledger()

    await shop.annotate(PRODUCT, "goods", touched="yes")
    metrics["bytes"]["friendlyName"] = "Volume"
    await shop.change(PRODUCT, "goods", {"metrics": metrics})
    await shop.synced(PRODUCT, "goods")

    assert control.ledger().mutating() == 1


@pytest.mark.complete
async def test_one_of_each_kind_is_ready_and_a_restart_of_the_product_makes_no_call(
    shop: Shop, tenant: Client, control: ThreescaleControl, product_at_work: Any
) -> None:
    await everything(shop, random.Random(7))
    for kind, name, _ in EVERYTHING:
        await (shop.synced(kind, name) if kind in (PRODUCT, BACKEND) else shop.ready(kind, name))
    keys = await shop.secret_values("keys")
    application = await shop.ready(APPLICATION, "till")
    path = f"accounts/{(await shop.ready(DEVELOPER_ACCOUNT, 'acme'))['status']['accountID']}/applications"
    (found,) = tenant.list(path)
    assert (found["id"], found["user_key"]) == (application["status"]["applicationID"], keys["UserKey"])

    await product_at_work.stop()
    control.reset_ledger()
    await product_at_work.start()
    await shop.backend("later", systemName="later")
    await shop.synced(BACKEND, "later")
    called = control.ledger().by_route()
    assert [route for route in called if "/backend_apis" not in route] == []
    assert control.ledger().mutating() == 1


def _price(text: str) -> dict[str, object]:
    return {"from": 1, "to": 100, "pricePerUnit": text, "metricMethodRef": {"systemName": "hits"}}


def _limit(value: int) -> dict[str, object]:
    return {"period": "day", "value": value, "metricMethodRef": {"systemName": "hits"}}
