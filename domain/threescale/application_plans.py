"""The calls for application plans with their limits and prices.

Limits are identified by period and metric, and changed in place. Prices cannot be changed: an old price is deleted
before its replacement is created, because ranges must not overlap. 3scale refuses to delete a plan with applications.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from domain.schema import Json
from domain.threescale.calls import Read, Resource, Write, change, creation, deletion
from domain.threescale.normalize import bare_name, same_money
from domain.threescale.remote_state import FoundLimit, FoundMetric, FoundPlan, FoundPricingRule
from domain.threescale.resources.product import ApplicationPlan, PricingRule
from domain.threescale.resources.shared import MetricReference

_PUBLISHED = "published"

MetricIds = Mapping[tuple[str, str], int]
"""Ids of metrics, by the system names of backend and metric; the former is empty for the product's own metrics."""


def metric_ids(
    own: Iterable[FoundMetric], backends: Mapping[str, int], used: Mapping[int, Sequence[FoundMetric]]
) -> dict[tuple[str, str], int]:
    ids = {("", each.system_name): each.id for each in own}
    for name, backend_id in backends.items():
        ids |= {(name, bare_name(each.system_name, backend_id)): each.id for each in used.get(backend_id, ())}
    return ids


def references(plans: Mapping[str, ApplicationPlan]) -> set[MetricReference]:
    limits = {limit.metric_method_ref for plan in plans.values() for limit in plan.limits}
    return limits | {price.metric_method_ref for plan in plans.values() for price in plan.pricing_rules}


def reads(found: Sequence[FoundPlan], wanted: Mapping[str, ApplicationPlan]) -> Iterable[Read]:
    for plan in found:
        if plan.system_name not in wanted:
            continue
        path = f"application_plans/{plan.id}"
        if plan.limits is None:
            yield Read(resource=Resource.LIMIT, path=f"{path}/limits", of=plan.id, paged=True)
        if plan.pricing_rules is None:
            yield Read(resource=Resource.PRICING_RULE, path=f"{path}/pricing_rules", of=plan.id)


def offer(service_id: int, wanted: Mapping[str, ApplicationPlan], found: Sequence[FoundPlan]) -> tuple[Write, ...]:
    path = f"services/{service_id}/application_plans"
    there = {plan.system_name: plan for plan in found}
    writes = []
    for name, plan in sorted(wanted.items()):
        if name not in there:
            fields = {"system_name": name, "name": plan.name or name, **_fields(plan)}
            if plan.published:
                fields["state_event"] = "publish"
            writes.append(creation(Resource.PLAN, path, fields, {"system_name": name}, name))
        elif differing := _differing(plan, there[name]):
            writes.append(change(Resource.PLAN, path, there[name].id, differing, name))
    for name, gone in sorted(there.items()):
        if name not in wanted:
            writes.append(deletion(Resource.PLAN, path, gone.id, name))
    return tuple(writes)


def limit_and_price(plan: ApplicationPlan, found: FoundPlan, ids: MetricIds) -> tuple[Write, ...]:
    return (*_limits(plan, found, ids), *_prices(plan, found, ids))


def id_of(reference: MetricReference, ids: MetricIds) -> int | None:
    return ids.get((reference.backend or "", reference.system_name))


def _fields(plan: ApplicationPlan) -> dict[str, Json]:
    fields: dict[str, Json] = {
        "approval_required": plan.apps_require_approval,
        "trial_period_days": plan.trial_period,
        "setup_fee": plan.setup_fee,
        "cost_per_month": plan.cost_month,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _differing(plan: ApplicationPlan, found: FoundPlan) -> dict[str, Json]:
    fields: dict[str, Json] = {}
    if plan.name and plan.name != found.name:
        fields["name"] = plan.name
    for name, value in _fields(plan).items():
        now = getattr(found, name)
        same = same_money(str(value), now) if name in ("setup_fee", "cost_per_month") else value == now
        if not same:
            fields[name] = value
    if bool(plan.published) != (found.state == _PUBLISHED):
        fields["state_event"] = "publish" if plan.published else "hide"
    return fields


def _limits(plan: ApplicationPlan, found: FoundPlan, ids: MetricIds) -> Iterable[Write]:
    wanted = {(each.period, id_of(each.metric_method_ref, ids)): each.value for each in plan.limits}
    there: dict[tuple[str, int | None], FoundLimit] = {}
    for each in found.limits or ():
        first = there.setdefault((each.period, each.metric_id), each)
        if first is not each or (each.period, each.metric_id) not in wanted:
            path = _path(found, each.metric_id, "limits")
            yield deletion(Resource.LIMIT, path, each.id, f"{found.system_name} per {each.period}", of=found.id)
    for (period, metric_id), value in wanted.items():
        now = there.get((period, metric_id))
        if metric_id is None or (now is not None and now.value == value):
            continue
        fields: dict[str, Json] = {"period": period, "value": value}
        path, about = _path(found, metric_id, "limits"), f"{found.system_name} per {period}"
        if now is not None:
            yield change(Resource.LIMIT, path, now.id, fields, about, of=found.id)
        else:
            yield creation(Resource.LIMIT, path, fields, {"period": period}, about, of=found.id)


def _path(plan: FoundPlan, metric_id: int | None, terms: str) -> str:
    return f"application_plans/{plan.id}/metrics/{metric_id}/{terms}"


def _prices(plan: ApplicationPlan, found: FoundPlan, ids: MetricIds) -> Iterable[Write]:
    left = [each for each in plan.pricing_rules if id_of(each.metric_method_ref, ids) is not None]
    for there in found.pricing_rules or ():
        existing = next((each for each in left if _is_same(each, there, ids)), None)
        if existing is None:
            path = _path(found, there.metric_id, "pricing_rules")
            yield deletion(Resource.PRICING_RULE, path, there.id, _about(found, there.min, there.max), of=found.id)
        else:
            left.remove(existing)
    for each in left:
        path = _path(found, id_of(each.metric_method_ref, ids), "pricing_rules")
        key = {"min": each.from_, "max": each.to}
        fields = {**key, "cost_per_unit": each.price_per_unit}
        yield creation(Resource.PRICING_RULE, path, fields, key, _about(found, each.from_, each.to), of=found.id)


def _about(plan: FoundPlan, first: int, last: int) -> str:
    return f"{plan.system_name} from {first} to {last}"


def _is_same(wanted: PricingRule, found: FoundPricingRule, ids: MetricIds) -> bool:
    range_ = (wanted.from_, wanted.to, id_of(wanted.metric_method_ref, ids))
    return range_ == (found.min, found.max, found.metric_id) and same_money(wanted.price_per_unit, found.cost_per_unit)
