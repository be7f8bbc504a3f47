"""3scale's state after a call, computed from the response.

When 3scale deletes a metric, it also deletes the metric's rules, limits and prices. When it deletes a backend usage, it
also deletes the limits and prices of that backend's metrics. A part that becomes unknown is set to None and read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from domain.threescale.auto_promotion import newest_after, promoted
from domain.threescale.calls import Read, Resource, Write
from domain.threescale.policy_chain import chain_of
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

_OWN_CHAIN = tuple(chain_of(()))
_LISTS: Mapping[Resource, tuple[str, type[Identified]]] = {
    Resource.METRIC: ("metrics", FoundMetric),
    Resource.METHOD: ("metrics", FoundMetric),
    Resource.RULE: ("rules", FoundMappingRule),
    Resource.USAGE: ("usages", FoundUsage),
    Resource.PLAN: ("plans", FoundPlan),
    Resource.LIMIT: ("limits", FoundLimit),
    Resource.PRICING_RULE: ("pricing_rules", FoundPricingRule),
}
WithMetric = TypeVar("WithMetric", FoundMappingRule, FoundLimit, FoundPricingRule)


def read_product(found: FoundProduct, read: Read, answer: object, system_name: str) -> FoundProduct:
    match read.resource:
        case Resource.SERVICE:
            return found.model_copy(update=_looked_up(FoundService, read, answer, system_name))
        case Resource.METRIC if read.of:
            used = {**found.used, read.of: _listed(read, answer)["metrics"]}
            return found.model_copy(update={"used": used})
        case Resource.LIMIT | Resource.PRICING_RULE:
            return _plan_with(found, read.of, _listed(read, answer))
        case Resource.PROXY:
            return found.model_copy(update={"proxy": answer_of(read.resource.value, answer)})
        case Resource.CHAIN:
            return found.model_copy(update={"chain": answers_of("", answer)})
        case Resource.FLOW:
            return found.model_copy(update={"flow": answer_of(read.resource.value, answer)})
        case Resource.CONFIG:
            return found.model_copy(update={"configs": newest_after(found.configs, read, answer)})
    return found.model_copy(update=_listed(read, answer))


def wrote_product(found: FoundProduct, write: Write, answer: object) -> FoundProduct:
    after = _product(found, write, answer)
    if write.deploys:
        return after.model_copy(update={"deployed": write.deploys})
    return after.model_copy(update={"deployed": ""}) if touches_gateway(write) else after


def read_backend(found: FoundBackend, read: Read, answer: object, system_name: str) -> FoundBackend:
    if read.resource is Resource.BACKEND:
        return found.model_copy(update=_looked_up(FoundBackendApi, read, answer, system_name))
    return found.model_copy(update=_listed(read, answer))


def wrote_backend(found: FoundBackend, write: Write, answer: object) -> FoundBackend:
    match write.resource:
        case Resource.BACKEND if write.method == "DELETE":
            return FoundBackend(looked=True)
        case Resource.BACKEND:
            backend = FoundBackendApi.model_validate(answer_of(write.resource.value, answer))
            # A new backend has one metric, whose id must be read, and no rule.
            fresh: dict[str, object] = {"metrics": None, "rules": ()} if write.method == "POST" else {}
            return found.model_copy(update={"entry": backend, **fresh})
        case Resource.RULE:
            return found.model_copy(update={"rules": _moved(found.rules or (), write, answer)})
    rules = _without(found.rules or (), write.id) if write.method == "DELETE" else found.rules or ()
    return found.model_copy(update={**_changed(found, write, answer), "rules": rules})


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
                return found.model_copy(update={"entry": service, **unread})
            return FoundProduct(
                looked=True, entry=service, usages=(), plans=(), proxy={}, flow={}, chain=_OWN_CHAIN, used=found.used
            )
        case Resource.METRIC | Resource.METHOD:
            after = found.model_copy(update=_changed(found, write, answer))
            return _without_metric(after, write.id) if write.method == "DELETE" else after
        case Resource.RULE:
            return found.model_copy(update={"rules": _moved(found.rules or (), write, answer)})
        case Resource.USAGE:
            after = found.model_copy(update=_changed(found, write, answer))
            return _without_backend(after) if write.method == "DELETE" else after
        case Resource.PLAN:
            return found.model_copy(update={"plans": _plans(found, write, answer)})
        case Resource.LIMIT | Resource.PRICING_RULE:
            plan = next(each for each in found.plans or () if each.id == write.of)
            return _plan_with(found, write.of, _changed(plan, write, answer))
        case Resource.PROXY:
            # A change of the proxy also deploys it, which creates a new version.
            return found.model_copy(update={"proxy": answer_of(wrapper, answer) or None, "configs": {}})
        case Resource.CHAIN:
            return found.model_copy(update={"chain": answers_of("", answer) or None, "configs": {}})
        case Resource.FLOW:
            return found.model_copy(update={"flow": answer_of(wrapper, answer) or None})
        case Resource.CONFIG:
            return found.model_copy(update={"configs": promoted(found.configs)})
    return found


def _looked_up(
    kind: type[FoundService | FoundBackendApi], read: Read, answer: object, system_name: str
) -> dict[str, object]:
    """The fields to update in a FoundProduct or FoundBackend after a read of its entry, by id or in a list."""
    wrapper = read.resource.value
    listed = answers_of(wrapper, answer) if not read.of else () if answer is None else (answer_of(wrapper, answer),)
    entries = [kind.model_validate(each) for each in listed]
    entry = next((each for each in entries if read.of or each.system_name == system_name), None)
    lost = bool(read.of) and entry is None
    return {"entry": entry, "looked": not lost, "lost": lost}


def _listed(read: Read, answer: object) -> dict[str, tuple[Identified, ...]]:
    field, kind = _LISTS[read.resource]
    return {field: tuple(kind.model_validate(each) for each in answers_of(read.resource.value, answer))}


def _changed(
    owner: FoundProduct | FoundBackend | FoundPlan, write: Write, answer: object
) -> dict[str, tuple[Any, ...]]:
    field, kind = _LISTS[write.resource]
    others = tuple(each for each in getattr(owner, field) or () if each.id != write.id)
    if write.method == "DELETE":
        return {field: others}
    return {field: (*others, kind.model_validate(answer_of(write.resource.value, answer)))}


def _moved(rules: Iterable[FoundMappingRule], write: Write, answer: object) -> tuple[FoundMappingRule, ...]:
    listed = sorted(rules, key=lambda each: (each.position, each.id))
    index = next((place for place, each in enumerate(listed) if each.id == write.id), len(listed))
    rest = [each for each in listed if each.id != write.id]
    if write.method != "DELETE":
        rule = FoundMappingRule.model_validate(answer_of(write.resource.value, answer))
        rest.insert(max(rule.position, 1) - 1 if "position" in write.fields else index, rule)
    return tuple(each.model_copy(update={"position": place}) for place, each in enumerate(rest, 1))


def _plans(found: FoundProduct, write: Write, answer: object) -> tuple[FoundPlan, ...]:
    before = next((each for each in found.plans or () if each.id == write.id), None)
    changed: tuple[FoundPlan, ...] = _changed(found, write, answer)["plans"]
    if write.method == "DELETE":
        return changed
    former = {"limits": before.limits, "pricing_rules": before.pricing_rules} if before else {}
    terms: dict[str, object] = {"limits": (), "pricing_rules": (), **former}
    return (*changed[:-1], changed[-1].model_copy(update=terms))


def _plan_with(found: FoundProduct, id_: int, update: Mapping[str, object]) -> FoundProduct:
    plans = tuple(each.model_copy(update=update) if each.id == id_ else each for each in found.plans or ())
    return found.model_copy(update={"plans": plans})


def _without(items: tuple[WithMetric, ...], metric_id: int) -> tuple[WithMetric, ...]:
    return tuple(each for each in items if each.metric_id != metric_id)


def _without_metric(found: FoundProduct, id_: int) -> FoundProduct:
    # Unread parts stay unread.
    rules = found.rules and _without(found.rules, id_)
    plans = found.plans and tuple(
        plan.model_copy(
            update={
                "limits": plan.limits and _without(plan.limits, id_),
                "pricing_rules": plan.pricing_rules and _without(plan.pricing_rules, id_),
            }
        )
        for plan in found.plans
    )
    return found.model_copy(update={"rules": rules, "plans": plans})


def _without_backend(found: FoundProduct) -> FoundProduct:
    own, plans = {each.id for each in found.metrics or ()}, found.plans or ()
    metrics = {each.metric_id for plan in plans for each in plan.limits or ()}
    metrics |= {each.metric_id for plan in plans for each in plan.pricing_rules or ()}
    if metrics <= own:
        return found
    unread = {"limits": None, "pricing_rules": None}
    return found.model_copy(update={"plans": tuple(each.model_copy(update=unread) for each in plans)})
