"""Usage limits of application plans, one per period for a metric of the product or of a used backend."""

from __future__ import annotations

from localcloud.threescale import answers, refusals, tables
from localcloud.threescale.answers import Answer
from localcloud.threescale.call import Call, Routes, shown
from localcloud.threescale.contract import JsonObject
from localcloud.threescale.parameters import as_decimal
from localcloud.threescale.refusals import Complaints
from localcloud.threescale.resources import plans
from localcloud.threescale.store import Record

ROUTES = Routes()

PERIODS = ("eternity", "year", "month", "week", "day", "hour", "minute")

_OF_PLAN = "/admin/api/application_plans/{plan}/limits"
_OF_METRIC = "/admin/api/application_plans/{plan}/metrics/{metric}/limits"


def metric_of(call: Call, plan: Record) -> Record:
    metric = call.find(tables.METRICS, id=call.id("metric"))
    service_id = plan["service_id"]
    of_backend = metric["backend_id"] is not None and call.store.count(
        tables.BACKEND_USAGES, service_id=service_id, backend_id=metric["backend_id"]
    )
    if metric["service_id"] != service_id and not of_backend:
        raise refusals.not_found()
    return metric


@ROUTES.add("GET", _OF_PLAN)
def index_of_plan(call: Call) -> Answer:
    found, page = call.page(tables.LIMITS, plan_id=plans.application_plan_of(call).id)
    return answers.collection("limits", "limit", [_show(call, each) for each in found], page)


@ROUTES.add("GET", _OF_METRIC)
def index(call: Call) -> Answer:
    plan = plans.application_plan_of(call)
    found, page = call.page(tables.LIMITS, plan_id=plan.id, metric_id=metric_of(call, plan).id)
    return answers.collection("limits", "limit", [_show(call, each) for each in found], page)


@ROUTES.add("GET", f"{_OF_METRIC}/{{limit}}")
def read(call: Call) -> Answer:
    return answers.item("limit", _show(call, _of(call)))


@ROUTES.add("POST", _OF_METRIC)
def create(call: Call) -> Answer:
    plan = plans.application_plan_of(call)
    metric = metric_of(call, plan)
    values = _values(call, {})
    if call.store.find(tables.LIMITS, plan_id=plan.id, metric_id=metric.id, period=values["period"]):
        raise refusals.invalid({"period": [refusals.TAKEN]})
    limit = call.store.insert(tables.LIMITS, **values, plan_id=plan.id, metric_id=metric.id)
    return answers.item("limit", _show(call, limit), created=True)


@ROUTES.add("PUT PATCH", f"{_OF_METRIC}/{{limit}}")
def change(call: Call) -> Answer:
    limit = _of(call)
    values = _values(call, {"period": limit["period"], "value": limit["value"]})
    other = call.store.find(
        tables.LIMITS, plan_id=limit["plan_id"], metric_id=limit["metric_id"], period=values["period"]
    )
    if other is not None and other.id != limit.id:
        raise refusals.invalid({"period": [refusals.TAKEN]})
    return answers.item("limit", _show(call, call.store.update(limit, **values)))


@ROUTES.add("DELETE", f"{_OF_METRIC}/{{limit}}")
def delete(call: Call) -> Answer:
    call.store.delete(_of(call))
    return answers.done()


def _of(call: Call) -> Record:
    plan = plans.application_plan_of(call)
    return call.find(tables.LIMITS, id=call.id("limit"), plan_id=plan.id, metric_id=metric_of(call, plan).id)


def _values(call: Call, known: JsonObject) -> JsonObject:
    sent = call.parameters.within("limit", "usage_limit")
    values = known | sent.texts(("period",)) | ({"value": sent.get("value")} if "value" in sent else {})
    complaints = Complaints()
    complaints.if_blank(values, "period", "value")
    if values.get("period"):
        complaints.if_unlisted(values, "period", PERIODS)
    if values.get("value") not in (None, ""):
        number = as_decimal(values["value"])
        if number is None:
            complaints.add("value", refusals.NOT_A_NUMBER)
        elif number < 0:
            complaints.add("value", refusals.NEGATIVE)
        else:
            values["value"] = int(number)
    complaints.settle()
    return values


def _show(call: Call, limit: Record) -> JsonObject:
    fields: JsonObject = {
        "id": limit.id,
        "period": limit["period"],
        "value": limit["value"],
        "metric_id": limit["metric_id"],
        "plan_id": limit["plan_id"],
    }
    own = f"/admin/api/application_plans/{limit['plan_id']}/metrics/{limit['metric_id']}/limits/{limit.id}"
    return shown(call, limit, own, fields)
