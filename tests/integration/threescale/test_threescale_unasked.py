"""What Perdure does by itself once an object asks for it: it promotes, labels, reports what lasts, takes along."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest
from threescale_lab import Json, Shop, true_conditions
from threescale_passes_lab import Passes
from threescale_process import Client
from threescale_scene import everything

from domain.decision import Outcome
from domain.threescale import APPLICATION, BACKEND, OPEN_API, PRODUCT, conditions
from domain.threescale.auto_promotion import PROMOTE
from domain.threescale.cascading_deletion import CASCADE
from domain.threescale.drift_schedule import COMPARED_AFTER_CHANGE
from domain.threescale.open_api import SOURCE_UID, WATCHED_BY
from engine.errors import Denied
from engine.kube import EVENT, SECRET
from localcloud.bench.threescale_all_kinds import PETS
from localcloud.threescale.control import ThreescaleControl

pytestmark = pytest.mark.integration


def rule(pattern: str) -> Json:
    return {"httpMethod": "GET", "pattern": pattern, "metricMethodRef": "hits", "increment": 1}


def versions(tenant: Client, service: int) -> tuple[int, int]:
    """The newest of staging and of production, 0 where there is none."""
    staging, production = (
        max([each["version"] for each in tenant.list(f"services/{service}/proxy/configs/{name}")], default=0)
        for name in ("sandbox", "production")
    )
    return staging, production


async def promoted_product(shop: Shop, passes: Passes) -> int:
    """A product that is promoted by itself; its id."""
    await shop.backend()
    await shop.create(
        PRODUCT,
        "goods",
        {
            "name": "goods",
            "systemName": "goods",
            "backendUsages": {"stock": {"path": "/"}},
            "mappingRules": [rule("/a")],
        },
        annotations={PROMOTE: "true"},
    )
    await passes.settled(shop)
    return int((await shop.get(PRODUCT, "goods") or {})["status"]["productId"])


async def test_each_change_of_a_product_reaches_production_and_nothing_else_costs_a_call(
    bare_shop: Shop, passes: Passes, tenant: Client, control: ThreescaleControl
) -> None:
    service = await promoted_product(bare_shop, passes)
    first = versions(tenant, service)
    assert first[0] == first[1] > 0

    await bare_shop.change(PRODUCT, "goods", {"mappingRules": [rule("/a"), rule("/b")]})
    await passes.settled(bare_shop)
    second = versions(tenant, service)
    assert second[0] == second[1] > first[0]
    status = (await bare_shop.get(PRODUCT, "goods") or {})["status"]
    assert status["latestProductionVersion"] == second[1]

    passes.ahead += COMPARED_AFTER_CHANGE
    await passes.round(bare_shop)  # compared with 3scale once
    control.reset_ledger()
    await passes.round(bare_shop)
    assert control.ledger().calls() == 0


@pytest.mark.parametrize("kind", ["before", "after", "cut"])
async def test_a_promotion_whose_answer_is_lost_is_there_once(
    bare_shop: Shop, passes: Passes, tenant: Client, control: ThreescaleControl, kind: str
) -> None:
    fault = control.fault("POST", "/promote", kind=kind, count=1)
    service = await promoted_product(bare_shop, passes)

    staging, production = versions(tenant, service)
    assert staging == production > 0
    assert next(each.hits for each in control.faults() if each.id == fault.id) == 1


async def test_a_metric_that_production_counts_goes_in_the_same_pass(
    bare_shop: Shop, passes: Passes, tenant: Client
) -> None:
    await bare_shop.backend()
    spec: dict[str, Any] = {
        "name": "goods",
        "systemName": "goods",
        "backendUsages": {"stock": {"path": "/"}},
        "metrics": {"old": {"friendlyName": "Old", "unit": "1"}},
        "mappingRules": [{**rule("/a"), "metricMethodRef": "old"}],
    }
    await bare_shop.create(PRODUCT, "goods", spec, annotations={PROMOTE: "true"})
    await passes.settled(bare_shop)
    await bare_shop.change(PRODUCT, "goods", {"metrics": {"old": None}, "mappingRules": [rule("/a")]})
    key = next(each for each in await passes.keys(bare_shop) if each.kind == PRODUCT.name)

    assert (await passes.look(key, woken=True)).decision.outcome is Outcome.SETTLED
    service = (await bare_shop.get(PRODUCT, "goods") or {})["status"]["productId"]
    assert {each["system_name"] for each in tenant.list(f"services/{service}/metrics")} == {"hits"}


async def test_a_sync_that_lasts_says_so_until_it_is_over(
    bare_shop: Shop, passes: Passes, control: ThreescaleControl
) -> None:
    await bare_shop.backend()
    await passes.settled(bare_shop)
    fault = control.fault("PUT", "/backend_apis", status=429, headers={"Retry-After": "60"})
    await bare_shop.change(BACKEND, "stock", {"description": "what we have"})
    (key,) = await passes.keys(bare_shop)
    world = await passes.look(key)
    assert world.decision.phase == "Syncing"
    assert true_conditions(await bare_shop.get(BACKEND, "stock") or {}) == {"InSync", "Synced"}
    assert await bare_shop.message(BACKEND, "stock", "InSync")

    control.clear(fault.id)
    passes.ahead += timedelta(minutes=2)
    assert (await passes.look(key)).decision.outcome is Outcome.SETTLED
    found = await bare_shop.get(BACKEND, "stock") or {}
    assert [each["type"] for each in found["status"]["conditions"]] == ["Failed", "Invalid", "Synced"]


async def test_a_long_row_of_calls_says_so_once_and_a_quick_one_never(
    bare_shop: Shop, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[set[str]] = []
    patch = passes.kube.patch

    async def watched(*args: Any, **more: Any) -> Json:
        answer = await patch(*args, **more)
        reported.append(true_conditions(answer) if more.get("subresource") else set())
        return answer

    monkeypatch.setattr(passes.kube, "patch", watched)
    await bare_shop.backend("quick")
    await passes.settled(bare_shop)
    assert not [each for each in reported if "InSync" in each]

    monkeypatch.setattr(conditions, "LASTING", timedelta(0))
    await bare_shop.backend("slow")
    await passes.settled(bare_shop)
    assert [each for each in reported if "InSync" in each] == [{"InSync"}]
    assert true_conditions(await bare_shop.get(BACKEND, "slow") or {}) == {"Synced"}


async def test_an_open_api_and_its_secret_bear_each_others_labels(
    bare_shop: Shop, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bare_shop.secret("document", body=json.dumps(PETS))
    await bare_shop.create(OPEN_API, "pets", {"openapiRef": {"secretRef": {"name": "document"}}})
    await passes.settled(bare_shop)
    secret = await bare_shop.kube.get(SECRET, bare_shop.namespace, "document")
    found = await bare_shop.get(OPEN_API, "pets") or {}
    assert WATCHED_BY.items() <= secret["metadata"]["labels"].items()  # type: ignore[union-attr,call-overload,index,attr-defined]
    assert found["metadata"]["labels"] == {SOURCE_UID: secret["metadata"]["uid"]}  # type: ignore[index,call-overload]

    async def denied(*_: Any, **__: Any) -> None:
        raise Denied("patch Secret: forbidden")

    await bare_shop.secret("guarded", body=json.dumps(PETS))
    monkeypatch.setattr("activities.threescale.secrets.Secrets.label", denied)
    await bare_shop.create(
        OPEN_API, "guarded", {"openapiRef": {"secretRef": {"name": "guarded"}}, "productSystemName": "other"}
    )
    await passes.settled(bare_shop)
    assert "Ready" in true_conditions(await bare_shop.get(OPEN_API, "guarded") or {})


async def reasons(shop: Shop) -> Iterable[str]:
    return [str(each["reason"]) for each in (await shop.kube.list(EVENT, shop.namespace)).items]


async def test_a_product_takes_its_applications_along_where_it_says_so(
    bare_shop: Shop, passes: Passes, tenant: Client
) -> None:
    await everything(bare_shop)
    await passes.settled(bare_shop)
    application = await bare_shop.get(APPLICATION, "till") or {}
    product = application["spec"]["productCR"]["name"]
    await bare_shop.annotate(PRODUCT, product, **{CASCADE: "true"})
    plan = application["spec"]["applicationPlanName"]
    await bare_shop.change(PRODUCT, product, {"applicationPlans": {plan: None, "another": {}}})
    await passes.settled(bare_shop)

    assert await bare_shop.get(APPLICATION, "till") is None
    service = (await bare_shop.get(PRODUCT, product) or {})["status"]["productId"]
    plans = {each["system_name"] for each in tenant.list(f"services/{service}/application_plans")}
    assert plan not in plans
    assert "another" in plans
    assert "GoesAlong" in await reasons(bare_shop)


async def test_a_product_that_goes_waits_for_the_applications_that_it_takes_along(
    bare_shop: Shop, passes: Passes, tenant: Client
) -> None:
    await everything(bare_shop)
    await passes.settled(bare_shop)
    product = (await bare_shop.get(APPLICATION, "till") or {})["spec"]["productCR"]["name"]
    await bare_shop.annotate(PRODUCT, product, **{CASCADE: "true"})
    await bare_shop.delete(PRODUCT, product)
    key = next(each for each in await passes.keys(bare_shop) if each.kind == PRODUCT.name and each.name == product)
    world = await passes.look(key)
    assert [each.partition("/")[0] for each in world.decision.waits_for] == ["Application"]
    for _ in range(4):
        await passes.round(bare_shop)
    assert await bare_shop.get(APPLICATION, "till") is None
    assert await bare_shop.get(PRODUCT, product) is None
    assert product not in {each["system_name"] for each in tenant.list("services")}
