"""3scale's state after a call, computed from the response.

When 3scale deletes a metric, it also deletes the metric's rules, limits and prices. When it deletes a backend usage, it
also deletes the limits and prices of that backend's metrics. A part that becomes unknown is set to None and read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from domain.schema import Json
from domain.threescale.auto_promotion import newest_after, promoted
from domain.threescale.calls import Read, Resource, Write
from domain.threescale.constants import APICAST, BUILT_IN
from domain.threescale.product_sync import touches_gateway
from domain.threescale.remote_state import (
    FoundBackend,
    FoundBackendApi,
    FoundLimit,
    FoundMappingRule,
    FoundMetric,
    FoundPlan,
    FoundPricingRule,
    FoundProduct,
    FoundService,
    FoundUsage,
    Identified,
    answer_of,
    answers_of,
)

_OWN_CHAIN: tuple[dict[str, Json], ...] = (
    {"name": APICAST, "version": BUILT_IN, "configuration": {}, "enabled": True},
)
_METRICS = (Resource.METRIC, Resource.METHOD)
Item = TypeVar("Item", bound=Identified)


def read_product(found: FoundProduct, read: Read, answer: object, system_name: str) -> FoundProduct:
    wrapper = read.resource.value
    match read.resource:
        case Resource.SERVICE:
            services = [FoundService.model_validate(each) for each in _many(read, answer)]
            service = next((each for each in services if read.of or each.system_name == system_name), None)
            return found.model_copy(update={"service": service, **_lookup_result(read, service)})
        case Resource.METRIC if read.of:
            return found.model_copy(update={"used": {**found.used, read.of: _listed(FoundMetric, wrapper, answer)}})
        case Resource.METRIC:
            return found.model_copy(update={"metrics": _listed(FoundMetric, wrapper, answer)})
        case Resource.RULE:
            rules = tuple(FoundMappingRule.model_validate(each) for each in answers_of(wrapper, answer))
            return found.model_copy(update={"rules": rules})
        case Resource.USAGE:
            return found.model_copy(update={"usages": _listed(FoundUsage, wrapper, answer)})
        case Resource.PLAN:
            return found.model_copy(update={"plans": _listed(FoundPlan, wrapper, answer)})
        case Resource.LIMIT:
            return _plan_with(found, read.of, {"limits": _listed(FoundLimit, wrapper, answer)})
        case Resource.PRICING_RULE:
            return _plan_with(found, read.of, {"pricing_rules": _listed(FoundPricingRule, wrapper, answer)})
        case Resource.PROXY:
            return found.model_copy(update={"proxy": answer_of(wrapper, answer)})
        case Resource.CHAIN:
            return found.model_copy(update={"chain": answers_of("", answer)})
        case Resource.FLOW:
            return found.model_copy(update={"flow": answer_of(wrapper, answer)})
        case Resource.CONFIG:
            return found.model_copy(update={"configs": newest_after(found.configs, read, answer)})
    return found


def wrote_product(found: FoundProduct, write: Write, answer: object) -> FoundProduct:
    after = _product(found, write, answer)
    if write.deploys:
        return after.model_copy(update={"deployed": write.deploys})
    return after.model_copy(update={"deployed": ""}) if touches_gateway(write) else after


def read_backend(found: FoundBackend, read: Read, answer: object, system_name: str) -> FoundBackend:
    wrapper = read.resource.value
    if read.resource is Resource.BACKEND:
        backends = [FoundBackendApi.model_validate(each) for each in _many(read, answer)]
        backend = next((each for each in backends if read.of or each.system_name == system_name), None)
        return found.model_copy(update={"backend": backend, **_lookup_result(read, backend)})
    if read.resource is Resource.METRIC:
        return found.model_copy(update={"metrics": _listed(FoundMetric, wrapper, answer)})
    rules = tuple(FoundMappingRule.model_validate(each) for each in answers_of(wrapper, answer))
    return found.model_copy(update={"rules": rules})


def wrote_backend(found: FoundBackend, write: Write, answer: object) -> FoundBackend:
    if write.resource is Resource.BACKEND:
        if write.method == "DELETE":
            return FoundBackend(looked=True)
        backend = FoundBackendApi.model_validate(answer_of(write.resource.value, answer))
        # A new backend has one metric, whose id must be read, and no rule.
        fresh: dict[str, object] = {"metrics": None, "rules": ()} if write.method == "POST" else {}
        return found.model_copy(update={"backend": backend, **fresh})
    rules = found.rules or ()
    if write.resource in _METRICS:
        metrics = _changed(FoundMetric, found.metrics or (), write, answer)
        if write.method == "DELETE":
            rules = tuple(each for each in rules if each.metric_id != write.id)
        return found.model_copy(update={"metrics": metrics, "rules": rules})
    return found.model_copy(update={"rules": _moved(rules, write, answer)})


def _product(found: FoundProduct, write: Write, answer: object) -> FoundProduct:
    wrapper = write.resource.value
    match write.resource:
        case Resource.SERVICE if write.method == "DELETE":
            return FoundProduct(looked=True)
        case Resource.SERVICE:
            service = FoundService.model_validate(answer_of(wrapper, answer))
            if write.method == "PUT":
                # The fields of the proxy depend on the authentication, so they are read again.
                unread = {"proxy": None} if touches_gateway(write) else {}
                return found.model_copy(update={"service": service, **unread})
            return FoundProduct(
                looked=True, service=service, usages=(), plans=(), proxy={}, flow={}, chain=_OWN_CHAIN, used=found.used
            )
        case Resource.METRIC | Resource.METHOD:
            after = found.model_copy(update={"metrics": _changed(FoundMetric, found.metrics or (), write, answer)})
            return _without_metric(after, write.id) if write.method == "DELETE" else after
        case Resource.RULE:
            return found.model_copy(update={"rules": _moved(found.rules or (), write, answer)})
        case Resource.USAGE:
            after = found.model_copy(update={"usages": _changed(FoundUsage, found.usages or (), write, answer)})
            return _without_backend(after) if write.method == "DELETE" else after
        case Resource.PLAN:
            return found.model_copy(update={"plans": _plans(found.plans or (), write, answer)})
        case Resource.LIMIT:
            plan = _plan(found, write.of)
            return _plan_with(found, write.of, {"limits": _changed(FoundLimit, plan.limits or (), write, answer)})
        case Resource.PRICING_RULE:
            plan = _plan(found, write.of)
            return _plan_with(
                found, write.of, {"pricing_rules": _changed(FoundPricingRule, plan.pricing_rules or (), write, answer)}
            )
        case Resource.PROXY:
            # A change of the proxy deploys, which creates another version.
            return found.model_copy(update={"proxy": answer_of(wrapper, answer), "configs": {}})
        case Resource.CHAIN:
            return found.model_copy(update={"chain": answers_of("", answer), "configs": {}})
        case Resource.FLOW:
            return found.model_copy(update={"flow": answer_of(wrapper, answer)})
        case Resource.CONFIG:
            return found.model_copy(update={"configs": promoted(found.configs)})
    return found


def _lookup_result(read: Read, found: object) -> dict[str, bool]:
    lost = bool(read.of) and found is None
    return {"looked": not lost, "lost": lost}


def _many(read: Read, answer: object) -> tuple[dict[str, Json], ...]:
    if answer is None:
        return ()
    return (answer_of(read.resource.value, answer),) if read.of else answers_of(read.resource.value, answer)


def _listed(kind: type[Item], wrapper: str, answer: object) -> tuple[Item, ...]:
    return tuple(kind.model_validate(each) for each in answers_of(wrapper, answer))


def _changed(kind: type[Item], items: Sequence[Item], write: Write, answer: object) -> tuple[Item, ...]:
    others = tuple(each for each in items if each.id != write.id)
    if write.method == "DELETE":
        return others
    return (*others, kind.model_validate(answer_of(write.resource.value, answer)))


def _moved(rules: Iterable[FoundMappingRule], write: Write, answer: object) -> tuple[FoundMappingRule, ...]:
    listed = sorted(rules, key=lambda each: (each.position, each.id))
    index = next((place for place, each in enumerate(listed) if each.id == write.id), len(listed))
    rest = [each for each in listed if each.id != write.id]
    if write.method != "DELETE":
        rule = FoundMappingRule.model_validate(answer_of(write.resource.value, answer))
        rest.insert(max(rule.position, 1) - 1 if "position" in write.fields else index, rule)
    return tuple(each.model_copy(update={"position": place}) for place, each in enumerate(rest, 1))


def _plans(plans: Sequence[FoundPlan], write: Write, answer: object) -> tuple[FoundPlan, ...]:
    before = next((each for each in plans if each.id == write.id), None)
    changed = _changed(FoundPlan, plans, write, answer)
    if write.method == "DELETE":
        return changed
    former = {"limits": before.limits, "pricing_rules": before.pricing_rules} if before else {}
    terms: dict[str, object] = {"limits": (), "pricing_rules": (), **former}
    return (*changed[:-1], changed[-1].model_copy(update=terms))


def _plan(found: FoundProduct, id_: int) -> FoundPlan:
    return next(each for each in found.plans or () if each.id == id_)


def _plan_with(found: FoundProduct, id_: int, update: dict[str, object]) -> FoundProduct:
    plans = tuple(each.model_copy(update=update) if each.id == id_ else each for each in found.plans or ())
    return found.model_copy(update={"plans": plans})


def _without_metric(found: FoundProduct, id_: int) -> FoundProduct:
    rules = found.rules and tuple(each for each in found.rules if each.metric_id != id_)
    plans = found.plans and tuple(
        plan.model_copy(
            update={
                "limits": plan.limits and tuple(each for each in plan.limits if each.metric_id != id_),
                "pricing_rules": plan.pricing_rules
                and tuple(each for each in plan.pricing_rules if each.metric_id != id_),
            }
        )
        for plan in found.plans
    )
    return found.model_copy(update={"rules": rules, "plans": plans})


def _without_backend(found: FoundProduct) -> FoundProduct:
    own = {each.id for each in found.metrics or ()}
    foreign = any(each.metric_id not in own for plan in found.plans or () for each in plan.limits or ())
    foreign = foreign or any(
        each.metric_id not in own for plan in found.plans or () for each in plan.pricing_rules or ()
    )
    if not foreign:
        return found
    unread = {"limits": None, "pricing_rules": None}
    return found.model_copy(update={"plans": tuple(each.model_copy(update=unread) for each in found.plans or ())})
