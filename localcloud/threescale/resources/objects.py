from __future__ import annotations

from localcloud.threescale import refusals, tables
from localcloud.threescale.answers import Answer
from localcloud.threescale.call import Call, Routes

ROUTES = Routes()

_TABLES = {
    "service": (tables.SERVICES, "tenant_id"),
    "backend_api": (tables.BACKENDS, "tenant_id"),
    "account": (tables.ACCOUNTS, "provider_id"),
}


@ROUTES.add("GET", "/admin/api/objects/status", json_only=True)
def read(call: Call) -> Answer:
    """The answer is empty while the object exists, even if its deletion has begun; otherwise 404."""
    kind, text = call.parameters.required("object_type"), call.parameters.required("object_id")
    identifier = int(text) if text.isdigit() else 0
    if kind == "proxy":
        proxy = call.find(tables.PROXIES, id=identifier)
        call.find(tables.SERVICES, id=proxy["service_id"], tenant_id=call.tenant.id)
    elif kind in _TABLES:
        table, owner = _TABLES[kind]
        call.find(table, id=identifier, **{owner: call.tenant.id})
    else:
        raise refusals.forbidden()
    return Answer()
