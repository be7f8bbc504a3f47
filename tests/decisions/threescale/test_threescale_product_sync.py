"""In which order a product's calls come, when the gateway is configured, and what a refusal holds back."""

from __future__ import annotations

from typing import Any

import pytest
from threescale_objects import APICAST, HITS

from domain.threescale.apply_response import read_product, wrote_product
from domain.threescale.calls import Read, Resource, Write
from domain.threescale.digests import digest
from domain.threescale.managed_by import MANAGED_BY
from domain.threescale.product_sync import Wanted, sync_product
from domain.threescale.remote_state import FoundMetric, FoundPlan, FoundProduct, FoundService, answers_of
from domain.threescale.resources import ProductSpec

BACKENDS = {"stock": 7}
RULES = [
    {"httpMethod": "GET", "pattern": f"/{name}", "metricMethodRef": "hits", "increment": 1} for name in ("a", "b", "c")
]


def wanted(**spec: Any) -> Wanted:
    uses = {"backendUsages": {"stock": {"path": "/"}}}
    whole = {"name": "shop", "systemName": "shop", "metrics": {"hits": HITS}, "policies": [APICAST], **uses, **spec}
    used = BACKENDS if whole["backendUsages"] else {}
    return Wanted(spec=ProductSpec.model_validate(whole), backends=used, gateway="g")


def found(**parts: Any) -> FoundProduct:
    service = FoundService(id=5, name="shop", system_name="shop", annotations={"managed_by": "operator"})
    hits = FoundMetric(id=1, system_name="hits", friendly_name="Hits", unit="hit", description="Number of API hits")
    usage = {"id": 9, "path": "/", "backend_id": 7}
    lists = {"metrics": (hits,), "rules": (), "usages": (usage,), "plans": (), "chain": (APICAST,)}
    whole = {"looked": True, "entry": service, "proxy": {}, "flow": {}, "deployed": "g", **lists}
    return FoundProduct(**{**whole, **parts})


def calls(request: Wanted, there: FoundProduct, *refused: str) -> list[str]:
    return [f"{each.method} {each.path}" for each in sync_product(request, there, 5, refused).writes]


def test_a_synced_product_asks_for_nothing() -> None:
    assert sync_product(wanted(), found(), 5).done


def test_the_gateway_is_configured_last_and_metrics_go_after_it() -> None:
    old = FoundMetric(id=2, system_name="old", friendly_name="Old", unit="1")
    metrics = (*(found().metrics or ()), old)
    rule = {"id": 3, "metric_id": 2, "pattern": "/old", "http_method": "GET", "delta": 1, "position": 1}

    assert calls(wanted(), found(metrics=metrics, rules=(rule,))) == [
        "DELETE services/5/proxy/mapping_rules/3",
        "POST services/5/proxy/deploy",
        "DELETE services/5/metrics/2",
    ]


def test_proxy_and_policies_deploy_by_themselves() -> None:
    deployment = {"apicastHosted": {"authentication": {"userkey": {"authUserKey": "key"}}}}
    cors = {"name": "cors", "version": "builtin", "enabled": True, "configuration": {}}
    desired = wanted(deployment=deployment, policies=[cors, APICAST])
    there = found(deployed="old")
    last = sync_product(desired, there, 5).writes[-1]

    assert calls(desired, there)[-2:] == ["PUT services/5/proxy", "PUT services/5/proxy/policies"]
    assert last.deploys == "g"


def test_flows_wait_for_the_deployment() -> None:
    flow = {
        "standardFlowEnabled": True,
        "implicitFlowEnabled": False,
        "serviceAccountsEnabled": False,
        "directAccessGrantsEnabled": False,
    }
    oidc = {"issuerType": "keycloak", "issuerEndpoint": "https://issuer.example.com", "authenticationFlow": flow}
    desired = wanted(deployment={"apicastHosted": {"authentication": {"oidc": oidc}}})
    service = FoundService(**{**found().entry.model_dump(), "backend_version": "oidc", "deployment_option": "hosted"})  # type: ignore[union-attr]
    proxy = {"oidc_issuer_type": "keycloak", "oidc_issuer_endpoint": "https://issuer.example.com"}

    assert calls(desired, found(entry=service, proxy=proxy)) == [
        "PATCH services/5/proxy/oidc_configuration",
        "POST services/5/proxy/deploy",
    ]


@pytest.mark.parametrize("deployment", [{}, {"apicastSelfManaged": {"authentication": {}}}])
def test_a_deployment_that_chooses_nothing_changes_nothing(deployment: dict[str, Any]) -> None:
    """The replaced operator's definitions accept it."""
    service = FoundService(
        **{**found().entry.model_dump(), "backend_version": "2", "deployment_option": "self_managed"}  # type: ignore[union-attr]
    )
    assert calls(wanted(deployment=deployment), found(entry=service)) == []


@pytest.mark.parametrize(("deployed", "deploys"), [("g", False), ("", True), ("old", True)])
def test_the_sandbox_is_updated_when_it_has_another_configuration(deployed: str, deploys: bool) -> None:
    assert bool(calls(wanted(), found(deployed=deployed))) is deploys


def test_a_product_without_backends_is_not_deployed() -> None:
    assert calls(wanted(backendUsages={}), found(usages=(), deployed="")) == []


def test_a_refused_rule_holds_back_those_behind_it_and_the_gateway() -> None:
    desired, rules = wanted(mappingRules=RULES), "POST services/5/proxy/mapping_rules"
    assert calls(desired, found()) == [rules, rules, rules, "POST services/5/proxy/deploy"]
    assert calls(desired, found(), f"{rules} GET /b at 2") == [rules]
    assert calls(wanted(mappingRules=RULES, name="Other"), found(), f"{rules} GET /a at 1") == ["PUT services/5"]


def test_rules_for_the_same_requests_are_created_in_one_round() -> None:
    """A pass has a limited number of rounds, and each makes one call of a slot."""
    writes = sync_product(wanted(mappingRules=[*RULES, *RULES]), found(), 5).writes
    assert len({each.slot for each in writes}) == len(writes) == 7


def test_a_refused_plan_holds_nothing_back() -> None:
    plan = FoundPlan(id=3, system_name="old", limits=(), pricing_rules=())
    slot = "DELETE services/5/application_plans/3 old"

    assert calls(wanted(mappingRules=RULES[:1]), found(plans=(plan,)), slot) == [
        "POST services/5/proxy/mapping_rules",
        "POST services/5/proxy/deploy",
    ]


def test_a_rule_that_counts_a_new_metric_waits_for_its_id() -> None:
    metric = {"hits": HITS, "new": {"friendlyName": "New", "unit": "1"}}
    desired = wanted(metrics=metric, mappingRules=[{**RULES[0], "metricMethodRef": "new"}])
    (creation,) = sync_product(desired, found(), 5).writes
    answer = {"metric": {"id": 44, "system_name": "new", "friendly_name": "New", "unit": "1"}}
    after = wrote_product(found(), creation, answer)
    rule, deploy = sync_product(desired, after, 5).writes

    assert rule.fields["metric_id"] == 44
    assert deploy.deploys == "g"


@pytest.mark.parametrize("named", [{}, {"name": ""}], ids=["absent", "empty"])
def test_a_plan_without_a_name_keeps_the_name_from_its_creation(named: dict[str, str]) -> None:
    desired = wanted(applicationPlans={"basic": named})
    (creation,) = sync_product(desired, found(plans=()), 5).writes
    assert creation.fields["name"] == "basic"

    plan = FoundPlan(id=3, system_name="basic", name="basic", limits=(), pricing_rules=())
    assert calls(desired, found(plans=(plan,))) == []


def test_a_metric_that_a_plan_names_and_its_backend_lacks_is_missing() -> None:
    limit = {"period": "day", "value": 1, "metricMethodRef": {"systemName": "calls", "backend": "stock"}}
    desired = wanted(applicationPlans={"basic": {"limits": [limit]}})
    plan = FoundPlan(id=3, system_name="basic", name="basic", limits=(), pricing_rules=())
    (look,) = sync_product(desired, found(plans=(plan,)), 5).reads
    assert (look.path, look.of) == ("backend_apis/7/metrics", 7)
    without = read_product(found(plans=(plan,)), look, {"metrics": []}, "shop")
    there = read_product(
        found(plans=(plan,)), look, {"metrics": [{"metric": {"id": 8, "system_name": "calls.7"}}]}, "shop"
    )

    assert sync_product(desired, without, 5).missing == ("stock/calls",)
    assert calls(desired, there) == ["POST application_plans/3/metrics/8/limits"]


def test_an_empty_value_replaces_the_default_of_a_new_product() -> None:
    userkey = {"userkey": {"security": {"secretToken": ""}, "gatewayResponse": {"errorAuthFailed": ""}}}
    (write,) = sync_product(wanted(deployment={"apicastHosted": {"authentication": userkey}}), found(), 5).writes[-1:]
    assert write.fields == {"secret_token": "", "error_auth_failed": ""}


def test_a_part_of_the_gateway_that_an_empty_answer_does_not_show_is_read_again() -> None:
    oidc = {"issuerType": "keycloak", "issuerEndpoint": "https://issuer.example.com", "authenticationFlow": {}}
    desired = wanted(deployment={"apicastHosted": {"authentication": {"oidc": oidc}}}, policies=[])
    service = found().entry
    assert service is not None
    there = found(entry=service.model_copy(update={"backend_version": "oidc", "deployment_option": "hosted"}), chain=())
    for each in sync_product(desired, there, 5).writes:
        there = wrote_product(there, each, None)

    sync = sync_product(desired, there, 5)
    assert [each.resource for each in sync.reads] == [Resource.PROXY, Resource.CHAIN, Resource.FLOW]
    assert there.deployed == "g"


def test_a_description_that_is_no_more_in_the_spec_goes() -> None:
    described = {"id": 5, "name": "shop", "system_name": "shop", "description": "It", "annotations": MANAGED_BY}
    hits = {"id": 1, "system_name": "hits", "friendly_name": "Hits", "unit": "hit", "description": "Number of API hits"}
    read = {"id": 2, "system_name": "read", "friendly_name": "Read", "description": "Reads", "parent_id": 1}
    desired = wanted(
        metrics={"hits": {"friendlyName": "Hits", "unit": "hit"}}, methods={"read": {"friendlyName": "Read"}}
    )
    there = found(entry=FoundService(**described), metrics=(FoundMetric(**hits), FoundMetric(**read)))

    writes = sync_product(desired, there, 5).writes
    assert [each.path for each in writes] == ["services/5", "services/5/metrics/1", "services/5/metrics/1/methods/2"]
    assert all(each.fields == {"description": ""} for each in writes)


def test_an_item_without_a_description_is_sent_without_one() -> None:
    metrics = {"hits": HITS, "new": {"friendlyName": "New", "unit": "1"}}
    (creation,) = sync_product(wanted(metrics=metrics), found(), 5).writes
    assert creation.fields == {"friendly_name": "New", "unit": "1", "system_name": "new"}
    (product,) = sync_product(wanted(), FoundProduct(looked=True)).writes
    assert "description" not in product.fields


def test_a_product_that_is_not_there_by_its_id_is_looked_for_by_its_name() -> None:
    by_id = Read(resource=Resource.SERVICE, path="services/5", of=5)
    lost = read_product(FoundProduct(), by_id, None, "shop")
    (by_name,) = sync_product(wanted(), lost, 5).reads
    assert by_name.path == "services"
    answer = {"services": [{"service": {"id": 4, "system_name": "x"}}, {"service": {"id": 6, "system_name": "shop"}}]}
    there = read_product(lost, by_name, answer, "shop")

    assert there.entry is not None
    assert there.entry.id == 6
    assert calls(wanted(), read_product(lost, by_name, {"services": []}, "shop")) == ["POST services"]


def test_a_change_of_the_gateway_clears_the_deployment() -> None:
    delete = Write(resource=Resource.USAGE, method="DELETE", path="services/5/backend_usages/9", id=9)
    rename = Write(resource=Resource.SERVICE, method="PUT", path="services/5", id=5, fields={"name": "Other"})

    assert wrote_product(found(), delete, None).deployed == ""
    assert wrote_product(found(), rename, {"service": {"id": 5, "name": "Other"}}).deployed == "g"


@pytest.mark.parametrize(
    "answer",
    [
        [{"metric": {"id": 1}}],
        {"metrics": [{"metric": {"id": 1}}], "metadata": {"per_page": 1}},
        {"metrics": [{"id": 1}]},
    ],
)
def test_lists_come_in_many_wrappings(answer: object) -> None:
    assert answers_of("metric", answer) == ({"id": 1},)


def test_digests_do_not_depend_on_the_order_of_names() -> None:
    one, other = ({"a": 1, "b": [wanted().spec]}, {"b": [wanted().spec], "a": 1})

    assert digest(one) == digest(other)
    assert digest(one) != digest({**one, "a": 2})
