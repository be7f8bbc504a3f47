"""Plans, limits and prices of the simulator."""

from __future__ import annotations

from typing import Any

import pytest
from threescale_process import Client, fresh

pytestmark = pytest.mark.integration

TAKEN = ["has already been taken"]


def test_a_new_plan_is_hidden_and_costs_nothing(client: Client) -> None:
    plan = client.plan(client.service(), name="Basic Plan")

    assert (plan["state"], plan["system_name"], plan["default"]) == ("hidden", "basic_plan", False)
    assert (plan["setup_fee"], plan["cost_per_month"], plan["trial_period_days"]) == (0.0, 0.0, 0)


def test_money_comes_back_as_numbers(client: Client) -> None:
    plan = client.plan(client.service(), setup_fee="10.00", cost_per_month="15.45", trial_period_days="3")

    assert (plan["setup_fee"], plan["cost_per_month"], plan["trial_period_days"]) == (10.0, 15.45, 3)


def test_plans_are_listed_under_plans(client: Client) -> None:
    service = client.service()
    client.plan(service)

    assert set(client.get(f"services/{service['id']}/application_plans")) == {"plans"}
    assert set(client.get(f"services/{service['id']}/application_plans")["plans"][0]) == {"application_plan"}


def test_a_plan_is_published_and_hidden_by_events(client: Client) -> None:
    service = client.service()
    plan = client.plan(service, state_event="publish")
    own = f"services/{service['id']}/application_plans/{plan['id']}"
    assert plan["state"] == "published"
    assert client.put(own, state_event="hide")["state"] == "hidden"

    assert client.refused("PUT", own, {"state_event": "explode"}) == (422, {"errors": {"state_event": ["invalid"]}})
    assert client.refused("PUT", own, {"state_event": "hide"})[0] == 422


def test_a_system_name_of_a_plan_is_unique_in_its_product(client: Client) -> None:
    service, other = client.service(), client.service()
    client.plan(service, system_name="gold")

    refused = client.refused(
        "POST", f"services/{service['id']}/application_plans", {"name": "x", "system_name": "gold"}
    )
    assert refused == (422, {"errors": {"system_name": TAKEN}})
    assert client.plan(other, system_name="gold")


def test_one_plan_of_a_product_is_the_default(client: Client) -> None:
    service = client.service()
    own = f"services/{service['id']}/application_plans"
    first, second = client.plan(service), client.plan(service)
    client.put(f"{own}/{first['id']}/default")
    client.put(f"{own}/{second['id']}/default")

    assert [each["id"] for each in client.list(own) if each["default"]] == [second["id"]]


def test_a_plan_with_applications_cannot_be_deleted(client: Client) -> None:
    service = client.service()
    plan = client.plan(service)
    account = client.account()
    application = client.post(f"accounts/{account['id']}/applications", plan_id=plan["id"], name="App")
    own = f"services/{service['id']}/application_plans/{plan['id']}"
    message = "This application plan cannot be deleted! At least one application depends on it."

    assert client.refused("DELETE", own) == (403, {"errors": {"base": [message]}})
    client.delete(f"accounts/{account['id']}/applications/{application['id']}")
    client.delete(own)


def test_a_plan_takes_one_limit_per_period_and_metric(client: Client) -> None:
    service = client.service()
    plan, hits = client.plan(service), client.hits(f"services/{service['id']}")
    own = f"application_plans/{plan['id']}/metrics/{hits['id']}/limits"
    limit = client.post(own, period="day", value="5")

    assert (limit["value"], limit["plan_id"], limit["metric_id"]) == (5, plan["id"], hits["id"])
    assert client.refused("POST", own, {"period": "day", "value": 6}) == (422, {"errors": {"period": TAKEN}})
    assert client.put(f"{own}/{limit['id']}", value=7)["value"] == 7
    assert [each["value"] for each in client.list(f"application_plans/{plan['id']}/limits")] == [7]


@pytest.mark.parametrize(
    ("sent", "field", "message"),
    [
        ({"period": "decade", "value": 1}, "period", "is not included in the list"),
        ({"period": "day", "value": "x"}, "value", "is not a number"),
        ({"period": "day"}, "value", "can't be blank"),
    ],
)
def test_a_limit_that_means_nothing_is_refused(client: Client, sent: dict[str, Any], field: str, message: str) -> None:
    service = client.service()
    plan, hits = client.plan(service), client.hits(f"services/{service['id']}")
    refused = client.refused("POST", f"application_plans/{plan['id']}/metrics/{hits['id']}/limits", sent)

    assert refused == (422, {"errors": {field: [message]}})


def test_a_plan_limits_metrics_of_its_product_and_of_used_backends_only(client: Client) -> None:
    service, backend = client.service(), client.backend()
    plan, its = client.plan(service), client.hits(f"backend_apis/{backend['id']}")
    own = f"application_plans/{plan['id']}/metrics/{its['id']}/limits"
    assert client.refused("POST", own, {"period": "day", "value": 1})[0] == 404
    client.post(f"services/{service['id']}/backend_usages", backend_api_id=backend["id"])

    assert client.post(own, period="day", value=1)["metric_id"] == its["id"]


@pytest.mark.parametrize(
    ("sent", "returned"),
    [("20", "20.0"), ("15.40", "15.4"), ("15.45", "15.45"), (20, "20.0"), ("0", "0.0"), (100, "100.0")],
)
def test_a_price_comes_back_as_short_text(client: Client, sent: object, returned: str) -> None:
    service = client.service()
    plan, hits = client.plan(service), client.hits(f"services/{service['id']}")
    own = f"application_plans/{plan['id']}/metrics/{hits['id']}/pricing_rules"

    assert client.post(own, min=1, max=10, cost_per_unit=sent)["cost_per_unit"] == returned


@pytest.mark.parametrize(
    ("sent", "field", "message"),
    [
        ({"min": 0, "max": 5}, "min", "must be greater than or equal to 1"),
        ({"min": 9, "max": 5}, "max", "'To' value cannot be less than your 'From' value"),
        (
            {"min": 10, "max": 20},
            "min",
            "The 'From' value must be greater than the 'To' values of other existing rules",
        ),
        ({"min": 5}, "min", "The 'From' value must be greater than the 'To' values of other existing rules"),
        ({"min": 11, "max": 12, "cost_per_unit": "1.23456"}, "cost_per_unit", "can have at most 4 decimals"),
    ],
)
def test_ranges_of_prices_may_not_touch(client: Client, sent: dict[str, Any], field: str, message: str) -> None:
    service = client.service()
    plan, hits = client.plan(service), client.hits(f"services/{service['id']}")
    own = f"application_plans/{plan['id']}/metrics/{hits['id']}/pricing_rules"
    client.post(own, min=6, max=10, cost_per_unit="1")

    assert client.refused("POST", own, {"cost_per_unit": "1", **sent}) == (422, {"errors": {field: [message]}})
    client.post(own, min=11, max=20, cost_per_unit="1")


def test_plans_of_all_products_are_listed_together(tenant: Client) -> None:
    for _ in range(2):
        tenant.plan(tenant.service())

    assert len(tenant.list("application_plans")) == 4  # two are the sample's
    assert len(tenant.list("service_plans")) == 3
    assert [each["name"] for each in tenant.list("account_plans")] == ["Default"]


def test_account_plans_are_made_and_given(tenant: Client) -> None:
    plan = tenant.post("account_plans", name=fresh("Account plan"))
    account = tenant.account()
    changed = tenant.put(f"accounts/{account['id']}/change_plan", plan_id=plan["id"])

    assert changed["id"] == plan["id"]
    assert tenant.get(f"accounts/{account['id']}/plan")["account_plan"]["id"] == plan["id"]
