"""Situations in which the replaced operator damages, hinders or leaks something, lived through by passes.

The other weaknesses of it are named in the tests of whatever meets them.
"""

from __future__ import annotations

import re
from typing import Any, cast

import pytest
from threescale_lab import Shop, true_conditions
from threescale_passes_lab import Passes
from threescale_process import Client
from threescale_scene import everything

from domain.identity import Kind
from domain.threescale import (
    APPLICATION,
    APPLICATION_AUTH,
    BACKEND,
    CUSTOM_KINDS,
    DEVELOPER_ACCOUNT,
    DEVELOPER_USER,
    PRODUCT,
    PROXY_CONFIG_PROMOTE,
    TENANT,
)
from engine.errors import Denied
from engine.kube import NAMESPACE, SECRET
from engine.kube.json import sequence
from localcloud.bench.threescale_all_kinds import tenant_spec
from localcloud.threescale.control import ThreescaleControl

pytestmark = pytest.mark.integration

HITS = {"friendlyName": "Hits", "unit": "hit", "description": "Number of API hits"}
BYTES = {"friendlyName": "Bytes", "unit": "byte"}


async def rounds(passes: Passes, shop: Shop, count: int = 3) -> None:
    for _ in range(count):
        await passes.round(shop)


def limits(*wanted: tuple[str, str]) -> dict[str, Any]:
    """A plan with a limit for each period and metric of the backend."""
    return {
        "basic": {
            "limits": [
                {"period": period, "value": 5, "metricMethodRef": {"systemName": metric, "backend": "stock"}}
                for period, metric in wanted
            ]
        }
    }


async def test_products_limit_a_backends_metric_that_is_created_again(
    bare_shop: Shop, passes: Passes, tenant: Client, control: ThreescaleControl
) -> None:
    """3scale deletes the limits with the metric; the specs of Backend and Product are in the end what they were."""
    await bare_shop.backend(metrics={"hits": HITS, "bytes": BYTES})
    plans = limits(("day", "bytes"))
    await bare_shop.product(backendUsages={"stock": {"path": "/"}}, applicationPlans=plans)
    await passes.settled(bare_shop)
    refused = control.fault("POST", "methods", status=500)
    method = {"bytes": {"friendlyName": "Bytes"}}
    await bare_shop.change(BACKEND, "stock", {"metrics": {"bytes": None}, "methods": method})
    await passes.round(bare_shop)
    control.clear(refused.id)
    await bare_shop.change(BACKEND, "stock", {"metrics": {"bytes": BYTES}, "methods": None})
    await passes.settled(bare_shop)
    await passes.settled(bare_shop)
    assert await periods(bare_shop, tenant) == ["day"]


@pytest.mark.parametrize("noticed", [True, False], ids=["by the Product", "by no object"])
async def test_products_limit_a_backends_metric_that_is_removed_and_added(
    bare_shop: Shop, passes: Passes, tenant: Client, noticed: bool
) -> None:
    rule = {"httpMethod": "GET", "pattern": "/", "metricMethodRef": "bytes", "increment": 1}
    await bare_shop.backend(metrics={"hits": HITS, "bytes": BYTES}, mappingRules=[rule])
    await bare_shop.product(applicationPlans=limits(("day", "bytes")), backendUsages={"stock": {"path": "/"}})
    await passes.settled(bare_shop)
    (stock,) = [each for each in await passes.keys(bare_shop) if each.kind == BACKEND.name]
    await bare_shop.change(BACKEND, "stock", {"metrics": {"bytes": None}, "mappingRules": None})
    await (rounds(passes, bare_shop) if noticed else passes.look(stock))
    await bare_shop.change(BACKEND, "stock", {"metrics": {"bytes": BYTES}, "mappingRules": [rule]})
    await passes.settled(bare_shop)
    await passes.settled(bare_shop)
    assert await periods(bare_shop, tenant) == ["day"]


async def periods(shop: Shop, tenant: Client) -> list[str]:
    product = await shop.get(PRODUCT, "goods") or {}
    (plan,) = tenant.list(f"services/{product['status']['productId']}/application_plans")
    return sorted(each["period"] for each in tenant.list(f"application_plans/{plan['id']}/limits"))


async def test_a_metric_that_its_backend_drops_leaves_the_products_limits_to_their_owner(
    bare_shop: Shop, passes: Passes, tenant: Client
) -> None:
    """3scale weakness 5: the operator edits the Product, and takes away or doubles limits of other metrics."""
    metrics = {"hits": HITS, "bytes": BYTES, "kept": {"friendlyName": "Kept", "unit": "1"}}
    await bare_shop.backend(metrics=metrics)
    wanted = limits(("day", "bytes"), ("day", "kept"), ("week", "bytes"), ("week", "kept"))
    await bare_shop.product(backendUsages={"stock": {"path": "/"}}, applicationPlans=wanted)
    await passes.settled(bare_shop)

    await bare_shop.change(BACKEND, "stock", {"metrics": {"bytes": None}})
    await rounds(passes, bare_shop)
    product = await bare_shop.get(PRODUCT, "goods") or {}
    assert true_conditions(product) == {"Orphan", "Failed"}
    assert product["spec"]["applicationPlans"] == wanted
    assert "stock/bytes" in await bare_shop.message(PRODUCT, "goods", "Orphan")

    await bare_shop.change(PRODUCT, "goods", {"applicationPlans": limits(("day", "kept"), ("week", "kept"))})
    await passes.settled(bare_shop)
    assert await periods(bare_shop, tenant) == ["day", "week"]


async def test_a_tenant_without_its_secret_blocks_no_other(
    bare_shop: Shop, passes: Passes, control: ThreescaleControl
) -> None:
    """3scale weakness 6: a Tenant whose Secret is missing stops every kind in its namespace."""
    await bare_shop.create(TENANT, "branch", tenant_spec(control.tenant("master"), "nobody"))
    await bare_shop.backend()
    await bare_shop.product(backendUsages={"stock": {"path": "/"}})
    await rounds(passes, bare_shop)
    assert "Synced" in true_conditions(await bare_shop.get(PRODUCT, "goods") or {})


async def test_every_kind_says_that_its_tenant_is_not_known(passes: Passes, control: ThreescaleControl) -> None:
    """3scale weakness 8: four kinds show no status at all where the provider account is missing."""
    shop = Shop(cast("Any", passes.kube), cast("Any", None))
    await passes.kube.create(NAMESPACE, {"metadata": {"name": shop.namespace}})
    await everything(shop)
    await rounds(passes, shop)
    for kind in CUSTOM_KINDS:
        for each in (await passes.kube.list(kind, shop.namespace)).items:
            messages = [c["message"] for c in sequence(each, "status", "conditions") if c.get("message")]  # type: ignore[attr-defined]
            assert messages, f"{kind.name} says nothing"
            assert true_conditions(each) & {"Orphan", "Waiting"}, f"{kind.name} says {messages}"


class Closed:
    """A namespace whose Secrets the worker may not read."""

    def __init__(self, passes: Passes, monkeypatch: pytest.MonkeyPatch, but: str = "") -> None:
        self._get = passes.kube.get
        self._but = but
        self.open = False
        monkeypatch.setattr(passes.kube, "get", self.get)

    async def get(self, kind: Kind, namespace: str, name: str) -> Any:
        if kind == SECRET and name != self._but and not self.open:
            raise Denied(f"get Secret {namespace}/{name}: forbidden")
        return await self._get(kind, namespace, name)


async def test_every_kind_says_that_its_secret_may_not_be_read(
    bare_shop: Shop, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = Closed(passes, monkeypatch)
    await everything(bare_shop)
    await bare_shop.create(TENANT, "branch", {"tenantSecretRef": {"name": "token", "namespace": bare_shop.namespace}})
    await rounds(passes, bare_shop)
    for kind in CUSTOM_KINDS:
        for each in (await passes.kube.list(kind, bare_shop.namespace)).items:
            conditions: Any = sequence(each, "status", "conditions")
            messages = {c["type"]: c["message"] for c in conditions if c["status"] == "True"}
            assert re.match("get Secret .*: forbidden", messages.get("Failed", "")), f"{kind.name} says {messages}"

    await passes.kube.delete(TENANT, bare_shop.namespace, "branch")
    closed.open = True
    await passes.settled(bare_shop)


async def test_an_object_whose_secret_may_not_be_read_waits_with_its_deletion(
    bare_shop: Shop, passes: Passes, monkeypatch: pytest.MonkeyPatch, tenant: Client, control: ThreescaleControl
) -> None:
    await everything(bare_shop)
    await passes.settled(bare_shop)
    control.reset_ledger()
    closed = Closed(passes, monkeypatch)

    await bare_shop.delete(BACKEND, "stock")
    await rounds(passes, bare_shop)
    assert "forbidden" in await bare_shop.message(BACKEND, "stock", "Failed")
    for kind in (APPLICATION_AUTH, PROXY_CONFIG_PROMOTE):  # completed once, they stay so
        (done,) = (await passes.kube.list(kind, bare_shop.namespace)).items
        assert true_conditions(done) == {"Ready"}
    assert control.ledger().by_route() == {}

    await bare_shop.delete(PRODUCT, "goods")
    closed.open = True
    await rounds(passes, bare_shop, 5)
    assert "stock" not in {each["system_name"] for each in tenant.list("backend_apis")}


async def test_only_what_needs_a_secret_is_held_up_if_the_secret_may_not_be_read(
    bare_shop: Shop, passes: Passes, monkeypatch: pytest.MonkeyPatch, tenant: Client
) -> None:
    await everything(bare_shop)
    issuer = {"name": "issuer", "namespace": bare_shop.namespace}
    await bare_shop.secret("issuer", issuerEndpoint="https://sso.example.com")
    oidc = {"issuerType": "keycloak", "issuerEndpointRef": issuer}
    hosted = {"apicastHosted": {"authentication": {"oidc": oidc}}}
    await bare_shop.create(PRODUCT, "closed", {"name": "Closed", "systemName": "closed", "deployment": hosted})
    await passes.settled(bare_shop)
    (closed,) = [each for each in tenant.list("services") if each["system_name"] == "closed"]
    Closed(passes, monkeypatch, but="threescale-provider-account")

    account = (await bare_shop.get(DEVELOPER_ACCOUNT, "acme") or {})["status"]["accountID"]
    bob = (await bare_shop.get(DEVELOPER_USER, "bob") or {})["spec"]
    await bare_shop.create(DEVELOPER_USER, "carl", {**bob, "username": "carl", "email": "carl@example.com"})
    await bare_shop.change(DEVELOPER_USER, "ann", {"email": "ann@example.org"})
    await bare_shop.delete(DEVELOPER_USER, "bob")
    await bare_shop.delete(PRODUCT, "closed")
    await rounds(passes, bare_shop)

    assert await bare_shop.get(PRODUCT, "closed") is None
    assert closed["id"] not in {each["id"] for each in tenant.list("services")}
    users = {each["username"]: each["email"] for each in tenant.list(f"accounts/{account}/users")}
    assert (users["ann"], users.keys() & {"bob", "carl"}) == ("ann@example.org", set())
    assert await bare_shop.message(DEVELOPER_USER, "carl", "Failed") == (
        f"get Secret {bare_shop.namespace}/password: forbidden"
    )


async def test_another_system_name_makes_no_second_product(bare_shop: Shop, passes: Passes, tenant: Client) -> None:
    """3scale weakness 14: the operator makes a second product of the new name, and forgets the first."""
    await bare_shop.product()
    await passes.settled(bare_shop)
    made = {each["system_name"]: each["id"] for each in tenant.list("services")}

    await bare_shop.change(PRODUCT, "goods", {"systemName": "wares", "description": "Other"})
    await rounds(passes, bare_shop)
    assert {each["system_name"]: each["id"] for each in tenant.list("services")} == made
    assert true_conditions(await bare_shop.get(PRODUCT, "goods") or {}) == {"Invalid", "Failed"}
    assert await bare_shop.message(PRODUCT, "goods", "Invalid") == (
        f'spec.systemName: Invalid value: "wares": SystemName is immutable: product {made["goods"]} is called goods in '
        "3scale."
    )

    await bare_shop.change(PRODUCT, "goods", {"systemName": "goods"})
    await passes.settled(bare_shop)
    (service,) = [each for each in tenant.list("services") if each["system_name"] == "goods"]
    assert service["description"] == "Other"


async def test_states_and_observed_generations_are_shown(bare_shop: Shop, passes: Passes) -> None:
    """3scale weakness 20: `state` is never filled, and some kinds do not say which spec they speak of."""
    await everything(bare_shop)
    await passes.settled(bare_shop)
    product = await bare_shop.get(PRODUCT, "goods") or {}
    assert product["status"]["state"] == "incomplete"
    assert (await bare_shop.get(APPLICATION, "till") or {})["status"]["state"] == "live"
    for kind in CUSTOM_KINDS:
        for each in (await passes.kube.list(kind, bare_shop.namespace)).items:
            generation = each["metadata"]["generation"]  # type: ignore[index]
            assert each["status"].get("observedGeneration", generation) == generation  # type: ignore[attr-defined]
