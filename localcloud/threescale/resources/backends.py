"""Backends (`backend_apis`): an address behind the gateway, with its own metrics and mapping rules.

A new backend has the metric `hits.<id>` and no mapping rule. A backend that a product uses cannot be deleted.
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
    return call.find(tables.BACKENDS, id=call.id(name), tenant_id=call.tenant.id, deleted=None)


def show(call: Call, backend: Record) -> JsonObject:
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
    usages = store.all(tables.BACKEND_USAGES, backend_id=backend.id)
    services = [store.get(tables.SERVICES, usage.number("service_id")) for usage in usages]
    return [service for service in services if service["deleted"] is None]


@ROUTES.add("GET", "/admin/api/backend_apis", json_only=True)
def index(call: Call) -> Answer:
    found, page = call.page(tables.BACKENDS, tenant_id=call.tenant.id, deleted=None)
    return answers.collection("backend_apis", "backend_api", [show(call, each) for each in found], page)


@ROUTES.add("GET", "/admin/api/backend_apis/{backend}", json_only=True)
def read(call: Call) -> Answer:
    return answers.item("backend_api", show(call, of(call)))


@ROUTES.add("POST", "/admin/api/backend_apis", json_only=True)
def create(call: Call) -> Answer:
    sent = call.parameters.within("backend_api")
    system_name = names.system_name_of(sent)
    values = sent.texts(("name", "description", "private_endpoint"))
    complaints = Complaints()
    complaints.if_blank(values, "name", "private_endpoint")
    names.if_malformed(complaints, system_name)
    if system_name and call.store.find(tables.BACKENDS, tenant_id=call.tenant.id, system_name=system_name):
        complaints.add("system_name", refusals.TAKEN)
    complaints.if_too_long(values, "name")
    settle_endpoint(values, "private_endpoint", complaints)
    complaints.settle()
    backend = establish(call.store, call.tenant, system_name, values | {"annotations": sent.annotations({})})
    return answers.item("backend_api", show(call, backend), created=True)


@ROUTES.add("PUT PATCH", "/admin/api/backend_apis/{backend}", json_only=True)
def change(call: Call) -> Answer:
    backend = of(call)
    sent = call.parameters.within("backend_api")
    values = sent.texts(("name", "description", "private_endpoint"))
    complaints = Complaints()
    complaints.if_blank(
        {"name": backend["name"], "private_endpoint": backend["private_endpoint"], **values},
        "name",
        "private_endpoint",
    )
    complaints.if_too_long(values, "name")
    settle_endpoint(values, "private_endpoint", complaints)
    complaints.settle()
    annotations = sent.annotations(backend.object("annotations"))
    return answers.item("backend_api", show(call, call.store.update(backend, **values, annotations=annotations)))


@ROUTES.add("DELETE", "/admin/api/backend_apis/{backend}", json_only=True)
def delete(call: Call) -> Answer:
    backend = of(call)
    if users_of(call.store, backend):
        raise refusals.undeletable("cannot be deleted because it is used by at least one Product")
    call.store.update(backend, deleted=time.time())
    return answers.done()


def settle_endpoint(values: JsonObject, field: str, complaints: Complaints) -> None:
    endpoint = values.get(field)
    if isinstance(endpoint, str) and endpoint:
        if addresses.is_acceptable(endpoint, _SCHEMES):
            values[field] = addresses.with_port(endpoint)
        else:
            complaints.add(field, refusals.INVALID)
    complaints.if_too_long(values, field)


def establish(store: Store, tenant: Record, system_name: str, values: JsonObject) -> Record:
    backend = store.insert(
        tables.BACKENDS, **{"annotations": {}, **values}, tenant_id=tenant.id, system_name=system_name
    )
    metrics.establish_hits(store, backend)
    return backend


def serve_from(store: Store, tenant: Record, service: Record, address: str) -> None:
    usage = store.find(tables.BACKEND_USAGES, service_id=service.id, path="/")
    if usage is not None:
        store.update(store.get(tables.BACKENDS, usage.number("backend_id")), private_endpoint=address)
        return
    values: JsonObject = {
        "name": f"{service['name']} Backend"[: refusals.LONGEST_TEXT],
        "description": f"Backend of {service['name']}",
        "private_endpoint": address,
    }
    backend = establish(store, tenant, _free_system_name(store, tenant, service.text("system_name")), values)
    store.insert(tables.BACKEND_USAGES, service_id=service.id, backend_id=backend.id, path="/")


def _free_system_name(store: Store, tenant: Record, wanted: str) -> str:
    name, number = wanted, 1
    while store.find(tables.BACKENDS, tenant_id=tenant.id, system_name=name):
        number += 1
        name = f"{wanted}_{number}"
    return name
