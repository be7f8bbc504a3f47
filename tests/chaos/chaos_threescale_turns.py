"""What people change of one of each of the eleven kinds, and what each turn of their life changes outside.

A turn's effects are its kinds of calls to 3scale, and of writes to Kubernetes. A test holds that an undisturbed
life has them, and no others.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from domain.identity import Kind
from domain.threescale import (
    ACTIVE_DOC,
    APPLICATION,
    BACKEND,
    CUSTOM_POLICY_DEFINITION,
    DEVELOPER_ACCOUNT,
    DEVELOPER_USER,
    OPEN_API,
    PRODUCT,
    TENANT,
)
from engine.kube import SECRET
from localcloud.bench.threescale_all_kinds import PETS

Json = dict[str, Any]

_RULES = [
    {"httpMethod": "GET", "pattern": "/first", "metricMethodRef": "list", "increment": 1},
    {"httpMethod": "GET", "pattern": "/goods", "metricMethodRef": "list", "increment": 3},
]
_BASIC = {
    "name": "Basic plan",
    "setupFee": "10",
    "published": True,
    "limits": [{"period": "day", "value": 200, "metricMethodRef": {"systemName": "hits"}}],
    "pricingRules": [{"from": 1, "to": 50, "pricePerUnit": "15.40", "metricMethodRef": {"systemName": "hits"}}],
}
_GATEWAY = {"apicastHosted": {"authentication": {"userkey": {"authUserKey": "api-key", "credentials": "headers"}}}}
_MORE_PETS: Json = {
    **PETS,
    "paths": {
        "/pets": {
            "get": {"operationId": "listPets", "responses": {"200": {"description": "all"}}},
            "delete": {"operationId": "freePets", "responses": {"200": {"description": "none"}}},
        }
    },
}


def changes() -> list[tuple[Kind, str, Json]]:
    """Kind, name and merge patch of what is changed."""
    specs: list[tuple[Kind, str, Json]] = [
        (
            BACKEND,
            "stock",
            {
                "privateBaseURL": "https://store.example.com",
                "metrics": {"bytes": {"friendlyName": "Octets"}, "seconds": {"friendlyName": "Time", "unit": "s"}},
                "methods": {"count": {"friendlyName": "Counting"}},
                "mappingRules": [
                    {"httpMethod": "GET", "pattern": "/count", "metricMethodRef": "count", "increment": 2},
                    {"httpMethod": "PUT", "pattern": "/count", "metricMethodRef": "seconds", "increment": 1},
                ],
            },
        ),
        (
            PRODUCT,
            "goods",
            {
                "description": "What is on sale",
                "deployment": _GATEWAY,
                "metrics": {"sold": {"friendlyName": "Sold", "unit": "piece"}},
                "methods": {"list": {"friendlyName": "Listing"}, "sell": {"friendlyName": "Selling"}},
                "mappingRules": _RULES,
                "backendUsages": {"stock": {"path": "/v2"}},
                "applicationPlans": {"basic": _BASIC, "premium": {"name": "Premium"}},
                "policies": [{"name": "headers", "version": "builtin", "enabled": True}],
            },
        ),
        (CUSTOM_POLICY_DEFINITION, "mine", {"schema": {"summary": "It does more"}}),
        (ACTIVE_DOC, "goods", {"description": "How to buy"}),
        (DEVELOPER_ACCOUNT, "acme", {"orgName": "Acme & Sons"}),
        (DEVELOPER_USER, "bob", {"email": "robert@example.com", "suspended": True}),
        (APPLICATION, "till", {"applicationPlanName": "premium", "description": "It sells more", "suspend": True}),
        (TENANT, "branch", {"supportEmail": "help@example.com"}),
        # It is so already; but its newest generation has to be recorded, by its own pass or by its product's.
        (OPEN_API, "pets", {"prefixMatching": False}),
    ]
    return [
        *((kind, name, {"spec": spec}) for kind, name, spec in specs),
        (SECRET, "pets", {"data": {"body": base64.b64encode(json.dumps(_MORE_PETS).encode()).decode()}}),
    ]


CALLS: dict[str, tuple[str, ...]] = {
    "create": (
        "POST /admin/api/accounts/{account}/applications",
        "POST /admin/api/accounts/{account}/applications/{application}/keys",
        "POST /admin/api/accounts/{account}/users",
        "POST /admin/api/active_docs",
        "POST /admin/api/application_plans/{plan}/metrics/{metric}/limits",
        "POST /admin/api/application_plans/{plan}/metrics/{metric}/pricing_rules",
        "POST /admin/api/backend_apis",
        "POST /admin/api/backend_apis/{backend}/mapping_rules",
        "POST /admin/api/backend_apis/{backend}/metrics",
        "POST /admin/api/backend_apis/{backend}/metrics/{metric}/methods",
        "POST /admin/api/registry/policies",
        "POST /admin/api/services",
        "POST /admin/api/services/{service}/application_plans",
        "POST /admin/api/services/{service}/backend_usages",
        "POST /admin/api/services/{service}/metrics/{metric}/methods",
        "POST /admin/api/services/{service}/proxy/configs/{environment}/{version}/promote",
        "POST /admin/api/services/{service}/proxy/deploy",
        "POST /admin/api/services/{service}/proxy/mapping_rules",
        "POST /admin/api/signup",
        "POST /master/api/providers",
        "PUT /admin/api/accounts/{account}/applications/{application}",
        "PUT /admin/api/accounts/{account}/users/{user}/activate",
        "PUT /admin/api/services/{service}/proxy",
        "PUT /admin/api/services/{service}/proxy/mapping_rules/{rule}",
        "PUT /admin/api/services/{service}/proxy/policies",
    ),
    "change": (
        "DELETE /admin/api/application_plans/{plan}/metrics/{metric}/limits/{limit}",
        "DELETE /admin/api/application_plans/{plan}/metrics/{metric}/pricing_rules/{rule}",
        "DELETE /admin/api/services/{service}/metrics/{metric}/methods/{method}",
        "POST /admin/api/application_plans/{plan}/metrics/{metric}/pricing_rules",
        "POST /admin/api/backend_apis/{backend}/mapping_rules",
        "POST /admin/api/backend_apis/{backend}/metrics",
        "POST /admin/api/services/{service}/application_plans",
        "POST /admin/api/services/{service}/metrics",
        "POST /admin/api/services/{service}/metrics/{metric}/methods",
        "POST /admin/api/services/{service}/proxy/deploy",
        "PUT /admin/api/accounts/{account}",
        "PUT /admin/api/accounts/{account}/applications/{application}",
        "PUT /admin/api/accounts/{account}/applications/{application}/change_plan",
        "PUT /admin/api/accounts/{account}/applications/{application}/suspend",
        "PUT /admin/api/accounts/{account}/users/{user}",
        "PUT /admin/api/accounts/{account}/users/{user}/suspend",
        "PUT /admin/api/active_docs/{document}",
        "PUT /admin/api/application_plans/{plan}/metrics/{metric}/limits/{limit}",
        "PUT /admin/api/backend_apis/{backend}",
        "PUT /admin/api/backend_apis/{backend}/mapping_rules/{rule}",
        "PUT /admin/api/backend_apis/{backend}/metrics/{metric}",
        "PUT /admin/api/backend_apis/{backend}/metrics/{metric}/methods/{method}",
        "PUT /admin/api/registry/policies/{policy}",
        "PUT /admin/api/services/{service}",
        "PUT /admin/api/services/{service}/application_plans/{plan}",
        "PUT /admin/api/services/{service}/backend_usages/{usage}",
        "PUT /admin/api/services/{service}/metrics/{metric}/methods/{method}",
        "PUT /admin/api/services/{service}/proxy",
        "PUT /admin/api/services/{service}/proxy/mapping_rules/{rule}",
        "PUT /admin/api/services/{service}/proxy/policies",
        "PUT /master/api/providers/{provider}",
    ),
    "delete": (
        "DELETE /admin/api/accounts/{account}",
        "DELETE /admin/api/active_docs/{document}",
        "DELETE /admin/api/backend_apis/{backend}",
        "DELETE /admin/api/registry/policies/{policy}",
        "DELETE /admin/api/services/{service}",
        "DELETE /master/api/providers/{provider}",
    ),
}


def is_believed(call: str, status: str) -> bool:
    """Whether an answer of this status says that the effect is there: what is deleted is gone, the key is taken."""
    return (call.startswith("DELETE ") and status == "404") or (call.endswith("/keys") and status == "422")


WRITES: dict[str, tuple[str, ...]] = {
    "create": (
        "PATCH activedocs",
        "PATCH activedocs/status",
        "PATCH applicationauths/status",
        "PATCH applications",
        "PATCH applications/status",
        "PATCH backends",
        "PATCH backends/status",
        "PATCH custompolicydefinitions",
        "PATCH custompolicydefinitions/status",
        "PATCH developeraccounts",
        "PATCH developeraccounts/status",
        "PATCH developerusers",
        "PATCH developerusers/status",
        "PATCH openapis",
        "PATCH openapis/status",
        "PATCH products",
        "PATCH products/status",
        "PATCH proxyconfigpromotes/status",
        "PATCH secrets",
        "PATCH tenants",
        "PATCH tenants/status",
        "POST backends",
        "POST products",
        "POST secrets",
    ),
    "change": (
        "PATCH activedocs/status",
        "PATCH applications/status",
        "PATCH backends/status",
        "PATCH custompolicydefinitions/status",
        "PATCH developeraccounts/status",
        "PATCH developerusers/status",
        "PATCH openapis/status",
        "PATCH products",
        "PATCH products/status",
        "PATCH tenants/status",
    ),
    "delete": (
        "DELETE backends",
        "DELETE products",
        "PATCH activedocs",
        "PATCH applications",
        "PATCH backends",
        "PATCH custompolicydefinitions",
        "PATCH developeraccounts",
        "PATCH developerusers",
        "PATCH openapis",
        "PATCH products",
        "PATCH tenants",
    ),
}
