"""Each answer of the simulator has the shape that 3scale documents: its wrapper, and the wrapper of its list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from threescale_process import Client, fresh

pytestmark = pytest.mark.integration

POLICY_SCHEMA = {"$schema": "http://apicast.io/policy-v1/schema#manifest#", "name": "n", "version": "1", "summary": "s"}
DOCUMENT = '{"openapi": "3.0.2", "info": {"title": "t", "version": "1"}, "paths": {}}'


class Shape(NamedTuple):
    """How one resource is answered; `entries` is "" for a bare list, None where there is no list."""

    path: Callable[[Client], str]
    wrapper: str
    entries: str | None
    fields: set[str]
    has_item: bool = True


def with_metric(client: Client) -> str:
    return f"services/{client.service()['id']}/metrics"


def with_method(client: Client) -> str:
    own = f"services/{client.service()['id']}"
    path = f"{own}/metrics/{client.hits(own)['id']}/methods"
    client.post(path, friendly_name="One", system_name="one")
    return path


def with_rule(client: Client) -> str:
    service = client.service()
    hits = client.hits(f"services/{service['id']}")
    path = f"services/{service['id']}/proxy/mapping_rules"
    client.post(path, http_method="GET", pattern="/one", delta=1, metric_id=hits["id"])
    return path


def with_usage(client: Client) -> str:
    return f"services/{client.used_service()['id']}/backend_usages"


def with_backend(client: Client) -> str:
    client.backend()
    return "backend_apis"


def with_plan(client: Client) -> str:
    service = client.service()
    client.plan(service)
    return f"services/{service['id']}/application_plans"


def with_limit(client: Client) -> str:
    service = client.service()
    hits = client.hits(f"services/{service['id']}")
    path = f"application_plans/{client.plan(service)['id']}/metrics/{hits['id']}/limits"
    client.post(path, period="day", value=5)
    return path


def with_price(client: Client) -> str:
    service = client.service()
    hits = client.hits(f"services/{service['id']}")
    path = f"application_plans/{client.plan(service)['id']}/metrics/{hits['id']}/pricing_rules"
    client.post(path, min=1, max=5, cost_per_unit="1.5")
    return path


def with_account(client: Client) -> str:
    client.account()
    return "accounts"


def with_user(client: Client) -> str:
    return f"accounts/{client.account()['id']}/users"


def with_application(client: Client) -> str:
    account, plan = client.account(), client.plan(client.service())
    path = f"accounts/{account['id']}/applications"
    client.post(path, plan_id=plan["id"], name="One", description="One")
    return path


def with_key(client: Client) -> str:
    account, plan = client.account(), client.plan(client.service(backend_version="2"))
    application = client.post(
        f"accounts/{account['id']}/applications", plan_id=plan["id"], name="One", description="One"
    )
    path = f"accounts/{account['id']}/applications/{application['id']}/keys"
    client.post(path, key="abcde12345")
    return path


def with_document(client: Client) -> str:
    client.post("active_docs", name=fresh("Doc"), body=DOCUMENT)
    return "active_docs"


def with_proxy_config(client: Client) -> str:
    service = client.used_service()
    client.post(f"services/{service['id']}/proxy/deploy")
    return f"services/{service['id']}/proxy/configs/sandbox"


def with_policy(client: Client) -> str:
    name = fresh("policy")
    client.post("registry/policies", name=name, version="1", schema={**POLICY_SCHEMA, "configuration": {}})
    return "registry/policies"


def names(*texts: str) -> set[str]:
    return {name for each in texts for name in each.split()}


TIMES = "created_at updated_at"
METRIC = f"id system_name friendly_name description links {TIMES}"
SHAPES = {
    "service": Shape(
        lambda client: "services",
        "service",
        "services",
        names(
            f"id name state system_name backend_version deployment_option support_email description {TIMES}",
            "intentions_required buyers_manage_apps buyers_manage_keys referrer_filters_required custom_keys_enabled",
            "buyer_key_regenerate_enabled mandatory_app_key buyer_can_select_plan buyer_plan_change_permission",
            "notification_settings annotations links",
        ),
    ),
    "metric": Shape(with_metric, "metric", "metrics", names(METRIC, "name unit")),
    "method": Shape(with_method, "method", "methods", names(METRIC, "name parent_id")),
    "mapping rule": Shape(
        with_rule,
        "mapping_rule",
        "mapping_rules",
        names(f"id metric_id pattern http_method delta position last {TIMES} links"),
    ),
    "backend": Shape(
        with_backend,
        "backend_api",
        "backend_apis",
        names(f"id name system_name description private_endpoint annotations account_id {TIMES} links"),
    ),
    "backend usage": Shape(with_usage, "backend_usage", "", names("id path service_id backend_id links")),
    "application plan": Shape(
        with_plan,
        "application_plan",
        "plans",
        names(
            "id name state setup_fee cost_per_month trial_period_days cancellation_period approval_required default",
            f"custom system_name {TIMES} links",
        ),
    ),
    "limit": Shape(with_limit, "limit", "limits", names(f"id period value metric_id plan_id {TIMES} links")),
    "pricing rule": Shape(
        with_price, "pricing_rule", "pricing_rules", names(f"id metric_id cost_per_unit min max {TIMES} links"), False
    ),
    "proxy config": Shape(
        with_proxy_config, "proxy_config", "proxy_configs", names("id version environment content"), False
    ),
    "account": Shape(
        with_account,
        "account",
        "accounts",
        names(
            "id org_name state credit_card_stored monthly_billing_enabled monthly_charging_enabled annotations",
            f"{TIMES} links",
        ),
    ),
    "user": Shape(with_user, "user", "users", names(f"id username email state role {TIMES} links")),
    "application": Shape(
        with_application,
        "application",
        "applications",
        names(
            "id name description state enabled service_id service_name plan_id plan_name account_id org_name",
            f"first_traffic_at first_daily_traffic_at user_key provider_verification_key {TIMES} links",
        ),
    ),
    "application key": Shape(with_key, "key", "keys", names(f"value {TIMES}"), False),
    "active doc": Shape(
        with_document,
        "api_doc",
        "api_docs",
        names("id system_name name description published skip_swagger_validations body", f"{TIMES} links"),
    ),
    "registry policy": Shape(with_policy, "policy", "policies", names(f"id name version schema {TIMES} links")),
}


@pytest.mark.parametrize("resource", SHAPES)
def test_a_resource_is_answered_in_its_documented_wrappers(resource: str, client: Client) -> None:
    shape = SHAPES[resource]
    path = shape.path(client)
    listed = client.get(path)
    entries: list[Any] = listed if shape.entries == "" else listed[shape.entries]

    assert isinstance(listed, list) == (shape.entries == "")
    assert {next(iter(each)) for each in entries} == {shape.wrapper}
    found = entries[-1][shape.wrapper]
    assert shape.fields <= found.keys()
    if shape.has_item:
        item = client.get(f"{path}/{found['id']}")
        assert list(item) == [shape.wrapper]
        assert shape.fields <= item[shape.wrapper].keys()


@pytest.mark.parametrize(
    ("path", "wrapper", "fields"),
    [
        (
            "proxy",
            "proxy",
            names(
                "service_id endpoint deployed_at api_backend credentials_location auth_app_key auth_app_id",
                "auth_user_key secret_token hostname_rewrite oauth_login_url sandbox_endpoint api_test_path",
                f"api_test_success policies_config deployment_option lock_version {TIMES} links",
                *(
                    f"error_{part}{of}"
                    for of in ("auth_failed", "auth_missing", "no_match", "limits_exceeded")
                    for part in ("", "status_", "headers_")
                ),
            ),
        ),
        (
            "proxy/oidc_configuration",
            "oidc_configuration",
            names(
                "id standard_flow_enabled implicit_flow_enabled service_accounts_enabled direct_access_grants_enabled"
            ),
        ),
        ("proxy/policies", "policies_config", set()),
    ],
)
def test_a_part_of_a_product_is_answered_in_its_wrapper(
    path: str, wrapper: str, fields: set[str], client: Client
) -> None:
    answer = client.get(f"services/{client.service()['id']}/{path}")

    assert list(answer) == [wrapper]
    assert isinstance(answer[wrapper], list) == (wrapper == "policies_config")
    assert not fields or fields <= answer[wrapper].keys()


def test_a_signup_and_a_search_are_answered_with_the_plain_account(client: Client) -> None:
    name = fresh("dev").lower().replace(" ", "")
    body = {"org_name": name, "username": name, "email": f"{name}@example.com", "password": "secret123"}
    made = client.call("POST", "signup", body).json()
    found = client.call("GET", "accounts/find", {"username": name}).json()

    assert (list(made), list(found)) == (["account"], ["account"])
    assert SHAPES["account"].fields <= made["account"].keys() & found["account"].keys()


def test_the_master_answers_about_a_tenant_as_about_its_signup(master: Client) -> None:
    body = {"org_name": fresh("Org"), "username": "admin", "email": "admin@example.com", "password": "secret123"}
    made = master.call("POST", "/master/api/providers.json", body).json()
    path = f"/master/api/providers/{made['signup']['account']['id']}.json"
    read, changed = master.call("GET", path).json(), master.call("PUT", path, {"support_email": "a@example.com"}).json()

    assert (list(made), sorted(made["signup"])) == (["signup"], ["access_token", "account"])
    assert (list(read), list(read["signup"])) == (["signup"], ["account"])
    assert {"id", "org_name", "state", "admin_domain", "admin_base_url", "annotations"} <= read["signup"][
        "account"
    ].keys()
    assert changed["signup"]["account"]["support_email"] == "a@example.com"
