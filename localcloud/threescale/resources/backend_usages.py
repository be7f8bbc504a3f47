"""Backend usages: the backends of a product, and their paths.

Unlike all other lists, the list is a bare array. Backend and path (case-insensitive) are unique in a product. Deleting
a usage also deletes the limits and prices that the product's plans have for the backend's metrics.
"""

from __future__ import annotations

from localcloud.threescale import answers, refusals, tables
from localcloud.threescale.answers import Answer
from localcloud.threescale.call import Call, Routes, shown
from localcloud.threescale.contract import JsonObject
from localcloud.threescale.refusals import Complaints
from localcloud.threescale.store import Record

ROUTES = Routes()

_PATH = "/admin/api/services/{service}/backend_usages"
_PATH_TAKEN = "This path is already taken. Specify a different path."


@ROUTES.add("GET", _PATH, json_only=True)
def index(call: Call) -> Answer:
    found, _ = call.page(tables.BACKEND_USAGES, service_id=_service(call).id)
    return Answer(body=[{"backend_usage": _show(call, each)} for each in found])


@ROUTES.add("GET", f"{_PATH}/{{usage}}", json_only=True)
def read(call: Call) -> Answer:
    return answers.item("backend_usage", _show(call, _of(call, _service(call))))


@ROUTES.add("POST", _PATH, json_only=True)
def create(call: Call) -> Answer:
    service = _service(call)
    sent = call.parameters.within("backend_usage")
    identifier = sent.integer("backend_api_id")
    backend = None
    if identifier is not None:
        backend = call.store.find(tables.BACKENDS, id=identifier, tenant_id=call.tenant.id, deleted=None)
    path = normal_path(sent.text("path"))
    complaints = Complaints()
    if backend is None:
        complaints.add("backend_api", "must exist")
    elif call.store.find(tables.BACKEND_USAGES, service_id=service.id, backend_id=backend.id):
        complaints.add("backend_api_id", refusals.TAKEN)
    if call.store.find(tables.BACKEND_USAGES, service_id=service.id, path=path):
        complaints.add("path", _PATH_TAKEN)
    complaints.if_too_long({"path": path}, "path")
    complaints.settle()
    assert backend is not None
    usage = call.store.insert(tables.BACKEND_USAGES, service_id=service.id, backend_id=backend.id, path=path)
    return answers.item("backend_usage", _show(call, usage), created=True)


@ROUTES.add("PUT PATCH", f"{_PATH}/{{usage}}", json_only=True)
def change(call: Call) -> Answer:
    service = _service(call)
    usage = _of(call, service)
    sent = call.parameters.within("backend_usage")
    if "path" in sent:
        path = normal_path(sent.text("path"))
        other = call.store.find(tables.BACKEND_USAGES, service_id=service.id, path=path)
        complaints = Complaints()
        if other is not None and other.id != usage.id:
            complaints.add("path", _PATH_TAKEN)
        complaints.if_too_long({"path": path}, "path")
        complaints.settle()
        usage = call.store.update(usage, path=path)
    return answers.item("backend_usage", _show(call, usage))


@ROUTES.add("DELETE", f"{_PATH}/{{usage}}", json_only=True)
def delete(call: Call) -> Answer:
    service = _service(call)
    usage = _of(call, service)
    metrics = {metric.id for metric in call.store.all(tables.METRICS, backend_id=usage["backend_id"])}
    for plan in call.store.all(tables.PLANS, service_id=service.id):
        for table in (tables.LIMITS, tables.PRICING_RULES):
            for record in call.store.all(table, plan_id=plan.id):
                if record["metric_id"] in metrics:
                    call.store.delete(record)
    call.store.delete(usage)
    return answers.done()


def normal_path(path: str) -> str:
    return "/" + path.strip().strip("/")


def _service(call: Call) -> Record:
    return call.find(tables.SERVICES, id=call.id("service"), tenant_id=call.tenant.id, deleted=None)


def _of(call: Call, service: Record) -> Record:
    return call.find(tables.BACKEND_USAGES, service_id=service.id, id=call.id("usage"))


def _show(call: Call, usage: Record) -> JsonObject:
    fields: JsonObject = {
        "id": usage.id,
        "path": usage["path"],
        "service_id": usage["service_id"],
        "backend_id": usage["backend_id"],
    }
    own = f"/admin/api/services/{usage['service_id']}/backend_usages/{usage.id}"
    return shown(call, usage, own, fields)
