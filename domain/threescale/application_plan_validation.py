"""Validation of an application plan's limits and pricing rules.

Like 3scale and unlike the replaced operator, Perdure refuses a price range that begins where another ends.
"""

from __future__ import annotations

from collections.abc import Iterable

from domain.threescale.faults import Fault
from domain.threescale.resources.product import ApplicationPlan, PricingRule
from domain.threescale.resources.shared import MetricReference


def faults_of_plan(path: str, plan: ApplicationPlan, local: set[str]) -> Iterable[Fault]:
    seen: set[tuple[str, MetricReference]] = set()
    for index, limit in enumerate(plan.limits):
        where = f"{path}.limits[{index}]"
        if _is_lost(limit.metric_method_ref, local):
            detail = "limit does not have valid local metric or method reference."
            yield Fault(path=where, value=limit.metric_method_ref.system_name, detail=detail)
        if (limit.period, limit.metric_method_ref) in seen:
            yield Fault(path=where, value=limit.period, detail="limit period is not unique for the same metric.")
        seen.add((limit.period, limit.metric_method_ref))
    earlier: list[PricingRule] = []
    for index, rule in enumerate(plan.pricing_rules):
        where = f"{path}.pricingRules[{index}]"
        if _is_lost(rule.metric_method_ref, local):
            detail = "Pricing rule does not have valid local metric or method reference."
            yield Fault(path=where, value=rule.metric_method_ref.system_name, detail=detail)
        if rule.from_ > rule.to:
            detail = "'To' value cannot be less than your 'From' value."
            yield Fault(path=where, value=str(rule.to), detail=detail)
        elif any(_overlap(rule, other) for other in earlier):
            detail = "'From' value cannot be less than 'To' values of current rules for the same metric."
            yield Fault(path=where, value=str(rule.from_), detail=detail)
        earlier.append(rule)


def _is_lost(reference: MetricReference, local: set[str]) -> bool:
    return not reference.backend and reference.system_name not in local


def _overlap(one: PricingRule, other: PricingRule) -> bool:
    same = one.metric_method_ref == other.metric_method_ref
    return same and one.from_ <= other.to and other.from_ <= one.to
