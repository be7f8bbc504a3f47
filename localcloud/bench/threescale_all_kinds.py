"""One object of each of the 3scale area's eleven kinds, and the resulting contents of a tenant.

To compare tenants, `holds` returns their contents without ids.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

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
    TENANT,
)
from engine.kube import SECRET
from engine.kube.json import JsonObject
from localcloud.threescale.contract import TenantRecord, TenantWorld

METRICS: JsonObject = {"hits": {"friendlyName": "Hits", "unit": "hit", "description": "Number of API hits"}}
BACKEND_SPEC: JsonObject = {
    "name": "Stock",
    "systemName": "stock",
    "privateBaseURL": "https://stock.example.com",
    "description": "What there is",
    "metrics": {**METRICS, "bytes": {"friendlyName": "Bytes", "unit": "byte"}},
    "methods": {"count": {"friendlyName": "Count"}},
    "mappingRules": [{"httpMethod": "GET", "pattern": "/count", "metricMethodRef": "count", "increment": 1}],
}
PRODUCT_SPEC: JsonObject = {
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
POLICY_SPEC: JsonObject = {
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
PETS: JsonObject = {
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
DOCUMENT: JsonObject = {"openapi": "3.0.0", "info": {"title": "Goods", "version": "1"}, "paths": {}}

SECRETS: dict[str, dict[str, str]] = {
    "document": {"body": json.dumps(DOCUMENT)},
    "pets": {"body": json.dumps(PETS)},
    "password": {"password": "secret123"},
    "keys": {"note": "none yet"},
}
# Kind, name, spec.
EVERYTHING: tuple[tuple[Kind, str, JsonObject], ...] = (
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
# The final number of objects, including the Tenant and what the OpenAPI creates.
COUNT = len(EVERYTHING) + 3
ADMIN_PASSWORD, MASTER_TOKEN, TENANT_TOKEN = "admin-password", "master", "tenant-token"


def all_kinds(master: TenantRecord, organization: str) -> list[tuple[Kind, JsonObject]]:
    secrets = {
        **SECRETS,
        ADMIN_PASSWORD: {"admin_password": "secret123"},
        MASTER_TOKEN: {"MASTER_ACCESS_TOKEN": master.token},
    }
    return [
        *((SECRET, _object(SECRET, name, stringData=values)) for name, values in secrets.items()),
        *((kind, _object(kind, name, spec=spec)) for kind, name, spec in EVERYTHING),
        (TENANT, _object(TENANT, "branch", spec=tenant_spec(master, organization))),
    ]


def _object(kind: Kind, name: str, **more: object) -> JsonObject:
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": name}, **more}


def tenant_spec(master: TenantRecord, organization: str) -> JsonObject:
    return {
        "username": "branch",
        "email": "branch@example.com",
        "organizationName": organization,
        "systemMasterUrl": master.url,
        "tenantSecretRef": {"name": f"{TENANT_TOKEN}-{organization}"},
        "passwordCredentialsRef": {"name": ADMIN_PASSWORD},
        "masterCredentialsRef": {"name": MASTER_TOKEN},
    }


# Tables that depend on order: versions of configurations; an account is subscribed to the products that exist at its
# signup.
_OF_ORDER = {"proxy_configs", "subscriptions"}
# What differs between equal tenants: ids, times, generated values.
_OWN = ("_at", "token", "key", "id", "secret", "host", "endpoint", "content", "lock", "realm")


def holds(world: TenantWorld) -> dict[str, list[str]]:
    compared = {table: rows for table, rows in world.tables.items() if rows and table not in _OF_ORDER}
    found = {table: sorted(_plain(row, world.name) for row in rows) for table, rows in compared.items()}
    if "keys" in found:
        found["keys"] = ["made up"] * len(found["keys"])
    return dict(sorted(found.items()))


def differences(wanted: dict[str, list[str]], found: dict[str, list[str]]) -> list[str]:
    return [
        *(f"missing row of {table}: {row}" for table in wanted for row in _more(wanted[table], found.get(table, []))),
        *(f"surplus row of {table}: {row}" for table in found for row in _more(found[table], wanted.get(table, []))),
    ]


def _more(rows: Iterable[str], others: list[str]) -> Iterable[str]:
    left = [*others]
    for row in rows:
        if row in left:
            left.remove(row)
        else:
            yield row


def _plain(row: object, tenant: str) -> str:
    fields = row if isinstance(row, dict) else {}
    text = json.dumps(
        {name: value for name, value in fields.items() if value is not None and not name.endswith(_OWN)}, sort_keys=True
    )
    text = re.sub(r"\.\d+\"", '"', text).replace(tenant, "TENANT")
    return re.sub(r"admin@[^\"]+", "admin@TENANT", text)
