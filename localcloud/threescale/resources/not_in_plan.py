"""Parts of 3scale that the simulated tenants' plan lacks: billing, developer portal, webhooks, members' permissions.

Every call is answered with 403, even if the token has the right scope.
"""

from __future__ import annotations

from localcloud.threescale import refusals
from localcloud.threescale.answers import Answer
from localcloud.threescale.call import ACCOUNT_MANAGEMENT, CMS, FINANCE, Call, Routes

ROUTES = Routes()

_METHODS = "GET POST PUT PATCH DELETE"
_PORTAL = "/admin/api/cms/{kind}"
_INVOICES = ("/api/invoices", "/api/accounts/{account}/invoices")
_PATHS = {
    CMS: (_PORTAL, f"{_PORTAL}/{{object}}", f"{_PORTAL}/{{object}}/{{event}}"),
    FINANCE: tuple(
        f"{invoices}{part}"
        for invoices in _INVOICES
        for part in ("", "/{invoice}", "/{invoice}/{part}", "/{invoice}/{part}/{object}")
    ),
    ACCOUNT_MANAGEMENT: (
        "/admin/api/webhooks",
        "/admin/api/webhooks/failures",
        "/admin/api/users/{user}/permissions",
    ),
}


def refuse(_: Call) -> Answer:
    raise refusals.forbidden()


for _scope, _paths in _PATHS.items():
    ROUTES.add(_METHODS, *_paths, scope=_scope)(refuse)
