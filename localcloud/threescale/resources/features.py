from __future__ import annotations

from localcloud.threescale import answers, names, refusals, tables
from localcloud.threescale.answers import Answer
from localcloud.threescale.call import Call, Routes, shown
from localcloud.threescale.contract import JsonObject
from localcloud.threescale.refusals import Complaints
from localcloud.threescale.store import Record

ROUTES = Routes()

_PATH = "/admin/api/services/{service}/features"
_SCOPES = ("ApplicationPlan", "ServicePlan", "AccountPlan", "application_plan", "service_plan", "account_plan")


@ROUTES.add("GET", _PATH)
def index(call: Call) -> Answer:
    found = call.all(tables.FEATURES, service_id=_service(call).id)
    return answers.collection("features", "feature", [_show(call, each) for each in found])


@ROUTES.add("GET", f"{_PATH}/{{feature}}")
def read(call: Call) -> Answer:
    return answers.item("feature", _show(call, _of(call)))


@ROUTES.add("POST", _PATH)
def create(call: Call) -> Answer:
    service = _service(call)
    sent = call.parameters.within("feature")
    values: JsonObject = {"scope": "ApplicationPlan", "visible": True, "description": None}
    values |= sent.texts(("name", "description", "scope")) | sent.flags(("visible",))
    system_name = names.system_name_of(sent)
    complaints = Complaints()
    complaints.if_blank(values, "name")
    complaints.if_too_long(values, "name")
    complaints.if_unlisted(values, "scope", _SCOPES)
    if call.store.find(tables.FEATURES, service_id=service.id, system_name=system_name):
        complaints.add("system_name", refusals.TAKEN)
    complaints.settle()
    feature = call.store.insert(tables.FEATURES, **values, service_id=service.id, system_name=system_name)
    return answers.item("feature", _show(call, feature), created=True)


@ROUTES.add("PUT PATCH", f"{_PATH}/{{feature}}")
def change(call: Call) -> Answer:
    feature = _of(call)
    sent = call.parameters.within("feature")
    values = sent.texts(("name", "description", "scope")) | sent.flags(("visible",))
    complaints = Complaints()
    complaints.if_blank({"name": feature["name"], **values}, "name")
    complaints.if_too_long(values, "name")
    complaints.if_unlisted(values, "scope", _SCOPES)
    complaints.settle()
    return answers.item("feature", _show(call, call.store.update(feature, **values)))


@ROUTES.add("DELETE", f"{_PATH}/{{feature}}")
def delete(call: Call) -> Answer:
    call.store.delete(_of(call))
    return answers.done()


def _service(call: Call) -> Record:
    return call.find(tables.SERVICES, id=call.id("service"), tenant_id=call.tenant.id, deleted=None)


def _of(call: Call) -> Record:
    return call.find(tables.FEATURES, id=call.id("feature"), service_id=_service(call).id)


def _show(call: Call, feature: Record) -> JsonObject:
    shown_names = ("name", "system_name", "scope", "visible", "description")
    fields: JsonObject = {"id": feature.id, **{name: feature[name] for name in shown_names}}
    return shown(call, feature, f"/admin/api/services/{feature['service_id']}/features/{feature.id}", fields)
