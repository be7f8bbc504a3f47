"""Developer accounts, users and applications of the simulator."""

from __future__ import annotations

from typing import Any

import pytest
from threescale_process import Client, fresh

from localcloud.threescale.control import ThreescaleControl

pytestmark = pytest.mark.integration

TAKEN = ["has already been taken"]


def users(client: Client, account: Any) -> list[Any]:
    return client.list(f"accounts/{account['id']}/users")


def test_a_signup_makes_account_and_admin_together(client: Client) -> None:
    account = client.account(annotations={"managed_by": "operator"})
    (user,) = users(client, account)

    assert (account["state"], account["annotations"]) == ("approved", {"managed_by": "operator"})
    assert (account["monthly_billing_enabled"], account["credit_card_stored"]) == (True, False)
    assert (user["state"], user["role"]) == ("active", "admin")


def test_a_signup_needs_little(client: Client) -> None:
    name = fresh("tiny").replace(" ", "")
    account = client.post("signup", org_name=name, username=name)
    (user,) = users(client, account)

    assert (user["username"], user["email"], user["state"]) == (name, None, "pending")
    assert client.refused("POST", "signup", {})[1]["errors"] == {
        "org_name": ["can't be blank"],
        "username": ["can't be blank"],
    }


def test_the_required_fields_of_a_signup_are_decided_by_fields_definitions(tenant: Client) -> None:
    tenant.post("fields_definitions", target="Account", name="vat_code", label="VAT", required=True)
    body = {"org_name": "Org", "username": "someone"}
    assert tenant.refused("POST", "signup", body) == (422, {"errors": {"vat_code": ["can't be blank"]}})

    assert tenant.post("signup", **body, vat_code="42")["vat_code"] == "42"


def test_a_field_has_the_choices_that_it_is_given(tenant: Client) -> None:
    body = {"target": "User", "name": "colour", "label": "Colour", "choices": ["red", "blue"]}
    made = tenant.post("fields_definitions", **body)
    assert (made["choices"], made["required"], made["hidden"], made["read_only"]) == (["red", "blue"], *[False] * 3)

    changed = tenant.put(f"fields_definitions/{made['id']}", choices=["green"], label="Shade")
    assert (changed["choices"], changed["label"]) == (["green"], "Shade")


@pytest.mark.parametrize(
    ("field", "errors"),
    [
        ({}, {"target": ["can't be blank"], "name": ["can't be blank"], "label": ["can't be blank"]}),
        ({"target": "Nobody", "name": "x1", "label": "X"}, {"target": ["is not included in the list"]}),
        ({"target": "Account", "name": "org_name", "label": "X"}, {"name": TAKEN}),
    ],
)
def test_a_field_of_nothing_or_of_a_taken_name_is_refused(field: Any, errors: Any, client: Client) -> None:
    assert client.refused("POST", "fields_definitions", field) == (422, {"errors": errors})


def test_a_field_of_an_application_is_stored_and_shown(tenant: Client) -> None:
    tenant.post("fields_definitions", target="Cinstance", name="team", label="Team")
    account, plan = tenant.account(), tenant.plan(tenant.service())
    path = f"accounts/{account['id']}/applications"
    made = tenant.post(path, plan_id=plan["id"], name="App", description="It sells", team="blue")

    assert made["team"] == "blue"
    assert tenant.put(f"{path}/{made['id']}", team="red")["team"] == "red"


def test_a_user_may_come_without_a_password(client: Client) -> None:
    own = f"accounts/{client.account()['id']}/users"
    name = fresh("silent").replace(" ", "")
    made = client.post(own, username=name, email=f"{name}@example.com")

    assert (made["username"], made["state"], made["role"]) == (name, "pending", "member")
    assert client.put(f"{own}/{made['id']}/activate")["state"] == "active"
    assert client.refused("POST", own, {}) == (
        422,
        {"errors": {"username": ["can't be blank"], "email": ["can't be blank"]}},
    )


def test_names_and_addresses_are_unique_among_a_tenants_developers(client: Client, tenant: Client) -> None:
    account = client.account()
    (user,) = users(client, account)
    same = {"org_name": "x", "username": user["username"], "email": user["email"], "password": "secret123"}

    assert client.refused("POST", "signup", same) == (422, {"errors": {"username": TAKEN, "email": TAKEN}})
    assert tenant.post("signup", **same)["state"] == "approved"


def test_a_developer_may_be_called_as_the_tenants_own_admin_is(tenant: Client) -> None:
    (admin,) = tenant.list("users")
    made = tenant.post("signup", org_name="Org", username=admin["username"], email=admin["email"])

    assert tenant.get("accounts/find", username=admin["username"])["account"]["id"] == made["id"]


def test_an_account_is_found_by_its_user_with_a_body_on_get(client: Client) -> None:
    account = client.account()
    (user,) = users(client, account)

    for wanted in ({"username": user["username"]}, {"email": user["email"]}, {"user_id": user["id"]}):
        by_body = client.call("GET", "accounts/find", wanted)
        assert by_body.json()["account"]["id"] == account["id"]
        assert client.get("accounts/find", **wanted)["account"]["id"] == account["id"]
    assert client.refused("GET", "accounts/find", {"username": "nobody"})[0] == 404


def test_an_account_is_changed_and_gone_with_all_it_has(client: Client) -> None:
    service = client.service()
    plan, account = client.plan(service), client.account()
    client.post(f"accounts/{account['id']}/applications", plan_id=plan["id"], name="App")
    changed = client.put(f"accounts/{account['id']}", org_name="Other", monthly_charging_enabled=False)
    assert (changed["org_name"], changed["monthly_charging_enabled"]) == ("Other", False)
    client.delete(f"accounts/{account['id']}")

    assert client.refused("GET", f"accounts/{account['id']}")[0] == 404
    assert client.list("applications", plan_id=plan["id"]) == []
    client.delete(f"services/{service['id']}/application_plans/{plan['id']}")


def test_open_invoices_keep_an_account(client: Client, control: ThreescaleControl) -> None:
    account = client.account()
    control.config(unresolved_invoices=[account["id"]])

    assert client.refused("DELETE", f"accounts/{account['id']}")[0] == 403


def test_events_lead_an_account_through_its_states(client: Client) -> None:
    own = f"accounts/{client.account()['id']}"
    assert client.put(f"{own}/make_pending")["state"] == "pending"
    assert client.put(f"{own}/reject")["state"] == "rejected"
    assert client.put(f"{own}/approve")["state"] == "approved"
    status, body = client.refused("PUT", f"{own}/approve")

    assert (status, body["error"]["from"], body["error"]["event"]) == (422, "approved", "approve")


def test_a_user_made_later_is_pending_and_a_member(client: Client) -> None:
    account = client.account()
    own = f"accounts/{account['id']}/users"
    name = fresh("user").replace(" ", "")
    made = client.post(own, username=name, email=f"{name}@example.com", password="secret123", role="admin")
    assert (made["state"], made["role"]) == ("pending", "member")
    assert client.put(f"{own}/{made['id']}/activate")["state"] == "active"
    assert client.put(f"{own}/{made['id']}/admin")["role"] == "admin"
    assert client.put(f"{own}/{made['id']}/suspend")["state"] == "suspended"
    assert client.put(f"{own}/{made['id']}/unsuspend")["state"] == "active"

    status, body = client.refused("PUT", f"{own}/{made['id']}/activate")
    assert (status, body["error"]["from"]) == (422, "active")
    assert [each["id"] for each in client.list(own, role="admin", state="active")][-1] == made["id"]


@pytest.mark.parametrize(
    ("sent", "field"),
    [({"username": "ab"}, "username"), ({"username": "a" * 41}, "username"), ({"email": "nowhere"}, "email")],
)
def test_a_malformed_user_is_refused(client: Client, sent: dict[str, str], field: str) -> None:
    own = f"accounts/{client.account()['id']}/users"
    good = {"username": "goodname", "email": "good@example.com", "password": "secret123"}
    status, body = client.refused("POST", own, {**good, **sent})

    assert (status, set(body["errors"])) == (422, {field})


def test_the_last_admin_cannot_be_deleted(client: Client) -> None:
    account = client.account()
    (admin,) = users(client, account)
    refused = client.refused("DELETE", f"accounts/{account['id']}/users/{admin['id']}")

    assert refused == (403, {"errors": {"base": ["Can't delete last admin"]}})


def application(client: Client, version: str, **more: Any) -> tuple[Any, str]:
    """A new application of a product with this way to authenticate, and where it is."""
    service = client.service(backend_version=version)
    plan, account = client.plan(service), client.account()
    made = client.post(f"accounts/{account['id']}/applications", plan_id=plan["id"], name="App", **more)
    return made, f"accounts/{account['id']}/applications/{made['id']}"


def test_an_application_with_user_key_has_one(client: Client) -> None:
    made, own = application(client, "1")

    assert (made["state"], made["enabled"]) == ("live", True)
    assert made["user_key"]
    assert "application_id" not in made
    assert client.put(own, user_key="mine-0001")["user_key"] == "mine-0001"
    assert client.get("applications/find", user_key="mine-0001")["application"]["id"] == made["id"]


def test_an_application_with_app_id_has_keys(client: Client) -> None:
    made, own = application(client, "2", application_id="my-app-id", application_key="my-app-key")

    assert made["application_id"] == "my-app-id"
    assert "user_key" not in made
    assert [each["value"] for each in client.list(f"{own}/keys")] == ["my-app-key"]


def test_keys_are_made_up_where_none_is_given(client: Client) -> None:
    made, own = application(client, "2")

    assert made["application_id"]
    assert len(client.list(f"{own}/keys")) == 1


def test_an_application_has_at_most_five_keys(client: Client) -> None:
    made, own = application(client, "2", application_key="key-0.one")
    assert client.post(f"{own}/keys", key="key-1")["id"] == made["id"]
    assert client.refused("POST", f"{own}/keys", {"key": "key-1"}) == (422, {"errors": {"value": TAKEN}})
    for number in (2, 3, 4):
        client.post(f"{own}/keys", key=f"key-{number}")

    assert client.refused("POST", f"{own}/keys", {"key": "key-5"}) == (422, {"errors": {"base": ["Limit reached"]}})
    client.delete(f"{own}/keys/key-0.one")
    assert [each["value"] for each in client.list(f"{own}/keys")] == ["key-1", "key-2", "key-3", "key-4"]


def test_an_application_with_oidc_shows_its_first_key_as_secret(client: Client) -> None:
    made, own = application(client, "oidc", application_id="client-1", application_key="secret-1")

    assert (made["client_id"], made["client_secret"]) == ("client-1", "secret-1")
    assert made["oidc_configuration"]["standard_flow_enabled"] is True
    assert client.refused("POST", f"{own}/keys", {"key": "key-2"})[1] == {"errors": {"base": ["Limit reached"]}}


def test_credentials_are_unique_in_a_product(client: Client) -> None:
    service = client.service()
    plan, account = client.plan(service), client.account()
    own = f"accounts/{account['id']}/applications"
    client.post(own, plan_id=plan["id"], name="App", user_key="same-key")
    again = {"plan_id": plan["id"], "name": "App", "user_key": "same-key"}

    assert client.refused("POST", own, again) == (422, {"errors": {"user_key": TAKEN}})


def test_events_lead_an_application_through_its_states(client: Client) -> None:
    made, own = application(client, "1")
    suspended = client.put(f"{own}/suspend")
    assert (suspended["state"], suspended["enabled"]) == ("suspended", False)
    status, body = client.refused("PUT", f"{own}/suspend")
    assert (status, body["error"]["object"]["application"]["id"]) == (422, made["id"])

    assert client.put(f"{own}/resume")["state"] == "live"


def test_an_application_waits_where_its_plan_needs_approval(client: Client) -> None:
    service = client.service()
    plan, account = client.plan(service, approval_required=True), client.account()
    made = client.post(f"accounts/{account['id']}/applications", plan_id=plan["id"], name="App")
    assert made["state"] == "pending"

    assert client.put(f"accounts/{account['id']}/applications/{made['id']}/accept")["state"] == "live"


def test_a_plan_is_changed_within_the_product_only(client: Client) -> None:
    service = client.service()
    plan, other, foreign = client.plan(service), client.plan(service), client.plan(client.service())
    own = f"accounts/{client.account()['id']}/applications"
    made = client.post(own, plan_id=plan["id"], name="App")
    answered = client.put(f"{own}/{made['id']}/change_plan", plan_id=other["id"])

    assert (answered["id"], answered["name"]) == (other["id"], other["name"])
    assert client.get(f"{own}/{made['id']}")["application"]["plan_id"] == other["id"]
    assert client.refused("PUT", f"{own}/{made['id']}/change_plan", {"plan_id": foreign["id"]})[0] == 422


def test_applications_go_with_their_product(client: Client) -> None:
    service = client.service()
    plan, account = client.plan(service), client.account()
    client.post(f"accounts/{account['id']}/applications", plan_id=plan["id"], name="App")
    client.delete(f"services/{service['id']}")

    assert client.list(f"accounts/{account['id']}/applications") == []
    assert client.list("applications", plan_id=plan["id"]) == []


def test_applications_of_all_accounts_are_listed_in_pages(tenant: Client) -> None:
    plan = tenant.plan(tenant.service())
    for _ in range(3):
        tenant.post(f"accounts/{tenant.account()['id']}/applications", plan_id=plan["id"], name="App")
    page = tenant.get("applications", per_page=2, page=2)

    assert len(page["applications"]) == 2
    assert page["metadata"]["total_entries"] == 4  # the sample's is one of them


def test_the_first_application_subscribes_the_account(client: Client) -> None:
    account = client.account()
    service = client.service()  # after the signup, which subscribed to what there was
    own = f"accounts/{account['id']}/service_subscriptions"
    assert service["id"] not in [each["service_id"] for each in client.list(own)]
    client.post(f"accounts/{account['id']}/applications", plan_id=client.plan(service)["id"], name="App")

    assert service["id"] in [each["service_id"] for each in client.list(own)]


def test_a_signup_subscribes_to_every_default_service_plan(tenant: Client) -> None:
    tenant.service()
    account = tenant.account()

    assert len(tenant.list(f"accounts/{account['id']}/service_subscriptions")) == 2
