"""The master, its tenants, and what belongs to a tenant as a whole."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from threescale_process import Client, fresh

from localcloud.threescale.control import ThreescaleControl

pytestmark = pytest.mark.integration

TAKEN = ["has already been taken"]
MASTER = "/master/api/providers.json"
SPEC = {"openapi": "3.0.2", "info": {"title": "Echo", "version": "1"}, "paths": {}}


def provider(master: Client, **more: Any) -> Any:
    name = fresh("Org")
    body = {"org_name": name, "username": "admin", "email": "admin@example.com", "password": "secret123", **more}
    return master.post(MASTER, **body)


def test_a_tenant_is_open_at_once_with_the_token_of_its_creation(master: Client) -> None:
    made = provider(master, annotations={"managed_by": "operator"})
    account, token = made["account"], made["access_token"]
    own = Client(account["admin_base_url"], token["value"])

    assert (account["state"], account["annotations"]) == ("approved", {"managed_by": "operator"})
    assert account["admin_domain"].endswith("-admin.3scale.localhost")
    assert (token["permission"], "account_management" in token["scopes"]) == ("rw", True)
    assert [each["system_name"] for each in own.list("services")] == ["api"]
    assert own.get("provider")["account"]["id"] == account["id"]
    assert [(each["username"], each["role"], each["state"]) for each in own.list("users")] == [
        ("admin", "admin", "active")
    ]
    own.close()


def test_a_new_tenant_has_a_sample_of_a_developer(master: Client) -> None:
    made = provider(master)
    own = Client(made["account"]["admin_base_url"], made["access_token"]["value"])
    (api,), (account,) = own.list("services"), own.list("accounts")
    (john,) = own.list(f"accounts/{account['id']}/users")
    (application,) = own.list(f"accounts/{account['id']}/applications")

    assert (account["org_name"], account["state"], account["annotations"]) == ("Developer", "approved", {})
    assert (john["username"], john["state"], john["role"]) == ("john", "active", "admin")
    assert own.get("accounts/find", username="john")["account"]["id"] == account["id"]
    assert [each["name"] for each in own.list(f"services/{api['id']}/application_plans")] == ["Basic", "Unlimited"]
    assert (application["name"], application["plan_name"]) == ("Developer's App", "Basic")
    assert (application["service_id"], application["state"]) == (api["id"], "live")
    own.close()


def test_the_token_of_a_tenant_is_shown_only_once(master: Client) -> None:
    made = provider(master)

    assert made["access_token"]["value"] not in master.call("GET", f"{MASTER[:-5]}/{made['account']['id']}.json").text


def test_tenants_do_not_see_each_other(master: Client) -> None:
    one, other = (
        Client(made["account"]["admin_base_url"], made["access_token"]["value"])
        for made in (provider(master), provider(master))
    )
    service = one.service()

    assert other.refused("GET", f"services/{service['id']}")[0] == 404
    assert len(other.list("services")) == 1
    one.close()
    other.close()


def test_the_master_refuses_a_wrong_token_with_401(master: Client) -> None:
    answer = httpx.get(f"{master.url}/master/api/providers/2.json", auth=("", "wrong"), trust_env=False)

    assert (answer.status_code, answer.text) == (401, "unauthorized")


def test_a_tenants_address_has_no_master_api(client: Client) -> None:
    assert client.refused("GET", "/master/api/providers/2.json")[0] == 404


def test_users_of_a_tenant_are_reached_through_the_master(master: Client) -> None:
    account = provider(master)["account"]
    (user,) = master.list(f"accounts/{account['id']}/users")

    assert (user["username"], user["role"]) == ("admin", "admin")
    made = master.post(
        f"accounts/{account['id']}/users", username="second", email="s@example.com", password="secret123"
    )
    assert master.put(f"accounts/{account['id']}/users/{made['id']}/activate")["state"] == "active"


def test_a_tenant_is_changed_and_bad_addresses_are_refused(master: Client) -> None:
    own = f"/master/api/providers/{provider(master)['account']['id']}.json"
    assert (
        master.put(own, from_email="me@example.com", site_access_code="x")["account"]["from_email"] == "me@example.com"
    )

    assert master.refused("PUT", own, {"support_email": "nowhere"}) == (
        422,
        {"errors": {"support_email": ["is invalid"]}},
    )


def test_a_deletion_of_a_tenant_is_scheduled_once(master: Client) -> None:
    made = provider(master)
    own = f"/master/api/providers/{made['account']['id']}.json"
    master.delete(own)
    gone = Client(made["account"]["admin_base_url"], made["access_token"]["value"])

    account = master.get(own)["signup"]["account"]
    assert account["state"] == "scheduled_for_deletion"
    assert account["deletion_date"] > account["created_at"]
    assert master.refused("DELETE", own)[0] == 422
    assert gone.refused("GET", "services") == (403, "")
    gone.close()


def test_new_tenants_may_get_a_token_without_the_registry(master: Client, control: ThreescaleControl) -> None:
    control.config(tenant_token_scopes=["account_management"])
    made = provider(master)
    own = Client(made["account"]["admin_base_url"], made["access_token"]["value"])

    assert own.refused("GET", "registry/policies")[0] == 403
    own.close()


def test_the_master_has_no_products(master: Client) -> None:
    assert master.refused("POST", "services", {"name": "Never"}) == (403, "")


def test_a_token_shows_its_value_when_it_is_made_and_never_again(client: Client) -> None:
    made = client.post("personal/access_tokens", name="mine", permission="ro", scopes=["account_management"])
    own = f"personal/access_tokens/{made['id']}"

    assert made["value"]
    assert "value" not in client.get(own)["access_token"]
    client.delete(own)
    assert client.refused("GET", own)[0] == 404


def test_a_document_is_stored_with_its_body_and_its_product(client: Client) -> None:
    service = client.service()
    body = json.dumps(SPEC)
    name = fresh("Doc").replace(" ", "").lower()
    made = client.post("active_docs", name=name, system_name=name, body=body, service_id=service["id"], published=True)
    assert (made["service_id"], made["published"], made["body"]) == (service["id"], True, body)
    assert made["id"] in [each["id"] for each in client.list("active_docs")]
    released = client.put(f"active_docs/{made['id']}", service_id=None)
    assert released["service_id"] is None
    again = {"name": "x", "system_name": name, "body": body}
    assert client.refused("POST", "active_docs", again) == (422, {"errors": {"system_name": TAKEN}})

    client.delete(f"active_docs/{made['id']}")
    assert client.refused("GET", f"active_docs/{made['id']}")[0] == 404


def test_a_document_that_is_none_is_refused_unless_asked_for(client: Client) -> None:
    name = fresh("Doc").replace(" ", "").lower()
    odd = {"name": name, "body": "{}"}

    assert set(client.refused("POST", "active_docs", odd)[1]["errors"]) == {"body"}
    assert client.post("active_docs", **odd, skip_swagger_validations=True)["id"]


def test_a_document_of_a_foreign_product_is_refused(client: Client, tenant: Client) -> None:
    foreign = tenant.service()
    sent = {"name": fresh("Doc"), "body": json.dumps(SPEC), "service_id": foreign["id"]}

    assert client.refused("POST", "active_docs", sent) == (422, {"error": "Service not found"})


def policy(**more: Any) -> dict[str, Any]:
    name = fresh("policy").replace(" ", "_")
    schema = {
        "name": name,
        "version": "1.0",
        "summary": "It does",
        "$schema": "http://apicast.io/policy-v1/schema#manifest#",
        "configuration": {"type": "object"},
    }
    return {"name": name, "version": "1.0", "schema": schema, **more}


def test_a_policy_is_registered_once_per_version(client: Client) -> None:
    request = policy()
    made = client.post("registry/policies", **request)
    assert (made["name"], made["version"], made["schema"]) == (request["name"], "1.0", request["schema"])
    assert client.refused("POST", "registry/policies", request) == (422, {"errors": {"version": TAKEN}})

    client.delete(f"registry/policies/{made['id']}")
    assert made["id"] not in [each["id"] for each in client.list("registry/policies")]


@pytest.mark.parametrize(
    "change", [{"version": "2.0"}, {"version": "builtin"}, {"schema": {"name": "x"}}, {"schema": None}]
)
def test_a_policy_whose_schema_does_not_fit_is_refused(client: Client, change: dict[str, Any]) -> None:
    assert client.refused("POST", "registry/policies", policy(**change))[0] == 422


def test_a_policy_in_a_chain_is_unchanged(client: Client) -> None:
    made = client.post("registry/policies", **policy())
    chain = f"services/{client.service()['id']}/proxy/policies"
    client.put(chain, policies_config=[{"name": made["name"], "version": "1.0", "configuration": {}, "enabled": True}])

    assert client.refused("DELETE", f"registry/policies/{made['id']}")[0] == 403
    assert client.refused("PUT", f"registry/policies/{made['id']}", {"schema": made["schema"]})[0] == 422
    client.put(chain, policies_config=[])
    client.delete(f"registry/policies/{made['id']}")


def test_features_are_stored_per_product(client: Client) -> None:
    own = f"services/{client.service()['id']}/features"
    made = client.post(own, name="Fast", scope="ApplicationPlan")
    assert (made["system_name"], made["visible"]) == ("fast", True)
    assert client.put(f"{own}/{made['id']}", visible=False)["visible"] is False
    client.delete(f"{own}/{made['id']}")

    assert client.list(own) == []


def test_the_status_of_an_object_is_shown_for_four_kinds_only(client: Client) -> None:
    ask = {"object_type": "metric", "object_id": 1}

    assert client.call("GET", "objects/status", params=ask).status_code == 403
    there = client.call("GET", "objects/status", params={"object_type": "account", "object_id": client.account()["id"]})
    assert (there.status_code, there.content) == (200, b"")
