"""Names and addresses of more than 255 characters: refused by the simulator, and shown on the object that has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from threescale_lab import Shop, true_conditions
from threescale_passes_lab import Passes
from threescale_process import Client, fresh

from domain.identity import Kind
from domain.threescale import ACTIVE_DOC, BACKEND, DEVELOPER_ACCOUNT, DEVELOPER_USER, PRODUCT

pytestmark = pytest.mark.integration

LONGEST = "n" * 255
TOO_LONG = LONGEST + "n"
REFUSED = ["is too long (maximum is 255 characters)"]
DOCUMENT = '{"openapi": "3.0.2", "info": {"title": "t", "version": "1"}, "paths": {}}'


class Text(NamedTuple):
    """A text of a request; `wish` is what the request needs besides."""

    method: str
    path: Callable[[Client], str]
    field: str
    wish: Callable[[Client], dict[str, Any]] = lambda _: {}


def own(client: Client) -> str:
    return f"services/{client.service()['id']}"


def methods(client: Client) -> str:
    service = own(client)
    return f"{service}/metrics/{client.hits(service)['id']}/methods"


def plan_of(client: Client) -> dict[str, Any]:
    return {"plan_id": client.plan(client.service())["id"]}


TEXTS = {
    "name of a product": Text("POST", lambda _: "services", "name"),
    "system name of a product": Text("POST", lambda _: "services", "system_name", lambda _: {"name": "x"}),
    "name of a changed product": Text("PUT", own, "name"),
    "name of a backend": Text("POST", lambda _: "backend_apis", "name", lambda _: {"private_endpoint": "https://a.b"}),
    "name of a changed backend": Text("PUT", lambda client: f"backend_apis/{client.backend()['id']}", "name"),
    "friendly name of a metric": Text(
        "POST", lambda client: f"{own(client)}/metrics", "friendly_name", lambda _: {"unit": "1", "system_name": "long"}
    ),
    "system name of a method": Text("POST", methods, "system_name", lambda _: {"friendly_name": "Long"}),
    "name of a plan": Text("POST", lambda client: f"{own(client)}/application_plans", "name"),
    "field of a proxy": Text("PUT", lambda client: f"{own(client)}/proxy", "error_auth_failed"),
    "name of an application": Text(
        "POST", lambda client: f"accounts/{client.account()['id']}/applications", "name", plan_of
    ),
    "name of an organization": Text("POST", lambda _: "signup", "org_name", lambda _: {"username": "long-named"}),
    "name of a changed organization": Text("PUT", lambda client: f"accounts/{client.account()['id']}", "org_name"),
    "name of a document": Text("POST", lambda _: "active_docs", "name", lambda _: {"body": DOCUMENT}),
    "name of a feature": Text("POST", lambda client: f"{own(client)}/features", "name"),
    "name of a field": Text(
        "POST", lambda _: "fields_definitions", "name", lambda _: {"target": "Account", "label": "Long"}
    ),
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_of_more_than_255_characters_is_refused(text: str, tenant: Client) -> None:
    method, path, field, request = TEXTS[text]
    where, more = path(tenant), request(tenant)

    status, body = tenant.refused(method, where, {**more, field: TOO_LONG})
    assert (status, body["errors"][field]) == (422, REFUSED)
    assert tenant.call(method, where, {**more, field: LONGEST}).status_code in (200, 201)


def test_patterns_paths_and_addresses_have_the_same_limit(tenant: Client) -> None:
    service, backend = own(tenant), tenant.backend()
    far = f"backend_apis/{backend['id']}"
    rule = {"http_method": "GET", "delta": 1, "metric_id": tenant.hits(far)["id"], "pattern": f"/{LONGEST}"}
    bodies: list[tuple[str, dict[str, Any], str]] = [
        (f"{far}/mapping_rules", rule, "pattern"),
        (f"{service}/backend_usages", {"backend_api_id": backend["id"], "path": f"/{LONGEST}"}, "path"),
        ("backend_apis", {"name": fresh("Far"), "private_endpoint": f"https://{TOO_LONG}"}, "private_endpoint"),
    ]

    for path, request, field in bodies:
        status, body = tenant.refused("POST", path, request)
        assert (status, body["errors"][field]) == (422, REFUSED)


# --- the product ---

ADMIN = {"email": "ann@example.com", "role": "admin", "passwordCredentialsRef": {"name": "password"}}


async def name_too_long(shop: Shop) -> dict[tuple[Kind, str], str]:
    """Objects whose name is too long for 3scale, and the field that 3scale refuses."""
    await shop.secret("password", password="secret123")
    await shop.secret("document", body=DOCUMENT)
    plans = {"basic": {"name": TOO_LONG}}
    metrics = {"far": {"friendlyName": TOO_LONG, "unit": "1"}}
    reference = {"secretRef": {"name": "document"}}
    wide = "w" * 41
    bodies: list[tuple[Kind, str, dict[str, Any], str]] = [
        (BACKEND, "far", {"name": TOO_LONG, "systemName": "far", "privateBaseURL": "https://a.example.com"}, "name"),
        (PRODUCT, "named", {"name": TOO_LONG, "systemName": "named"}, "name"),
        (PRODUCT, "planned", {"name": "P", "systemName": "planned", "applicationPlans": plans}, "name"),
        (PRODUCT, "measured", {"name": "M", "systemName": "measured", "metrics": metrics}, "friendly_name"),
        (ACTIVE_DOC, "doc", {"name": TOO_LONG, "systemName": "doc", "activeDocOpenAPIRef": reference}, "name"),
        (DEVELOPER_ACCOUNT, "big", {"orgName": TOO_LONG}, "org_name"),
        (DEVELOPER_USER, "big", {**ADMIN, "username": "big", "developerAccountRef": {"name": "big"}}, ""),
        (DEVELOPER_ACCOUNT, "acme", {"orgName": "Acme"}, ""),
        (DEVELOPER_USER, "ann", {**ADMIN, "username": "ann", "developerAccountRef": {"name": "acme"}}, ""),
        (
            DEVELOPER_USER,
            "wide",
            {**ADMIN, "username": wide, "email": "w@example.com", "developerAccountRef": {"name": "acme"}},
            "username",
        ),
    ]
    for kind, name, spec, _ in bodies:
        await shop.create(kind, name, spec)
    return {(kind, name): field for kind, name, _, field in bodies if field}


async def test_a_name_that_is_too_long_for_3scale_is_shown_on_its_object(bare_shop: Shop, passes: Passes) -> None:
    fields = await name_too_long(bare_shop)
    for _ in range(4):
        await passes.round(bare_shop)

    for (kind, name), field in fields.items():
        found = await bare_shop.get(kind, name) or {}
        shown = {"Invalid", "Failed"} & true_conditions(found)
        assert shown, (kind.name, name, found)
        message = await bare_shop.message(kind, name, min(shown))
        assert f"{field}: is too long" in message, (kind.name, name, found["status"])
