"""Validation of Product and Backend specs and of a DeveloperUser's e-mail address.

Faults have a fixed order, so that their order never changes a status. To find duplicates, Perdure compares a friendly
name with other friendly names; the replaced operator compared it with system names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from domain.threescale.application_plan_validation import faults_of_plan
from domain.threescale.faults import Fault
from domain.threescale.normalize import same_path
from domain.threescale.resources.backend import BackendSpec
from domain.threescale.resources.product import ProductSpec
from domain.threescale.resources.shared import HITS, MappingRule, Metric, ProductMethod

# One `@`, preceded by something and followed by a host with at least two characters.
_ADDRESS = re.compile(r"[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[a-zA-Z0-9](?:[a-zA-Z0-9.-]{0,253}[a-zA-Z0-9])")


def faults_of_product(spec: ProductSpec) -> tuple[Fault, ...]:
    if fault := fault_of_system_name(spec.system_name):
        return fault  # without a name no defaults are applied, so their absence is not reported
    found = [*_names("Product", spec.metrics, spec.methods)]
    local = {*spec.metrics, *spec.methods}
    found += _rules(spec.mapping_rules, local)
    for name, plan in sorted(spec.application_plans.items()):
        found += faults_of_plan(f"spec.applicationPlans[{name}]", plan, local)
    return tuple(found)


def faults_of_backend(spec: BackendSpec) -> tuple[Fault, ...]:
    if fault := fault_of_system_name(spec.system_name):
        return fault
    return (
        *_names("Backend", spec.metrics, spec.methods),
        *_rules(spec.mapping_rules, {*spec.metrics, *spec.methods}),
    )


def faults_of_paths(spec: ProductSpec) -> tuple[Fault, ...]:
    """3scale refuses two backends with the same path."""
    paths = sorted((usage.path.lower(), name) for name, usage in spec.backend_usages.items())
    return tuple(
        Fault(path=f"spec.backendUsages[{name}]", value=path, detail="path is not unique.")
        for index, (path, name) in enumerate(paths)
        if any(same_path(path, other) for other, _ in paths[:index])
    )


def fault_of_system_name(system_name: str) -> tuple[Fault, ...]:
    detail = "a name without letters or digits yields no system name."
    return () if system_name else (Fault(path="spec.systemName", value=None, detail=detail),)


def fault_of_address(email: str) -> Fault | None:
    detail = "Email address not valid"
    return None if _ADDRESS.fullmatch(email) else Fault(path="spec.email", value=email, detail=detail)


def _names(kind: str, metrics: Mapping[str, Metric], methods: Mapping[str, ProductMethod]) -> Iterable[Fault]:
    if not metrics:
        yield Fault(path="spec.metrics", value=None, detail=f"empty metrics is not valid for {kind}.")
    elif HITS not in metrics:
        detail = f"metrics map not valid for {kind}. 'hits' metric must exist."
        yield Fault(path="spec.metrics", value=", ".join(sorted(metrics)), detail=detail)
    for name in sorted({*metrics} & {*methods}):
        yield Fault(path=f"spec.methods[{name}]", value=name, detail="method system_name not unique.")
    shown = [("metrics", "metric", name, each.friendly_name) for name, each in sorted(metrics.items())]
    shown += [("methods", "method", name, each.friendly_name) for name, each in sorted(methods.items())]
    people = Counter(friendly_name for *_, friendly_name in shown)
    for field, what, name, friendly_name in shown:
        if people[friendly_name] > 1:
            yield Fault(path=f"spec.{field}[{name}]", value=friendly_name, detail=f"{what} name not unique.")


def _rules(rules: Iterable[MappingRule], local: set[str]) -> Iterable[Fault]:
    for index, rule in enumerate(rules):
        if rule.metric_method_ref not in local:
            yield Fault(
                path=f"spec.mappingRules[{index}]",
                value=rule.metric_method_ref,
                detail="mappingrule does not have valid metric or method reference.",
            )
