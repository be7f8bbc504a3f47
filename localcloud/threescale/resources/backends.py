"""Backends (`backend_apis`): an address behind the gateway, with metrics and mapping rules of its own.

A new one has the metric `hits.<id>` and no mapping rule. The address is kept with its port. One that a product uses
cannot be deleted.
"""

from __future__ import annotations

import time

from localcloud.threescale import addresses, answers, names, refusals, tables
from localcloud.threescale.answers import Answer
from localcloud.threescale.call import Call, Routes, shown
from localcloud.threescale.contract import JsonObject
from localcloud.threescale.refusals import Complaints
from localcloud.threescale.resources import metrics
from localcloud.threescale.store import Record, Store

ROUTES = Routes()

_SCHEMES = ("http", "https", "ws", "wss")


def of(call: Call, name: str = "backend") -> Record:
    """The backend in the path."""
    return call.find(tables.BACKENDS, id=call.id(name), tenant_id=call.tenant.id, deleted=None)


def show(call: Call, backend: Record) -> JsonObject:
    """As clients see it."""
    fields: JsonObject = {
        "id": backend.id,
        "name": backend["name"],
        "system_name": backend["system_name"],
        "description": backend["description"] or None,
        "private_endpoint": backend["private_endpoint"],
        "account_id": call.tenant.id,
        "annotations": backend.object("annotations"),
    }
    return shown(call, backend, f"/admin/api/backend_apis/{backend.id}", fields)


def users_of(store: Store, backend: Record) -> list[Record]:
    """The products that use it, those being deleted left out."""
    usages = store.all(tables.BACKEND_USAGES, backend_id=backend.id)
    services = [store.get(tables.SERVICES, usage.number("service_id")) for usage in usages]
    return [service for service in services if service["deleted"] is None]


@ROUTES.add("GET", "/admin/api/backend_apis", json_only=True)
def index(call: Call) -> Answer:
    """All of the tenant."""
    found, page = call.page(tables.BACKENDS, tenant_id=call.tenant.id, deleted=None)
    return answers.collection("backend_apis", "backend_api", [show(call, each) for each in found], page)


@ROUTES.add("GET", "/admin/api/backend_apis/{backend}", json_only=True)
def read(call: Call) -> Answer:
    """One."""
    return answers.item("backend_api", show(call, of(call)))


@ROUTES.add("POST", "/admin/api/backend_apis", json_only=True)
def create(call: Call) -> Answer:
    """A new one, with its metric."""
    sent = call.parameters.within("backend_api")
    system_name = names.system_name_of(sent)
    values = sent.texts(("name", "description", "private_endpoint"))
    complaints = Complaints()
    complaints.if_blank(values, "name", "private_endpoint")
    names.if_malformed(complaints, system_name)
    if system_name and call.store.find(tables.BACKENDS, tenant_id=call.tenant.id, system_name=system_name):
        complaints.add("system_name", refusals.TAKEN)
    _settle_endpoint(values, complaints)
    backend = call.store.insert(
        tables.BACKENDS,
        **values,
        tenant_id=call.tenant.id,
        system_name=system_name,
        annotations=sent.annotations({}),
    )
    metrics.establish_hits(call.store, backend)
    return answers.item("backend_api", show(call, backend), created=True)


@ROUTES.add("PUT PATCH", "/admin/api/backend_apis/{backend}", json_only=True)
def change(call: Call) -> Answer:
    """Other values for some fields; its system name stays."""
    backend = of(call)
    sent = call.parameters.within("backend_api")
    values = sent.texts(("name", "description", "private_endpoint"))
    complaints = Complaints()
    complaints.if_blank(
        {"name": backend["name"], "private_endpoint": backend["private_endpoint"], **values},
        "name",
        "private_endpoint",
    )
    _settle_endpoint(values, complaints)
    annotations = sent.annotations(backend.object("annotations"))
    return answers.item("backend_api", show(call, call.store.update(backend, **values, annotations=annotations)))


@ROUTES.add("DELETE", "/admin/api/backend_apis/{backend}", json_only=True)
def delete(call: Call) -> Answer:
    """Gone at once, if no product uses it."""
    backend = of(call)
    if users_of(call.store, backend):
        raise refusals.undeletable("cannot be deleted because it is used by at least one Product")
    call.store.update(backend, deleted=time.time())
    return answers.done()


def _settle_endpoint(values: JsonObject, complaints: Complaints) -> None:
    """Check the address and give it its port; refuse if there is anything to complain of."""
    endpoint = values.get("private_endpoint")
    if isinstance(endpoint, str) and endpoint:
        if addresses.is_acceptable(endpoint, _SCHEMES):
            values["private_endpoint"] = addresses.with_port(endpoint)
        else:
            complaints.add("private_endpoint", refusals.INVALID)
    complaints.settle()
