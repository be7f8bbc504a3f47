"""A backend lets go of what the gateways of its products count: they deploy without it, then it goes."""

from __future__ import annotations

from typing import Any

import pytest
from threescale_lab import Shop, true_conditions
from threescale_passes_lab import Passes
from threescale_process import Client

from domain.threescale import BACKEND, PRODUCT
from domain.threescale.auto_promotion import PROMOTE
from localcloud.threescale.control import ThreescaleControl

pytestmark = pytest.mark.integration

ORDERS = {"friendlyName": "Orders", "unit": "order"}
RULE = {"httpMethod": "GET", "pattern": "/orders", "metricMethodRef": "orders", "increment": 1}
# What is gone from the spec is said as null, as in any merge patch.
WITHOUT: dict[str, Any] = {"metrics": {"orders": None}, "mappingRules": []}
AS_METHOD: dict[str, Any] = {"metrics": {"orders": None}, "methods": {"orders": {"friendlyName": "Orders"}}}


async def selling(shop: Shop, passes: Passes, **annotations: str) -> str:
    """A product whose gateway counts a metric of its backend; returns where the product is."""
    await shop.backend(metrics={"orders": ORDERS}, mappingRules=[RULE])
    await shop.product(backendUsages={"stock": {"path": "/"}})
    await shop.annotate(PRODUCT, "goods", **annotations)
    await passes.settled(shop)
    made = await shop.get(PRODUCT, "goods") or {}
    return f"services/{made['status']['productId']}"


async def metrics_of(shop: Shop) -> dict[str, bool]:
    """The backend's metrics in 3scale, and whether each is a method."""
    made = await shop.get(BACKEND, "stock") or {}
    listed = shop.tenant.list(f"backend_apis/{made['status']['backendId']}/metrics")
    return {each["system_name"].partition(".")[0]: "parent_id" in each for each in listed}


def counted(tenant: Client, service: str, environment: str = "sandbox") -> list[str]:
    """The metrics that the newest configuration counts."""
    config = tenant.get(f"{service}/proxy/configs/{environment}/latest")["proxy_config"]
    return [each["metric_system_name"].partition(".")[0] for each in config["content"]["proxy"]["proxy_rules"]]


async def test_a_counted_metric_is_deleted_once_the_product_has_deployed_without_it(
    bare_shop: Shop, passes: Passes, tenant: Client, control: ThreescaleControl
) -> None:
    service = await selling(bare_shop, passes)
    assert counted(tenant, service) == ["orders"]

    await bare_shop.change(BACKEND, "stock", WITHOUT)
    await passes.round(bare_shop)
    assert "Failed" in true_conditions(await bare_shop.get(BACKEND, "stock") or {})
    await passes.round(bare_shop)
    assert counted(tenant, service) == []
    assert "Synced" in true_conditions(await bare_shop.get(PRODUCT, "goods") or {})
    assert "Synced" in true_conditions(await bare_shop.get(BACKEND, "stock") or {})
    assert await metrics_of(bare_shop) == {"hits": False}
    await passes.settled(bare_shop)
    control.reset_ledger()
    await passes.round(bare_shop)
    assert control.ledger().by_route() == {}


async def test_a_metric_that_a_gateway_counts_becomes_a_method(bare_shop: Shop, passes: Passes, tenant: Client) -> None:
    service = await selling(bare_shop, passes)
    await bare_shop.change(BACKEND, "stock", AS_METHOD)
    await passes.settled(bare_shop)
    await passes.settled(bare_shop)

    assert await metrics_of(bare_shop) == {"hits": False, "orders": True}
    assert counted(tenant, service) == ["orders"]


async def test_a_metric_that_production_counts_goes_when_that_is_promoted(
    bare_shop: Shop, passes: Passes, tenant: Client
) -> None:
    service = await selling(bare_shop, passes, **{PROMOTE: "true"})
    assert counted(tenant, service, "production") == ["orders"]
    await bare_shop.change(BACKEND, "stock", WITHOUT)
    await passes.settled(bare_shop)

    assert counted(tenant, service, "production") == []
    assert await metrics_of(bare_shop) == {"hits": False}
