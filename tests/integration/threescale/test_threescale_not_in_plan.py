"""What belongs to plans of 3scale that the simulated tenants are not on: refused like anything their plan lacks."""

from __future__ import annotations

import pytest
from threescale_process import Client

from localcloud.threescale.contract import TokenWish
from localcloud.threescale.control import ThreescaleControl

pytestmark = pytest.mark.integration

FORBIDDEN = (403, {"status": "Forbidden"})
NO_PERMISSION = (403, {"error": "Your access token does not have the correct permissions"})
CALLS = {
    "templates of the developer portal": ("GET", "/admin/api/cms/templates.json", "cms"),
    "one template": ("PUT", "/admin/api/cms/templates/3/publish.json", "cms"),
    "files of the developer portal": ("POST", "/admin/api/cms/files.json", "cms"),
    "sections of the developer portal": ("DELETE", "/admin/api/cms/sections/3.json", "cms"),
    "invoices": ("GET", "/api/invoices.json", "finance"),
    "invoices of an account": ("GET", "/api/accounts/3/invoices.json", "finance"),
    "line items": ("POST", "/api/invoices/3/line_items.json", "finance"),
    "the state of an invoice": ("PUT", "/api/invoices/3/state.json", "finance"),
    "webhooks": ("PUT", "/admin/api/webhooks.json", "account_management"),
    "failures of webhooks": ("GET", "/admin/api/webhooks/failures.json", "account_management"),
}


@pytest.mark.parametrize("what", CALLS)
def test_features_that_the_plan_lacks_are_forbidden(what: str, tenant: Client, control: ThreescaleControl) -> None:
    method, path, scope = CALLS[what]
    name = next(each.name for each in control.tenants() if each.url == tenant.url)
    others = tuple(each for each in TokenWish().scopes if each != scope)
    without = Client(tenant.url, control.add_token(name, scopes=others).value)

    assert tenant.refused(method, path) == FORBIDDEN
    assert without.refused(method, path) == NO_PERMISSION
    without.close()


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_permissions_of_members_are_forbidden(method: str, tenant: Client) -> None:
    (admin,) = tenant.list("users")

    assert tenant.refused(method, f"users/{admin['id']}/permissions") == FORBIDDEN
