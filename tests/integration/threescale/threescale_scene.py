"""One of each kind that has a lifecycle: an API with its backend, a policy and a document, and somebody who uses it."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Awaitable, Callable
from typing import Any

from threescale_lab import Shop

from domain.identity import Kind
from domain.threescale import (
    ACTIVE_DOC,
    APPLICATION,
    APPLICATION_AUTH,
    BACKEND,
    CUSTOM_POLICY_DEFINITION,
    DEVELOPER_ACCOUNT,
    DEVELOPER_USER,
    OPEN_API,
    PRODUCT,
    PROXY_CONFIG_PROMOTE,
)
from localcloud.threescale.contract import TenantWorld

Json = dict[str, Any]

METRICS = {"hits": {"friendlyName": "Hits", "unit": "hit", "description": "Number of API hits"}}
BACKEND_SPEC: Json = {
    "name": "Stock",
    "systemName": "stock",
    "privateBaseURL": "https://stock.example.com",
    "description": "What there is",
    "metrics": {**METRICS, "bytes": {"friendlyName": "Bytes", "unit": "byte"}},
    "methods": {"count": {"friendlyName": "Count"}},
    "mappingRules": [{"httpMethod": "GET", "pattern": "/count", "metricMethodRef": "count", "increment": 1}],
}
PRODUCT_SPEC: Json = {
    "name": "Goods",
    "systemName": "goods",
    "description": "What is sold",
    "deployment": {"apicastHosted": {"authentication": {"userkey": {"authUserKey": "key", "credentials": "query"}}}},
    "metrics": METRICS,
    "methods": {"list": {"friendlyName": "List"}, "buy": {"friendlyName": "Buy"}},
    "mappingRules": [
        {"httpMethod": "GET", "pattern": "/goods", "metricMethodRef": "list", "increment": 1},
        {"httpMethod": "POST", "pattern": "/goods", "metricMethodRef": "buy", "increment": 2, "last": True},
    ],
    "backendUsages": {"stock": {"path": "v1/"}},
    "applicationPlans": {
        "basic": {
            "name": "Basic",
            "setupFee": "20",
            "published": True,
            "limits": [
                {"period": "day", "value": 100, "metricMethodRef": {"systemName": "hits"}},
                {"period": "month", "value": 5, "metricMethodRef": {"systemName": "bytes", "backend": "stock"}},
            ],
            "pricingRules": [{"from": 1, "to": 100, "pricePerUnit": "20", "metricMethodRef": {"systemName": "hits"}}],
        }
    },
    "policies": [{"name": "cors", "version": "builtin", "enabled": True}],
}
POLICY_SPEC: Json = {
    "name": "mine",
    "version": "1.0",
    "schema": {
        "name": "Mine",
        "version": "1.0",
        "summary": "It does",
        "$schema": "http://json-schema.org/draft-07/schema#",
        "configuration": {"type": "object"},
        "description": ["At length"],
    },
}
PETS = {
    "openapi": "3.0.0",
    "info": {"title": "Pets", "version": "1"},
    "servers": [{"url": "https://pets.example.com/v1"}],
    "paths": {
        "/pets": {
            "get": {"operationId": "listPets", "responses": {"200": {"description": "all"}}},
            "post": {"responses": {"201": {"description": "made"}}},
        }
    },
}
DOCUMENT = {"openapi": "3.0.0", "info": {"title": "Goods", "version": "1"}, "paths": {}}

EVERYTHING: tuple[tuple[Kind, str, Json], ...] = (
    (BACKEND, "stock", BACKEND_SPEC),
    (PRODUCT, "goods", PRODUCT_SPEC),
    (CUSTOM_POLICY_DEFINITION, "mine", POLICY_SPEC),
    (
        ACTIVE_DOC,
        "goods",
        {
            "name": "Goods",
            "activeDocOpenAPIRef": {"secretRef": {"name": "document"}},
            "productSystemName": "goods",
            "published": True,
        },
    ),
    (DEVELOPER_ACCOUNT, "acme", {"orgName": "Acme"}),
    (
        DEVELOPER_USER,
        "ann",
        {
            "username": "ann",
            "email": "ann@example.com",
            "role": "admin",
            "passwordCredentialsRef": {"name": "password"},
            "developerAccountRef": {"name": "acme"},
        },
    ),
    (
        DEVELOPER_USER,
        "bob",
        {
            "username": "bob",
            "email": "bob@example.com",
            "passwordCredentialsRef": {"name": "password"},
            "developerAccountRef": {"name": "acme"},
        },
    ),
    (
        APPLICATION,
        "till",
        {
            "accountCR": {"name": "acme"},
            "productCR": {"name": "goods"},
            "applicationPlanName": "basic",
            "name": "Till",
            "description": "It sells",
        },
    ),
    (
        APPLICATION_AUTH,
        "till",
        {"applicationCRName": "till", "authSecretRef": {"name": "keys"}, "generateSecret": True},
    ),
    (OPEN_API, "pets", {"openapiRef": {"secretRef": {"name": "pets"}}}),
    (PROXY_CONFIG_PROMOTE, "live", {"productCRName": "goods", "production": True}),
)


async def everything(shop: Shop, order: random.Random | None = None) -> None:
    """Make all of it, with its Secrets, in some order."""
    steps: list[Callable[[], Awaitable[object]]] = [
        lambda: shop.secret("document", body=json.dumps(DOCUMENT)),
        lambda: shop.secret("pets", body=json.dumps(PETS)),
        lambda: shop.secret("password", password="secret123"),
        lambda: shop.secret("keys", note="none yet"),
        *(_creation(shop, *each) for each in EVERYTHING),
    ]
    if order is not None:
        order.shuffle(steps)
    for step in steps:
        await step()


def _creation(shop: Shop, kind: Kind, name: str, spec: Json) -> Callable[[], Awaitable[object]]:
    return lambda: shop.create(kind, name, spec)


# What differs between two tenants that have the same: ids, times, what is made up.
_OWN = ("_at", "token", "key", "id", "secret", "host", "endpoint", "content", "lock", "realm")


def holds(world: TenantWorld) -> dict[str, list[str]]:
    """What a tenant holds, without what no two tenants have alike; each row as a text that compares."""
    compared = {table: rows for table, rows in world.tables.items() if rows and table != "proxy_configs"}
    found = {table: sorted(_plain(row, world.name) for row in rows) for table, rows in compared.items()}
    return dict(sorted(found.items()))


def _plain(row: object, tenant: str) -> str:
    fields = row if isinstance(row, dict) else {}
    told = json.dumps(
        {name: value for name, value in fields.items() if value is not None and not name.endswith(_OWN)}, sort_keys=True
    )
    told = re.sub(r"\.\d+\"", '"', told).replace(tenant, "TENANT")
    return re.sub(r"admin@[^\"]+", "admin@TENANT", told)
