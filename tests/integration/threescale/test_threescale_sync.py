"""Products and backends come to what is wanted, with the calls that it takes and none more, on the simulator."""

from __future__ import annotations

from typing import Any

import pytest
from threescale_carried_out import bring_backend, bring_product
from threescale_process import Client, fresh

from domain.threescale.product_sync import Wanted
from domain.threescale.remote_state import FoundBackend, FoundProduct
from domain.threescale.resources import BackendSpec, ProductSpec
from localcloud.threescale.control import ThreescaleControl

pytestmark = pytest.mark.integration

HITS = {"friendlyName": "Hits", "unit": "hit", "description": "Number of API hits"}


def names(word: str, number: int) -> list[str]:
    return [f"{word}{index}" for index in range(number)]


def backend_spec(name: str, **more: Any) -> BackendSpec:
    return BackendSpec.model_validate(
        {
            "name": name,
            "systemName": name.lower().replace(" ", ""),
            "privateBaseURL": "https://api.example.com",
            "metrics": {"hits": HITS, "calls": {"friendlyName": "Calls", "unit": "1"}},
            "methods": {"list": {"friendlyName": "List"}},
            "mappingRules": [
                {"httpMethod": "GET", "pattern": "/list", "metricMethodRef": "list", "increment": 1},
                {"httpMethod": "GET", "pattern": "/calls", "metricMethodRef": "calls", "increment": 2},
            ],
            **more,
        }
    )


def example(system_name: str, backends: dict[str, str], **more: Any) -> ProductSpec:
    """Three metrics, five methods, ten rules, two plans with three limits and two prices each, two backends."""
    methods = names("m", 5)
    limits = [
        {"period": period, "value": 10, "metricMethodRef": {"systemName": "a0"}} for period in ("day", "hour", "week")
    ]
    prices = [
        {"from": first, "to": last, "pricePerUnit": price, "metricMethodRef": {"systemName": "a1"}}
        for first, last, price in ((1, 99, "20"), (100, 199, "15.40"))
    ]
    plan = {"setupFee": "10.00", "costMonth": "5", "published": True, "limits": limits, "pricingRules": prices}
    spec = {
        "name": f"Product {system_name}",
        "systemName": system_name,
        "description": "An example",
        "deployment": {
            "apicastSelfManaged": {
                "stagingPublicBaseURL": "https://staging.example.com/api",
                "productionPublicBaseURL": "https://api.example.com",
                "authentication": {"userkey": {"authUserKey": "token", "credentials": "headers"}},
            }
        },
        "metrics": {"hits": HITS, **{name: {"friendlyName": name, "unit": "1"} for name in names("a", 3)}},
        "methods": {name: {"friendlyName": f"Method {name}"} for name in methods},
        "mappingRules": [
            {"httpMethod": "GET", "pattern": f"/{index}", "metricMethodRef": methods[index % 5], "increment": 1}
            for index in range(10)
        ],
        "backendUsages": {name: {"path": path} for name, path in backends.items()},
        "applicationPlans": {"basic": plan, "gold": {**plan, "name": "Gold", "published": False}},
        "policies": [{"name": "cors", "version": "builtin", "enabled": True, "configuration": {}}],
    }
    return ProductSpec.model_validate({**spec, **more})


def two_backends(client: Client) -> dict[str, int]:
    found = {}
    for _ in range(2):
        spec = backend_spec(fresh("backend"))
        made = bring_backend(client, spec, FoundBackend()).entry
        assert made is not None
        found[spec.system_name] = made.id
    return found


def wanted_example(client: Client, **more: Any) -> Wanted:
    backends = two_backends(client)
    paths = dict(zip(backends, ("v1", "/v2/"), strict=True))
    return Wanted(
        spec=example(fresh("p").replace(" ", ""), paths, **more), backends=backends, gateway=fresh("configuration")
    )


def test_the_example_is_made_with_few_calls_and_then_asks_for_nothing(
    client: Client, control: ThreescaleControl
) -> None:
    wanted = wanted_example(client)
    control.reset_ledger()
    found = bring_product(client, wanted, FoundProduct())
    calls = control.ledger().calls()
    assert calls <= 42, control.ledger().by_route()
    assert found.entry is not None
    control.reset_ledger()
    # As a pass that knows only the id sees it, except which configuration the sandbox has.
    again = bring_product(client, wanted, FoundProduct(deployed=found.deployed), found.entry.id)
    assert control.ledger().mutating() == 0
    assert again.plans == found.plans
    assert again.rules == found.rules
    configs = client.list(f"services/{found.entry.id}/proxy/configs/sandbox")
    rules = configs[-1]["content"]["proxy"]["proxy_rules"]
    assert [each["pattern"] for each in rules][:10] == [f"/{index}" for index in range(10)]


def test_a_metrics_friendly_name_is_one_call(client: Client, control: ThreescaleControl) -> None:
    wanted = wanted_example(client)
    found = bring_product(client, wanted, FoundProduct())
    control.reset_ledger()
    metrics = {**wanted.spec.metrics, "a0": wanted.spec.metrics["a0"].model_copy(update={"friendly_name": "Other"})}
    bring_product(
        client, wanted.model_copy(update={"spec": wanted.spec.model_copy(update={"metrics": metrics})}), found
    )

    assert control.ledger().calls() == 1


def test_a_rule_inserted_first_is_one_call_and_a_deployment(client: Client, control: ThreescaleControl) -> None:
    wanted = wanted_example(client)
    found = bring_product(client, wanted, FoundProduct())
    control.reset_ledger()
    first = wanted.spec.mapping_rules[0].model_copy(update={"pattern": "/first"})
    spec = wanted.spec.model_copy(update={"mapping_rules": (first, *wanted.spec.mapping_rules)})
    after = bring_product(client, Wanted(spec=spec, backends=wanted.backends, gateway="other"), found)

    assert control.ledger().calls() == 2
    assert after.entry is not None
    listed = client.list(f"services/{after.entry.id}/proxy/mapping_rules")
    assert [each["pattern"] for each in listed] == [rule.pattern for rule in spec.mapping_rules]


def test_drift_by_a_person_is_corrected_and_deployed(client: Client) -> None:
    wanted = wanted_example(client)
    found = bring_product(client, wanted, FoundProduct())
    assert found.entry is not None
    assert found.rules is not None
    own = f"services/{found.entry.id}"
    before = len(client.list(f"{own}/proxy/configs/sandbox"))
    client.delete(f"{own}/proxy/mapping_rules/{found.rules[0].id}")
    client.call("POST", f"{own}/proxy/deploy")
    again = bring_product(client, wanted, FoundProduct(deployed=found.deployed), found.entry.id)

    assert again.deployed == wanted.gateway
    assert len(client.list(f"{own}/proxy/mapping_rules")) == 10
    assert len(client.list(f"{own}/proxy/configs/sandbox")) == before + 2


def test_metrics_swap_their_names_and_backends_their_paths(client: Client) -> None:
    wanted = wanted_example(client)
    found = bring_product(client, wanted, FoundProduct())
    metrics = dict(wanted.spec.metrics)
    metrics["a0"], metrics["a1"] = metrics["a1"], metrics["a0"]
    paths = {name: {"path": path} for name, path in zip(wanted.backends, ("/v2", "V1"), strict=True)}
    spec = ProductSpec.model_validate(
        {**wanted.spec.model_dump(by_alias=True), "metrics": metrics, "backendUsages": paths}
    )
    after = bring_product(client, Wanted(spec=spec, backends=wanted.backends, gateway="swapped"), found)

    assert {each.system_name: each.friendly_name for each in after.metrics or ()}["a0"] == "a1"
    assert sorted(each.path for each in after.usages or ()) == ["/V1", "/v2"]


def test_a_metric_that_the_gateway_counts_goes_after_the_deployment(client: Client) -> None:
    wanted = wanted_example(client)
    found = bring_product(client, wanted, FoundProduct())
    methods = {name: each for name, each in wanted.spec.methods.items() if name != "m0"}
    rules = tuple(each for each in wanted.spec.mapping_rules if each.metric_method_ref != "m0")
    spec = wanted.spec.model_copy(update={"methods": methods, "mapping_rules": rules})
    after = bring_product(client, Wanted(spec=spec, backends=wanted.backends, gateway="smaller"), found)

    assert "m0" not in {each.system_name for each in after.metrics or ()}


def test_a_method_becomes_a_metric_of_the_same_name(client: Client) -> None:
    spec = backend_spec(fresh("backend"))
    found = bring_backend(client, spec, FoundBackend())
    metrics = {**spec.metrics, "list": spec.metrics["calls"].model_copy(update={"friendly_name": "List"})}
    after = bring_backend(client, spec.model_copy(update={"metrics": metrics, "methods": {}}), found)

    (listed,) = [each for each in after.metrics or () if each.system_name.startswith("list.")]
    assert listed.parent_id == 0
    assert len(after.rules or ()) == 2


def test_a_backend_is_the_same_with_or_without_its_port(client: Client, control: ThreescaleControl) -> None:
    spec = backend_spec(fresh("backend"))
    made = bring_backend(client, spec, FoundBackend()).entry
    assert made is not None
    control.reset_ledger()
    bring_backend(client, spec, FoundBackend(), made.id)

    assert control.ledger().mutating() == 0


def test_an_item_gone_by_its_id_is_found_by_its_name_or_made_again(client: Client) -> None:
    spec = backend_spec(fresh("backend"))
    made = bring_backend(client, spec, FoundBackend()).entry
    again = bring_backend(client, spec, FoundBackend(), 999999).entry
    assert made is not None
    assert again is not None
    assert again.id == made.id
    client.delete(f"backend_apis/{made.id}")
    remade = bring_backend(client, spec, FoundBackend(), made.id).entry
    assert remade is not None
    assert remade.id != made.id


def test_plans_take_other_terms_in_place_and_go(client: Client, control: ThreescaleControl) -> None:
    wanted = wanted_example(client)
    found = bring_product(client, wanted, FoundProduct())
    basic = wanted.spec.application_plans["basic"]
    limits = (basic.limits[0].model_copy(update={"value": 11}), *basic.limits[1:])
    prices = (basic.pricing_rules[0].model_copy(update={"to": 98}), basic.pricing_rules[1])
    changed = basic.model_copy(update={"limits": limits, "pricing_rules": prices, "published": False})
    spec = wanted.spec.model_copy(update={"application_plans": {"basic": changed}})
    control.reset_ledger()
    after = bring_product(client, Wanted(spec=spec, backends=wanted.backends, gateway=wanted.gateway), found)

    assert control.ledger().calls() == 5  # hide, delete gold, change a limit, one price out and one in
    (plan,) = after.plans or ()
    assert plan.state == "hidden"
    assert sorted(each.max for each in plan.pricing_rules or ()) == [98, 199]
