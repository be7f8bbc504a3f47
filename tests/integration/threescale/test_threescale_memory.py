"""What a worker remembers of 3scale between passes: a change costs what differs, and nothing is believed blindly."""

from __future__ import annotations

import pytest
from threescale_lab import Shop
from threescale_passes_lab import Passes
from threescale_process import Client

from domain.threescale import BACKEND, PRODUCT
from localcloud.bench.threescale_things import backend, example, rule
from localcloud.threescale.control import ThreescaleControl

pytestmark = pytest.mark.integration


@pytest.fixture
async def made(bare_shop: Shop, passes: Passes, control: ThreescaleControl) -> Shop:
    for kind, body in (backend("first"), backend("second"), example("example", "first", "second")):
        await bare_shop.create(kind, body["metadata"]["name"], body["spec"])  # type: ignore[index, arg-type]
    await passes.settled(bare_shop)
    control.reset_ledger()
    return bare_shop


async def rename(shop: Shop, name: str = "Another name") -> None:
    await shop.change(PRODUCT, "example", {"metrics": {"m1": {"friendlyName": name}}})


async def test_another_friendly_name_is_one_call(made: Shop, passes: Passes, control: ThreescaleControl) -> None:
    await rename(made)
    await passes.settled(made)

    assert control.ledger().by_route() == {"PUT /admin/api/services/{service}/metrics/{metric}": 1}


async def test_a_rule_before_ten_others_is_one_call_and_a_deployment(
    made: Shop, passes: Passes, control: ThreescaleControl
) -> None:
    found = await made.get(PRODUCT, "example") or {}
    await made.change(PRODUCT, "example", {"mappingRules": [rule("/new", "t0"), *found["spec"]["mappingRules"]]})
    await passes.settled(made)

    assert control.ledger().by_route() == {
        "POST /admin/api/services/{service}/proxy/mapping_rules": 1,
        "POST /admin/api/services/{service}/proxy/deploy": 1,
    }


async def test_a_remembered_item_that_is_gone_is_observed_again(
    made: Shop, passes: Passes, control: ThreescaleControl, tenant: Client
) -> None:
    service = await product_id(made)
    (metric,) = (each for each in tenant.list(f"services/{service}/metrics") if each["system_name"] == "m1")
    tenant.delete(f"services/{service}/metrics/{metric['id']}")
    await rename(made)
    await passes.settled(made)

    found = {each["system_name"]: each["friendly_name"] for each in tenant.list(f"services/{service}/metrics")}
    assert found["m1"] == "Another name"


async def test_an_object_that_another_worker_has_passed_over_is_read(
    made: Shop, passes: Passes, control: ThreescaleControl
) -> None:
    another = {"status": {"digests": {"synced": "another digest"}}}
    await made.kube.patch(PRODUCT, made.namespace, "example", another, subresource="status")
    await rename(made)
    await passes.settled(made)

    assert control.ledger().mutating() == 1
    assert control.ledger().reading() > 1


async def test_a_metric_that_its_backend_has_got_since_is_known(
    made: Shop, passes: Passes, control: ThreescaleControl
) -> None:
    await made.change(BACKEND, "first", {"metrics": {"late": {"friendlyName": "Late", "unit": "1"}}})
    limit = {"period": "year", "value": 9, "metricMethodRef": {"systemName": "late", "backend": "first"}}
    await made.change(PRODUCT, "example", {"applicationPlans": {"basic": {"limits": [limit]}}})
    await passes.settled(made)

    assert control.ledger().calls("POST", "/admin/api/application_plans/{plan}/metrics/{metric}/limits") == 1


async def test_a_remembered_item_is_deleted_with_its_object(made: Shop, passes: Passes, tenant: Client) -> None:
    service = await product_id(made)
    await made.delete(PRODUCT, "example")
    await passes.settled(made)

    assert tenant.refused("GET", f"services/{service}")[0] == 404


async def product_id(shop: Shop) -> int:
    found = await shop.get(PRODUCT, "example") or {}
    return int(found["status"]["productId"])
