"""Products and backends of the simulator: what comes by itself, what is rewritten, what is refused."""

from __future__ import annotations

import re
from typing import Any

import pytest
from threescale_process import Client, fresh

from localcloud.threescale.control import ThreescaleControl

pytestmark = pytest.mark.integration

TAKEN = ["has already been taken"]


def errors(answer: tuple[int, Any], status: int = 422) -> dict[str, list[str]]:
    """The complaints of a refusal of this status."""
    assert answer[0] == status, answer
    found: dict[str, list[str]] = answer[1]["errors"]
    return found


def test_a_new_product_is_not_empty(client: Client) -> None:
    made = client.service("My API (new)")
    own = f"services/{made['id']}"
    hits = client.hits(own)
    (rule,) = client.list(f"{own}/proxy/mapping_rules")
    (service_plan,) = client.list(f"{own}/service_plans")

    assert (made["state"], made["backend_version"], made["system_name"]) == ("incomplete", "1", "my_api_new")
    assert (hits["system_name"], hits["friendly_name"], hits["unit"]) == ("hits", "Hits", "hit")
    assert hits["description"] == "Number of API hits"
    assert (rule["http_method"], rule["pattern"], rule["delta"], rule["position"]) == ("GET", "/", 1, 1)
    assert rule["metric_id"] == hits["id"]
    assert (service_plan["name"], service_plan["state"], service_plan["default"]) == ("Default", "published", True)
    assert client.list(f"{own}/application_plans") == client.list(f"{own}/backend_usages") == []


def test_a_new_proxy_has_the_known_defaults(client: Client) -> None:
    proxy = client.get(f"services/{client.service()['id']}/proxy")["proxy"]

    assert (proxy["auth_user_key"], proxy["auth_app_id"], proxy["auth_app_key"]) == ("user_key", "app_id", "app_key")
    assert proxy["credentials_location"] == "query"
    statuses = [
        proxy[f"error_status_{name}"] for name in ("auth_failed", "auth_missing", "no_match", "limits_exceeded")
    ]
    assert statuses == [403, 403, 404, 429]
    assert proxy["error_no_match"] == "No Mapping Rule matched"
    assert proxy["error_headers_auth_failed"] == "text/plain; charset=us-ascii"
    assert re.fullmatch(r"Shared_secret_sent_from_proxy_to_API_backend_[0-9a-f]+", proxy["secret_token"])
    assert proxy["endpoint"].endswith(":443")
    assert proxy["sandbox_endpoint"].endswith(":443")
    assert proxy["api_backend"] is None
    assert "oidc_issuer_endpoint" not in proxy


def test_an_api_backend_makes_a_backend_and_its_usage(tenant: Client) -> None:
    service = tenant.service("My API")
    own = f"services/{service['id']}"
    proxy = tenant.put(f"{own}/proxy", api_backend="https://api.example.com")
    (backend,), (usage,) = tenant.list("backend_apis"), tenant.list(f"{own}/backend_usages")

    assert (backend["name"], backend["system_name"]) == ("My API Backend", "my_api")
    assert (backend["description"], backend["private_endpoint"]) == (
        "Backend of My API",
        "https://api.example.com:443",
    )
    assert (usage["backend_id"], usage["path"]) == (backend["id"], "/")
    assert proxy["api_backend"] is None
    assert [each["system_name"] for each in tenant.list(f"backend_apis/{backend['id']}/metrics")] == [
        f"hits.{backend['id']}"
    ]
    assert tenant.get(f"{own}/proxy/configs/sandbox/latest")["proxy_config"]["version"] == 1


def test_an_api_backend_changes_the_address_of_the_backend_that_is_used(tenant: Client) -> None:
    backend, service = tenant.backend(), tenant.service()
    own = f"services/{service['id']}"
    tenant.post(f"{own}/backend_usages", backend_api_id=backend["id"], path="/")
    tenant.put(f"{own}/proxy", proxy={"api_backend": "http://other.example.com"})
    (found,) = tenant.list("backend_apis")

    assert (found["id"], found["private_endpoint"]) == (backend["id"], "http://other.example.com:80")
    assert len(tenant.list(f"{own}/backend_usages")) == 1


def test_an_api_backend_takes_a_system_name_that_is_free(tenant: Client) -> None:
    service = tenant.service("My API")
    tenant.backend(name="My", system_name="my_api")
    tenant.put(f"services/{service['id']}/proxy", api_backend="https://api.example.com")

    first, second = tenant.list("backend_apis")
    assert first["system_name"] == "my_api"
    assert second["system_name"] not in ("", "my_api")


@pytest.mark.parametrize("address", ["ftp://api.example.com", "https://localhost", "api.example.com"])
def test_an_api_backend_without_an_address_is_refused_and_makes_nothing(address: str, tenant: Client) -> None:
    own = f"services/{tenant.service()['id']}"

    refused = tenant.refused("PUT", f"{own}/proxy", {"api_backend": address, "auth_user_key": "changed"})
    assert errors(refused) == {"api_backend": ["is invalid"]}
    assert tenant.list("backend_apis") == tenant.list(f"{own}/backend_usages") == []
    assert tenant.get(f"{own}/proxy")["proxy"]["auth_user_key"] == "user_key"


@pytest.mark.parametrize("nothing", [None, ""])
def test_an_empty_api_backend_makes_nothing(nothing: str | None, tenant: Client) -> None:
    """Clients send back what they have read, which is null."""
    own = f"services/{tenant.service()['id']}"
    tenant.put(f"{own}/proxy", api_backend=nothing)

    assert tenant.list("backend_apis") == tenant.list(f"{own}/backend_usages") == []


def test_a_self_managed_gateway_has_no_address_until_it_is_set(client: Client) -> None:
    own = f"services/{client.service(deployment_option='self_managed')['id']}/proxy"
    assert client.get(own)["proxy"]["endpoint"] is None
    answer = client.put(own, endpoint="https://gw.example.com", sandbox_endpoint="http://gw.example.com/path")

    assert answer["endpoint"] == "https://gw.example.com:443"
    assert answer["sandbox_endpoint"] == "http://gw.example.com:80/path"


def test_a_changed_deployment_option_changes_the_addresses(client: Client) -> None:
    made = client.service()
    client.put(f"services/{made['id']}", deployment_option="self_managed")
    assert client.get(f"services/{made['id']}/proxy")["proxy"]["endpoint"] is None
    client.put(f"services/{made['id']}", deployment_option="hosted")

    assert client.get(f"services/{made['id']}/proxy")["proxy"]["endpoint"]


def test_oidc_fields_show_only_with_oidc(client: Client) -> None:
    made = client.service()
    own = f"services/{made['id']}"
    client.put(f"{own}/proxy", oidc_issuer_endpoint="https://id.example.com")
    assert "oidc_issuer_endpoint" not in client.get(f"{own}/proxy")["proxy"]
    changed = client.put(own, backend_version="oidc")
    proxy = client.get(f"{own}/proxy")["proxy"]

    assert changed["backend_version"] == "oidc"
    assert (proxy["oidc_issuer_endpoint"], proxy["oidc_issuer_type"]) == ("https://id.example.com", "keycloak")


def test_a_system_name_is_taken_once_and_never_changed(client: Client) -> None:
    made = client.service()

    again = client.refused("POST", "services", {"name": "x", "system_name": made["system_name"]})
    assert errors(again) == {"system_name": TAKEN}
    assert client.put(f"services/{made['id']}", system_name="other")["system_name"] == made["system_name"]


def test_two_tenants_may_use_one_system_name(client: Client, tenant: Client) -> None:
    made = client.service()

    assert tenant.service(system_name=made["system_name"])["id"] != made["id"]


@pytest.mark.parametrize("system_name", ["a", "with blank", "ümlaut"])
def test_a_malformed_system_name_is_refused(client: Client, system_name: str) -> None:
    refused = client.refused("POST", "services", {"name": fresh("Bad"), "system_name": system_name})

    assert errors(refused) == {"system_name": ["is invalid"]}


def test_all_errors_of_a_product_are_reported_at_once(client: Client) -> None:
    refused = client.refused("POST", "services", {"name": "", "system_name": "fine", "deployment_option": "moon"})

    assert errors(refused) == {"name": ["can't be blank"], "deployment_option": ["is not included in the list"]}


def test_a_deleted_product_is_gone_at_once(client: Client) -> None:
    made = client.service()
    client.delete(f"services/{made['id']}")

    assert client.refused("GET", f"services/{made['id']}")[0] == 404
    assert made["id"] not in [each["id"] for each in client.list("services")]
    assert client.service(system_name=made["system_name"])


def test_a_slow_deletion_holds_the_system_name_and_shows_its_status(client: Client, control: ThreescaleControl) -> None:
    made = client.service()
    control.config(deletion_seconds=3600)
    client.delete(f"services/{made['id']}")
    status = {"object_type": "service", "object_id": made["id"]}

    assert client.refused("GET", f"services/{made['id']}")[0] == 404
    taken = client.refused("POST", "services", {"name": "x", "system_name": made["system_name"]})
    assert errors(taken) == {"system_name": TAKEN}
    assert client.call("GET", "objects/status", params=status).status_code == 200
    control.config(deletion_seconds=0)
    assert client.service(system_name=made["system_name"])
    assert client.call("GET", "objects/status", params=status).status_code == 404


def test_the_last_product_cannot_be_deleted(tenant: Client) -> None:
    (only,) = tenant.list("services")
    status, body = tenant.refused("DELETE", f"services/{only['id']}")

    assert (status, body["error"]["from"], body["error"]["event"]) == (422, "incomplete", "mark_as_deleted")
    assert body["error"]["object"]["service"]["id"] == only["id"]


def test_a_tenant_may_be_forbidden_more_products(client: Client, control: ThreescaleControl) -> None:
    control.config(service_limit=1)

    assert client.refused("POST", "services", {"name": fresh("Many")}) == (403, "")


def test_a_backend_has_its_port_and_its_metrics_its_id(client: Client) -> None:
    made = client.backend(private_endpoint="https://api.example.com")
    hits = client.hits(f"backend_apis/{made['id']}")
    mine = client.post(f"backend_apis/{made['id']}/metrics", friendly_name="Mine", unit="1", system_name="mine")

    assert made["private_endpoint"] == "https://api.example.com:443"
    assert hits["system_name"] == f"hits.{made['id']}"
    assert mine["system_name"] == f"mine.{made['id']}"
    assert "name" not in hits
    assert client.list(f"backend_apis/{made['id']}/mapping_rules") == []


@pytest.mark.parametrize(
    "endpoint", ["https://localhost", "ftp://api.example.com", "api.example.com", "http://127.0.0.1"]
)
def test_a_backend_leads_elsewhere(client: Client, endpoint: str) -> None:
    refused = client.refused("POST", "backend_apis", {"name": fresh("Bad"), "private_endpoint": endpoint})

    assert errors(refused) == {"private_endpoint": ["is invalid"]}


def test_a_backend_in_use_cannot_be_deleted(client: Client) -> None:
    service, backend = client.service(), client.backend()
    usage = client.post(f"services/{service['id']}/backend_usages", backend_api_id=backend["id"], path="/")
    refused = client.refused("DELETE", f"backend_apis/{backend['id']}")

    assert errors(refused, 403) == {"base": ["cannot be deleted because it is used by at least one Product"]}
    client.delete(f"services/{service['id']}/backend_usages/{usage['id']}")
    client.delete(f"backend_apis/{backend['id']}")
    assert client.refused("GET", f"backend_apis/{backend['id']}")[0] == 404


def test_usages_are_a_bare_list_with_normal_paths(client: Client) -> None:
    service = client.service()
    for path, normal in (("v1/", "/v1"), ("", "/"), ("/a/b", "/a/b")):
        made = client.post(f"services/{service['id']}/backend_usages", backend_api_id=client.backend()["id"], path=path)
        assert made["path"] == normal
    listed = client.get(f"services/{service['id']}/backend_usages")

    assert [set(entry) for entry in listed] == [{"backend_usage"}] * 3
    assert listed[0]["backend_usage"]["backend_id"]


def test_backend_and_path_are_used_once_per_product(client: Client) -> None:
    service, backend, other = client.service(), client.backend(), client.backend()
    where = f"services/{service['id']}/backend_usages"
    client.post(where, backend_api_id=backend["id"], path="/Way")

    assert errors(client.refused("POST", where, {"backend_api_id": backend["id"], "path": "/2"})) == {
        "backend_api_id": TAKEN
    }
    assert errors(client.refused("POST", where, {"backend_api_id": other["id"], "path": "way"})) == {
        "path": ["This path is already taken. Specify a different path."]
    }


def test_a_usage_takes_the_limits_on_its_metrics_with_it(client: Client) -> None:
    service, backend = client.service(), client.backend()
    usage = client.post(f"services/{service['id']}/backend_usages", backend_api_id=backend["id"], path="/")
    plan = client.plan(service)
    mine, its = client.hits(f"services/{service['id']}"), client.hits(f"backend_apis/{backend['id']}")
    for metric in (mine, its):
        client.post(f"application_plans/{plan['id']}/metrics/{metric['id']}/limits", period="day", value=5)
        client.post(f"application_plans/{plan['id']}/metrics/{metric['id']}/pricing_rules", min=1, cost_per_unit=1)
    client.delete(f"services/{service['id']}/backend_usages/{usage['id']}")

    for kind in ("limits", "pricing_rules"):
        left = client.list(f"application_plans/{plan['id']}/{kind}")
        assert [each["metric_id"] for each in left] == [mine["id"]]


def test_methods_are_metrics_under_hits(client: Client) -> None:
    own = f"services/{client.service()['id']}"
    hits = client.hits(own)
    method = client.post(f"{own}/metrics/{hits['id']}/methods", friendly_name="Get it", system_name="get_it")
    metric = client.post(f"{own}/metrics", friendly_name="Bytes", unit="byte", system_name="bytes")
    listed = {each["system_name"]: each for each in client.list(f"{own}/metrics")}

    assert [each["id"] for each in client.list(f"{own}/metrics/{hits['id']}/methods")] == [method["id"]]
    assert set(listed) == {"hits", "get_it", "bytes"}
    assert listed["get_it"]["parent_id"] == hits["id"]
    assert listed["get_it"]["unit"] == "hit"
    assert "parent_id" not in listed["bytes"]
    refused = client.refused("POST", f"{own}/metrics/{metric['id']}/methods", {"friendly_name": "Nowhere"})
    assert refused[0] == 422


def test_names_are_unique_over_metrics_and_methods(client: Client) -> None:
    own = f"services/{client.service()['id']}"
    hits = client.hits(own)
    client.post(f"{own}/metrics", friendly_name="Bytes", unit="byte", system_name="bytes")
    methods = f"{own}/metrics/{hits['id']}/methods"

    assert errors(client.refused("POST", methods, {"friendly_name": "Other", "system_name": "bytes"})) == {
        "system_name": TAKEN
    }
    assert errors(client.refused("POST", methods, {"friendly_name": "Bytes", "system_name": "other"})) == {
        "friendly_name": TAKEN
    }


def test_hits_cannot_be_deleted(client: Client) -> None:
    for owner in (f"services/{client.service()['id']}", f"backend_apis/{client.backend()['id']}"):
        refused = client.refused("DELETE", f"{owner}/metrics/{client.hits(owner)['id']}")
        assert errors(refused, 403) == {"base": ["The Hits metric cannot be deleted"]}


def test_a_metric_goes_with_what_means_it(client: Client) -> None:
    service = client.service()
    own = f"services/{service['id']}"
    metric = client.post(f"{own}/metrics", friendly_name="Bytes", unit="byte")
    plan = client.plan(service)
    client.post(f"{own}/proxy/mapping_rules", http_method="GET", pattern="/x", delta=1, metric_id=metric["id"])
    client.post(f"application_plans/{plan['id']}/metrics/{metric['id']}/limits", period="day", value=5)
    client.delete(f"{own}/metrics/{metric['id']}")

    assert [each["pattern"] for each in client.list(f"{own}/proxy/mapping_rules")] == ["/"]
    assert client.list(f"application_plans/{plan['id']}/limits") == []


def test_a_method_in_the_gateways_latest_configuration_cannot_be_deleted(client: Client) -> None:
    own = f"services/{client.used_service()['id']}"
    hits = client.hits(own)
    method = client.post(f"{own}/metrics/{hits['id']}/methods", friendly_name="Get it")
    rule = client.post(f"{own}/proxy/mapping_rules", http_method="GET", pattern="/x", delta=1, metric_id=method["id"])
    client.post(f"{own}/proxy/deploy")
    client.delete(f"{own}/proxy/mapping_rules/{rule['id']}")
    where = f"{own}/metrics/{hits['id']}/methods/{method['id']}"

    assert errors(client.refused("DELETE", where), 403) == {
        "base": ["Method is used by the latest gateway configuration and cannot be deleted"]
    }
    client.post(f"{own}/proxy/deploy")
    client.delete(where)


def rules(client: Client, own: str) -> list[tuple[str, int]]:
    return [(each["pattern"], each["position"]) for each in client.list(f"{own}/proxy/mapping_rules")]


def test_mapping_rules_are_an_ordered_list_without_gaps(client: Client) -> None:
    own = f"services/{client.service()['id']}"
    hits = client.hits(own)
    new = {"http_method": "GET", "delta": 1, "metric_id": hits["id"]}
    client.post(f"{own}/proxy/mapping_rules", **new, pattern="/last")
    first = client.post(f"{own}/proxy/mapping_rules", **new, pattern="/first", position=1)
    assert rules(client, own) == [("/first", 1), ("/", 2), ("/last", 3)]
    client.put(f"{own}/proxy/mapping_rules/{first['id']}", position=3)
    assert rules(client, own) == [("/", 1), ("/last", 2), ("/first", 3)]
    client.put(f"{own}/proxy/mapping_rules/{first['id']}", position=2)
    assert rules(client, own) == [("/", 1), ("/first", 2), ("/last", 3)]
    client.delete(f"{own}/proxy/mapping_rules/{first['id']}")

    assert rules(client, own) == [("/", 1), ("/last", 2)]


def test_a_rule_at_position_0_moves_no_other(client: Client) -> None:
    own = f"services/{client.service()['id']}"
    rule = {"http_method": "GET", "delta": 1, "metric_id": client.hits(own)["id"], "pattern": "/zero", "position": 0}
    client.post(f"{own}/proxy/mapping_rules", **rule)

    assert rules(client, own) == [("/zero", 0), ("/", 1)]


def test_a_gateway_that_3scale_runs_is_not_on_this_computer(client: Client) -> None:
    local = {"endpoint": "http://localhost:8080"}
    hosted, own = (client.service(deployment_option=option)["id"] for option in ("hosted", "self_managed"))

    assert errors(client.refused("PUT", f"services/{hosted}/proxy", local)) == {"endpoint": ["is invalid"]}
    assert client.put(f"services/{own}/proxy", **local)["endpoint"] == "http://localhost:8080"


@pytest.mark.parametrize(
    ("changed", "field", "message"),
    [
        ({"http_method": "TRACE"}, "http_method", "is not included in the list"),
        ({"http_method": "CONNECT"}, "http_method", "is not included in the list"),
        ({"delta": 0}, "delta", "must be greater than 0"),
        ({"delta": "many"}, "delta", "is not a number"),
        ({"pattern": "no/slash"}, "pattern", "is invalid"),
        ({"pattern": ""}, "pattern", "can't be blank"),
        ({"metric_id": 1}, "metric_id", "is invalid"),
    ],
)
def test_a_rule_that_3scale_does_not_take_is_refused(
    client: Client, changed: dict[str, Any], field: str, message: str
) -> None:
    own = f"services/{client.service()['id']}"
    good = {"http_method": "GET", "pattern": "/x", "delta": 1, "metric_id": client.hits(own)["id"]}

    assert errors(client.refused("POST", f"{own}/proxy/mapping_rules", {**good, **changed})) == {field: [message]}


def versions(client: Client, own: str, environment: str) -> list[int]:
    return [each["version"] for each in client.list(f"{own}/proxy/configs/{environment}")]


def test_a_product_without_backend_is_not_deployed(client: Client) -> None:
    own = f"services/{client.service()['id']}"
    answer = client.call("POST", f"{own}/proxy/deploy")

    assert answer.status_code == 201
    assert client.refused("GET", f"{own}/proxy/configs/sandbox/latest") == (404, {"status": "Not found"})


def test_a_deployment_makes_a_version_only_of_what_differs(client: Client) -> None:
    own = f"services/{client.used_service()['id']}"
    client.post(f"{own}/proxy/deploy")
    client.post(f"{own}/proxy/deploy")
    assert versions(client, own, "sandbox") == [1]
    rule = client.list(f"{own}/proxy/mapping_rules")[0]
    client.put(f"{own}/proxy/mapping_rules/{rule['id']}", pattern="/other")
    assert versions(client, own, "sandbox") == [1]
    client.post(f"{own}/proxy/deploy")

    assert versions(client, own, "staging") == [1, 2]
    latest = client.get(f"{own}/proxy/configs/sandbox/latest")["proxy_config"]
    assert [each["pattern"] for each in latest["content"]["proxy"]["proxy_rules"]] == ["/other"]


def test_a_metric_and_a_plan_show_in_the_next_deployment_limits_and_prices_never(client: Client) -> None:
    service = client.used_service()
    own = f"services/{service['id']}"
    hits, plan = client.hits(own), client.plan(service)
    client.post(f"{own}/proxy/deploy")
    terms = f"application_plans/{plan['id']}/metrics/{hits['id']}"
    client.post(f"{terms}/limits", period="day", value=3)
    client.post(f"{terms}/pricing_rules", min=1, max=2, cost_per_unit="1")
    client.post(f"{own}/proxy/deploy")
    assert versions(client, own, "sandbox") == [1]

    client.put(f"{own}/metrics/{hits['id']}", friendly_name="Calls")
    client.post(f"{own}/proxy/deploy")
    assert versions(client, own, "sandbox") == [1, 2]
    client.put(f"{own}/application_plans/{plan['id']}", setup_fee="5")
    assert versions(client, own, "sandbox") == [1, 2]
    client.post(f"{own}/proxy/deploy")
    assert versions(client, own, "sandbox") == [1, 2, 3]
    client.post(f"{own}/proxy/deploy")
    assert versions(client, own, "sandbox") == [1, 2, 3]


def test_a_change_of_proxy_or_chain_deploys_and_one_of_oidc_flags_does_not(client: Client) -> None:
    own = f"services/{client.used_service()['id']}"
    client.put(f"{own}/proxy", credentials_location="headers")
    assert versions(client, own, "sandbox") == [1]
    client.put(f"{own}/proxy", credentials_location="headers")
    assert versions(client, own, "sandbox") == [1]
    client.put(f"{own}/proxy/policies", policies_config=[{"name": "cors", "version": "builtin", "configuration": {}}])
    assert versions(client, own, "sandbox") == [1, 2]
    client.call("PATCH", f"{own}/proxy/oidc_configuration", {"implicit_flow_enabled": True})
    assert versions(client, own, "sandbox") == [1, 2]
    client.post(f"{own}/proxy/deploy")

    assert versions(client, own, "sandbox") == [1, 2, 3]


def test_a_promotion_copies_content_and_version_once(client: Client) -> None:
    own = f"services/{client.used_service()['id']}"
    client.post(f"{own}/proxy/deploy")
    where = f"{own}/proxy/configs/sandbox/1/promote"
    promoted = client.post(where, to="production")
    source = client.get(f"{own}/proxy/configs/sandbox/1")["proxy_config"]

    assert (promoted["version"], promoted["environment"]) == (1, "production")
    assert promoted["content"] == source["content"]
    assert errors(client.refused("POST", where, {"to": "production"})) == {"version": TAKEN}


def test_an_environment_that_there_is_not_is_a_bad_request(client: Client) -> None:
    own = f"services/{client.used_service()['id']}"
    client.post(f"{own}/proxy/deploy")

    assert client.refused("GET", f"{own}/proxy/configs/moon/latest") == (400, {"error": "invalid environment"})
    promote = f"{own}/proxy/configs/sandbox/1/promote"
    assert client.refused("POST", promote, {"to": "moon"}) == (400, {"error": "invalid environment"})
    assert client.refused("POST", promote, {}) == (400, "Required parameter missing: to")


def test_the_configurations_of_all_products_are_listed_together(tenant: Client) -> None:
    for _ in range(2):
        own = f"services/{tenant.used_service()['id']}"
        tenant.post(f"{own}/proxy/deploy")
    tenant.put(f"{own}/proxy", auth_user_key="key")

    assert len(tenant.list("account/proxy_configs/sandbox")) == 3
    assert len(tenant.list("account/proxy_configs/sandbox", version="latest")) == 2


def test_a_chain_always_holds_apicast(client: Client) -> None:
    own = f"services/{client.service()['id']}/proxy/policies"
    cors = {"name": "cors", "version": "builtin", "configuration": {"a": 1}, "enabled": False}
    apicast = {"name": "apicast", "version": "builtin", "configuration": {}, "enabled": True}
    assert client.get(own) == {"policies_config": [apicast]}

    assert client.put(own, policies_config=[cors]) == [cors, apicast]
    assert client.put(own, policies_config=[apicast, cors]) == [apicast, cors]


def test_a_chain_of_something_else_is_refused(client: Client) -> None:
    own = f"services/{client.service()['id']}/proxy/policies"
    bad = [{"name": "cors", "version": "builtin", "configuration": "text"}]

    assert errors(client.refused("PUT", own, {"policies_config": bad})) == {"policies_config": ["is invalid"]}
    assert client.refused("PUT", own, {}) == (400, "Required parameter missing: policies_config")


def test_a_list_may_be_late_after_a_creation(client: Client, control: ThreescaleControl) -> None:
    control.config(stale_list_seconds=3600)
    made = client.service()

    assert client.get(f"services/{made['id']}")
    assert made["id"] not in [each["id"] for each in client.list("services")]
    control.config(stale_list_seconds=0)
    assert made["id"] in [each["id"] for each in client.list("services")]
