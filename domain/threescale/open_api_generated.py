"""The Product and Backend generated from an OpenAPI document, with the replaced operator's names.

    title ─► names of both objects  first server ─► address of the backend, base path of every rule
    operation ─► method and mapping rule          security ─► how callers authenticate

Operations with the same derived system name share a method, which gets the first operation's description.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeVar

from pydantic import Field, ValidationError

from domain.model import Model
from domain.reading import problem_of
from domain.resource import KubeModel
from domain.threescale import spec_defaults
from domain.threescale.open_api_authentication import authentication_of
from domain.threescale.open_api_document import OPERATION_EXTENSION, PRODUCT_EXTENSION, Api, Call, Unreadable
from domain.threescale.resources import ApplicationPlan, BackendSpec, MappingRule, Metric, Policy, ProductSpec
from domain.threescale.resources.documents import OpenApiSpec
from domain.threescale.resources.product import Authentication, BackendUsage, Deployment, Hosted, SelfManaged
from domain.threescale.resources.shared import HITS, ProductMethod
from domain.writes import merge

_NOT_WORD = re.compile(r"\W", re.ASCII)
_NOT_ALPHANUMERIC = re.compile(r"[^a-zA-Z0-9]")
# A DNS-1123 subdomain, as required for object names.
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_LONGEST_NAME = 253

S = TypeVar("S", ProductSpec, BackendSpec)


class Generated(Model):
    name: str
    product: ProductSpec
    backend: BackendSpec
    warnings: tuple[str, ...] = ()


class _Extension(KubeModel):
    metrics: dict[str, Metric] = {}
    policies: tuple[Policy, ...] = ()
    application_plans: dict[str, ApplicationPlan] = {}


class _Rule(KubeModel):
    metric_method_ref: str = ""
    increment: int = 0
    last: bool | None = None


class _OperationExtension(KubeModel):
    mapping_rule: _Rule = Field(_Rule())


def generate(spec: OpenApiSpec, api: Api, uid: str, system_name: str = "") -> Generated:
    """The Product and the Backend for a document. `uid` makes names unique. `system_name` is the system name of the
    existing Product and Backend; empty if none exist. Raises Unreadable.
    """
    title = api.info.title
    wanted = spec.product_system_name or system_name or _NOT_WORD.sub("_", title)
    authentication, warnings = authentication_of(spec, api)
    return Generated(
        name=name_of(title, uid),
        product=_product(spec, api, wanted, authentication),
        backend=_backend(spec, api, wanted),
        warnings=warnings,
    )


def name_of(title: str, uid: str) -> str:
    name = f"{_NOT_ALPHANUMERIC.sub('', title).lower()}-{uid}"
    if not _SUBDOMAIN.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise Unreadable(f"info.title: {title!r} gives no valid object name: {name!r}")
    return name


def _backend(spec: OpenApiSpec, api: Api, system_name: str) -> BackendSpec:
    wanted = BackendSpec(
        name=f"{api.info.title} Backend",
        system_name=system_name,
        description=f"Backend of {api.info.title}",
        private_base_url=spec.private_base_url or api.host,
        provider_account_ref=spec.provider_account_ref,
    )
    return _with(wanted, spec_defaults.of_backend(wanted))


def _product(spec: OpenApiSpec, api: Api, system_name: str, authentication: Authentication) -> ProductSpec:
    extension = _read(_Extension, api.extension, PRODUCT_EXTENSION)
    _complete(extension)
    named = _named(api.calls)
    first: dict[str, Call] = {}
    for name, call in named:
        first.setdefault(name, call)
    wanted = ProductSpec(
        name=api.info.title,
        system_name=system_name,
        description=api.info.description or None,
        deployment=_deployment(spec, authentication),
        methods={name: _method(call) for name, call in first.items()},
        mapping_rules=tuple(_rule(spec, api, name, call) for name, call in named),
        backend_usages={system_name: BackendUsage(path="/")},
        metrics=extension.metrics,
        policies=extension.policies,
        application_plans=extension.application_plans,
        provider_account_ref=spec.provider_account_ref,
    )
    return _with(wanted, spec_defaults.of_product(wanted))


def _with(spec: S, fields: Mapping[str, object]) -> S:
    return type(spec).model_validate(merge(spec.model_dump(mode="json"), dict(fields)))


def _complete(extension: _Extension) -> None:
    for name, metric in sorted(extension.metrics.items()):
        if not metric.friendly_name or not metric.unit:
            raise Unreadable(f"{PRODUCT_EXTENSION}: metric {name!r} needs friendlyName and unit")
    for policy in extension.policies:
        if not policy.name or not policy.version:
            raise Unreadable(f"{PRODUCT_EXTENSION}: a policy needs name and version")


def _friendly_name(call: Call) -> str:
    return call.operation.operation_id or f"{call.verb}{_NOT_WORD.sub('', call.path)}"


def _named(calls: Iterable[Call]) -> list[tuple[str, Call]]:
    """The operations with their methods' system names, which may repeat. Raises Unreadable if an operationId repeats,
    or if an operation would be named like the metric of all hits.
    """
    named = []
    by_name: dict[str, Call] = {}
    for call in calls:
        id_, name = call.operation.operation_id, _NOT_WORD.sub("_", _friendly_name(call).lower())
        other = by_name.setdefault(id_, call) if id_ else call
        if other is not call:
            raise Unreadable(f"{call.verb} {call.path} and {other.verb} {other.path} have the same operationId {id_!r}")
        if name == HITS:
            raise Unreadable(
                f"the method of {call.verb} {call.path} would be named {name!r}, like 3scale's built-in metric: "
                "give the operation another operationId"
            )
        named.append((name, call))
    return named


def _method(call: Call) -> ProductMethod:
    return ProductMethod(friendly_name=_friendly_name(call), description=call.operation.description or None)


def _rule(spec: OpenApiSpec, api: Api, name: str, call: Call) -> MappingRule:
    where = f"{call.verb} {call.path}: {OPERATION_EXTENSION}"
    extension = _read(_OperationExtension, call.operation.extension, where).mapping_rule
    return MappingRule(
        http_method=call.verb,
        pattern=f"{api.base_path}{call.path}{'' if spec.prefix_matching else '$'}",
        metric_method_ref=extension.metric_method_ref or name,
        increment=extension.increment or 1,
        last=extension.last,
    )


def _deployment(spec: OpenApiSpec, authentication: Authentication) -> Deployment:
    staging, production = spec.staging_public_base_url, spec.production_public_base_url
    if not staging and not production:
        return Deployment(apicast_hosted=Hosted(authentication=authentication))
    managed = SelfManaged(
        authentication=authentication, staging_public_base_url=staging, production_public_base_url=production
    )
    return Deployment(apicast_self_managed=managed)


M = TypeVar("M", bound=KubeModel)


def _read(model: type[M], value: object, where: str) -> M:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise Unreadable(f"{where}: {problem_of(error)}") from None
