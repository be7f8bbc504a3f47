"""What 3scale itself or a person made in a tenant, beside and below the objects of the namespace."""

from __future__ import annotations

from typing import Any

import pytest
from threescale_lab import Shop, true_conditions
from threescale_passes_lab import Passes
from threescale_process import Client
from threescale_scene import everything

from domain.identity import Kind
from domain.threescale import BACKEND, DEVELOPER_ACCOUNT, DEVELOPER_USER, PRODUCT
from domain.threescale.drift_schedule import DRIFT
from localcloud.threescale.control import ThreescaleControl

pytestmark = pytest.mark.integration

SELF_MANAGED = {
    "apicastSelfManaged": {
        "authentication": {"userkey": {"authUserKey": "token", "credentials": "headers"}},
        "stagingPublicBaseURL": "https://staging.example.com",
        "productionPublicBaseURL": "https://live.example.com",
    }
}


async def compared(shop: Shop, passes: Passes, *objects: tuple[Kind, str]) -> None:
    """Have these compared with 3scale, as a sweep that found a difference does."""
    for kind, name in objects:
        await shop.annotate(kind, name, **{DRIFT: str(passes.ahead)})
    await passes.settled(shop)


def user(name: str, account: str, **more: object) -> dict[str, Any]:
    return {
        "username": name,
        "email": f"{name}@example.com",
        "passwordCredentialsRef": {"name": "password"},
        "developerAccountRef": {"name": account},
        **more,
    }


async def developer(shop: Shop, name: str, admin: str) -> None:
    await shop.create(DEVELOPER_ACCOUNT, name, {"orgName": name})
    await shop.create(DEVELOPER_USER, admin, user(admin, name, role="admin"))


# --- the private address of a product's proxy ---


async def test_the_proxy_of_a_product_is_written_without_making_a_backend(
    bare_shop: Shop, passes: Passes, tenant: Client
) -> None:
    await bare_shop.product("alone", deployment=SELF_MANAGED)
    await bare_shop.backend()
    await bare_shop.product(deployment=SELF_MANAGED, backendUsages={"stock": {"path": "/"}})
    await passes.settled(bare_shop)

    alone, goods = [(await bare_shop.get(PRODUCT, name) or {})["status"]["productId"] for name in ("alone", "goods")]
    assert tenant.get(f"services/{alone}/proxy")["proxy"]["auth_user_key"] == "token"
    assert [each["system_name"] for each in tenant.list("backend_apis")] == ["stock"]
    assert tenant.list(f"services/{alone}/backend_usages") == []
    assert len(tenant.list(f"services/{goods}/backend_usages")) == 1


async def test_a_backend_made_by_a_private_address_is_used_no_more_and_stays(
    bare_shop: Shop, passes: Passes, tenant: Client
) -> None:
    await bare_shop.product()
    await passes.settled(bare_shop)
    own = f"services/{(await bare_shop.get(PRODUCT, 'goods') or {})['status']['productId']}"
    tenant.put(f"{own}/proxy", api_backend="https://somebody.example.com")
    assert len(tenant.list(f"{own}/backend_usages")) == 1
    await compared(bare_shop, passes, (PRODUCT, "goods"))

    assert tenant.list(f"{own}/backend_usages") == []
    assert [each["private_endpoint"] for each in tenant.list("backend_apis")] == ["https://somebody.example.com:443"]


async def test_a_private_address_that_moved_a_backend_is_taken_back(
    bare_shop: Shop, passes: Passes, tenant: Client
) -> None:
    await bare_shop.backend()
    await bare_shop.product(backendUsages={"stock": {"path": "/"}})
    await passes.settled(bare_shop)
    own = f"services/{(await bare_shop.get(PRODUCT, 'goods') or {})['status']['productId']}"
    tenant.put(f"{own}/proxy", api_backend="https://somebody.example.com")
    await compared(bare_shop, passes, (BACKEND, "stock"), (PRODUCT, "goods"))

    (backend,) = tenant.list("backend_apis")
    assert backend["private_endpoint"] == "https://stock.example.com:443"


# --- users ---


async def test_a_user_made_by_hand_without_a_password_is_adopted_and_activated(
    bare_shop: Shop, passes: Passes, tenant: Client
) -> None:
    await bare_shop.secret("password", password="secret123")
    await developer(bare_shop, "acme", "ann")
    await passes.settled(bare_shop)
    own = f"accounts/{(await bare_shop.get(DEVELOPER_ACCOUNT, 'acme') or {})['status']['accountID']}/users"
    silent = tenant.post(own, username="bob", email="bob@example.com")
    await bare_shop.create(DEVELOPER_USER, "bob", user("bob", "acme"))
    await passes.settled(bare_shop)

    status = (await bare_shop.get(DEVELOPER_USER, "bob") or {})["status"]
    assert (status["developerUserID"], status["developerUserState"]) == (silent["id"], "active")
    assert tenant.get(f"{own}/{silent['id']}")["user"]["state"] == "active"


async def test_a_signup_with_a_name_alone_disturbs_no_other_account(
    bare_shop: Shop, passes: Passes, tenant: Client
) -> None:
    little = tenant.post("signup", org_name="little", username="little")
    await bare_shop.secret("password", password="secret123")
    await developer(bare_shop, "acme", "ann")
    await passes.settled(bare_shop)

    (nameless,) = tenant.list(f"accounts/{little['id']}/users")
    assert (nameless["email"], nameless["state"]) == (None, "pending")


async def test_a_field_that_3scale_requires_and_no_object_has_is_named_on_the_account(
    bare_shop: Shop, passes: Passes, tenant: Client
) -> None:
    field = tenant.post("fields_definitions", target="Account", name="vat_code", label="VAT", required=True)
    await bare_shop.secret("password", password="secret123")
    await developer(bare_shop, "acme", "ann")
    await passes.round(bare_shop)
    await passes.round(bare_shop)
    shown = true_conditions(await bare_shop.get(DEVELOPER_ACCOUNT, "acme") or {}) & {"Invalid", "Failed"}
    assert "vat_code: can't be blank" in await bare_shop.message(DEVELOPER_ACCOUNT, "acme", min(shown))

    tenant.put(f"fields_definitions/{field['id']}", required=False)
    await passes.settled(bare_shop)


# --- the sample of a new tenant ---


def sample(tenant: Client) -> dict[str, Any]:
    """The sample as a client sees it."""
    account = next(each for each in tenant.list("accounts") if each["org_name"] == "Developer")
    own = f"accounts/{account['id']}"
    return {path: tenant.get(path) for path in (own, f"{own}/users", f"{own}/applications")}


async def test_the_sample_of_a_new_tenant_is_left_alone(
    bare_shop: Shop, passes: Passes, tenant: Client, control: ThreescaleControl
) -> None:
    before = sample(tenant)
    await everything(bare_shop)
    await passes.settled(bare_shop)
    assert sample(tenant) == before
    await developer(bare_shop, "developer", "jane")
    await bare_shop.change(DEVELOPER_ACCOUNT, "developer", {"orgName": "Developer"})
    await passes.settled(bare_shop)

    assert sample(tenant) == before
    assert [each["org_name"] for each in tenant.list("accounts")].count("Developer") == 2


async def test_a_user_of_the_samples_name_says_that_the_name_is_taken(
    bare_shop: Shop, passes: Passes, tenant: Client
) -> None:
    before = sample(tenant)
    await bare_shop.secret("password", password="secret123")
    await developer(bare_shop, "acme", "john")
    for _ in range(3):
        await passes.round(bare_shop)
    found = await bare_shop.get(DEVELOPER_ACCOUNT, "acme") or {}
    shown = true_conditions(found) & {"Invalid", "Failed"}

    assert shown, found
    assert "username: has already been taken" in await bare_shop.message(DEVELOPER_ACCOUNT, "acme", min(shown))
    assert sample(tenant) == before


async def test_a_product_that_takes_over_the_first_one_keeps_what_the_sample_subscribes_to(
    bare_shop: Shop, passes: Passes, tenant: Client
) -> None:
    before = sample(tenant)
    (api,) = tenant.list("services")
    await bare_shop.create(PRODUCT, "api", {"name": "API", "systemName": "api"})
    for _ in range(3):
        await passes.round(bare_shop)
    found = await bare_shop.get(PRODUCT, "api") or {}
    plans = tenant.list(f"services/{api['id']}/application_plans")

    assert found["status"]["productId"] == api["id"]
    assert [each["name"] for each in plans] == ["Basic"]
    assert true_conditions(found) & {"Invalid", "Failed"}, found["status"]
    assert "At least one application depends on it" in await bare_shop.message(PRODUCT, "api", "Failed")
    assert sample(tenant) == before

    await bare_shop.change(PRODUCT, "api", {"applicationPlans": {"basic": {"name": "Basic", "published": True}}})
    await passes.settled(bare_shop)
