"""Pricing rules of application plans: a price per unit for a range of units.

A metric's ranges include both ends and must not overlap. A range may have no upper end. The price is a decimal with at
most four places.
"""

from __future__ import annotations

from decimal import Decimal

from localcloud.threescale import answers, refusals, tables
from localcloud.threescale.answers import Answer
from localcloud.threescale.call import Call, Routes, shown
from localcloud.threescale.contract import JsonObject
from localcloud.threescale.parameters import as_decimal
from localcloud.threescale.refusals import Complaints
from localcloud.threescale.resources import plans
from localcloud.threescale.resources.limits import metric_of
from localcloud.threescale.store import Record

ROUTES = Routes()

_OF_PLAN = "/admin/api/application_plans/{plan}/pricing_rules"
_OF_METRIC = "/admin/api/application_plans/{plan}/metrics/{metric}/pricing_rules"
_PLACES = 4


@ROUTES.add("GET", _OF_PLAN)
def index_of_plan(call: Call) -> Answer:
    found = call.all(tables.PRICING_RULES, plan_id=plans.application_plan_of(call).id)
    return answers.collection("pricing_rules", "pricing_rule", [_show(call, each) for each in found])


@ROUTES.add("GET", _OF_METRIC)
def index(call: Call) -> Answer:
    plan = plans.application_plan_of(call)
    found = call.all(tables.PRICING_RULES, plan_id=plan.id, metric_id=metric_of(call, plan).id)
    return answers.collection("pricing_rules", "pricing_rule", [_show(call, each) for each in found])


@ROUTES.add("POST", _OF_METRIC)
def create(call: Call) -> Answer:
    plan = plans.application_plan_of(call)
    metric = metric_of(call, plan)
    values = _values(call)
    others = call.store.all(tables.PRICING_RULES, plan_id=plan.id, metric_id=metric.id)
    if any(_overlap(values, dict(other.values)) for other in others):
        message = "The 'From' value must be greater than the 'To' values of other existing rules"
        raise refusals.invalid({"min": [message]})
    rule = call.store.insert(tables.PRICING_RULES, **values, plan_id=plan.id, metric_id=metric.id)
    return answers.item("pricing_rule", _show(call, rule), created=True)


@ROUTES.add("DELETE", f"{_OF_METRIC}/{{rule}}")
def delete(call: Call) -> Answer:
    plan = plans.application_plan_of(call)
    metric = metric_of(call, plan)
    call.store.delete(call.find(tables.PRICING_RULES, id=call.id("rule"), plan_id=plan.id, metric_id=metric.id))
    return answers.done()


def as_price(cost: Decimal) -> str:
    text = f"{cost.normalize():f}"
    return text if "." in text else f"{text}.0"


def _values(call: Call) -> JsonObject:
    sent = call.parameters.within("pricing_rule")
    complaints = Complaints()
    first = as_decimal(sent.get("min")) if sent.get("min") not in (None, "") else Decimal(1)
    last = as_decimal(sent.get("max"))
    cost = as_decimal(sent.get("cost_per_unit"))
    if first is None:
        complaints.add("min", refusals.NOT_A_NUMBER)
    elif first < 1:
        complaints.add("min", "must be greater than or equal to 1")
    if last is None and sent.get("max") not in (None, ""):
        complaints.add("max", refusals.NOT_A_NUMBER)
    elif last is not None and first is not None and last < first:
        complaints.add("max", "'To' value cannot be less than your 'From' value")
    if cost is None:
        complaints.add("cost_per_unit", refusals.NOT_A_NUMBER)
    elif cost < 0:
        complaints.add("cost_per_unit", refusals.NEGATIVE)
    elif cost != round(cost, _PLACES):
        complaints.add("cost_per_unit", f"can have at most {_PLACES} decimals")
    complaints.settle()
    assert first is not None
    assert cost is not None
    return {"min": int(first), "max": int(last) if last is not None else None, "cost_per_unit": as_price(cost)}


def _overlap(one: JsonObject, other: JsonObject) -> bool:
    return _starts_within(one, other) or _starts_within(other, one)


def _starts_within(one: JsonObject, other: JsonObject) -> bool:
    first, start, end = one["min"], other["min"], other["max"]
    assert isinstance(first, int)
    assert isinstance(start, int)
    return start <= first and (not isinstance(end, int) or first <= end)


def _show(call: Call, rule: Record) -> JsonObject:
    fields: JsonObject = {
        "id": rule.id,
        "metric_id": rule["metric_id"],
        "cost_per_unit": rule["cost_per_unit"],
        "min": rule["min"],
        "max": rule["max"],
    }
    own = f"/admin/api/application_plans/{rule['plan_id']}/metrics/{rule['metric_id']}/pricing_rules/{rule.id}"
    return shown(call, rule, own, fields)
