"""The calls for a product.

    find the product ─► create it ─► read its parts ─► metrics, backend usages, plans ─► rules, limits, prices
        ─► flows, proxy, policies ─► deploy (─► promote) ─► delete unused metrics

Each decision returns all possible calls; calls that need an id from a response follow in the next decision. 3scale
deploys each change of proxy or policies to staging, so these calls come last and make a deploy call unnecessary. A
digest identifies the configuration in staging. After a crash the next pass finds that the digest differs, and deploys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from domain.model import Model
from domain.schema import Json
from domain.threescale.application_plans import id_of, limit_and_price, metric_ids, offer, reads, references
from domain.threescale.auto_promotion import promotion, reads_of_configs
from domain.threescale.calls import Read, Resource, Sync, Write, change, creation, deletion, read_entry, unless_refused
from domain.threescale.gateway_configuration import (
    backend_version,
    deployment_option,
    differing_proxy,
    flows,
    proxy_fields,
)
from domain.threescale.managed_by import MANAGED_BY, missing_mark
from domain.threescale.mapping_rules import order, without
from domain.threescale.methods_and_metrics import Owner, count
from domain.threescale.normalize import same_path, same_text, usage_path
from domain.threescale.policy_chain import chain_of, same_chain
from domain.threescale.remote_state import FoundPlan, FoundProduct, FoundService, FoundUsage
from domain.threescale.resources.product import ProductSpec
from domain.threescale.swapped_values import in_turn

_ASIDE = "/perdure-moves{}"


class Wanted(Model):
    spec: ProductSpec  # with defaults and values from Secrets
    backends: dict[str, int] = {}  # ids of the used backends, by system name
    gateway: str = ""  # the digest of the gateway part
    promote: bool = False  # also promote the configuration to production


def sync_product(wanted: Wanted, found: FoundProduct, known_id: int = 0, refused: Iterable[str] = ()) -> Sync:
    """Return the next calls, without the calls in `refused`, and without a deployment that depends on such a call."""
    spec, service = wanted.spec, found.entry
    if service is None:
        if not found.looked:
            return Sync(reads=(read_entry(Resource.SERVICE, "services", 0 if found.lost else known_id, paged=True),))
        return Sync(writes=unless_refused([_creation(spec)], refused))
    reads = tuple(_reads(wanted, found, service))
    return Sync(reads=reads) if reads else _sync(wanted, found, service, set(refused))


def _reads(wanted: Wanted, found: FoundProduct, service: FoundService) -> Iterable[Read]:
    path = f"services/{service.id}"
    if found.metrics is None:
        yield Read(resource=Resource.METRIC, path=f"{path}/metrics")
    if found.rules is None:
        yield Read(resource=Resource.RULE, path=f"{path}/proxy/mapping_rules")
    if found.usages is None:
        yield Read(resource=Resource.USAGE, path=f"{path}/backend_usages", paged=True)
    if found.plans is None:
        yield Read(resource=Resource.PLAN, path=f"{path}/application_plans")
    if found.proxy is None and proxy_fields(wanted.spec.deployment):
        yield Read(resource=Resource.PROXY, path=f"{path}/proxy")
    if found.chain is None:
        yield Read(resource=Resource.CHAIN, path=f"{path}/proxy/policies")
    if found.flow is None and flows(wanted.spec.deployment):
        yield Read(resource=Resource.FLOW, path=f"{path}/proxy/oidc_configuration")
    yield from reads(found.plans or (), wanted.spec.application_plans)
    for name in sorted({each.backend for each in references(wanted.spec.application_plans) if each.backend}):
        backend_id = wanted.backends.get(name)
        if backend_id is not None and backend_id not in found.used:
            yield Read(resource=Resource.METRIC, path=f"backend_apis/{backend_id}/metrics", of=backend_id, paged=True)


def _sync(wanted: Wanted, found: FoundProduct, service: FoundService, refused: set[str]) -> Sync:
    spec, owner = wanted.spec, Owner.product(service.id)
    counting = count(owner, spec.metrics, spec.methods, found.metrics or ())
    if counting.obstacles:
        return Sync(writes=tuple(_cleared(spec, owner, found, counting.obstacles, refused)))
    first = [*changes_of_service(spec, service), *counting.writes, *_usages(wanted, service, found.usages or ())]
    offers = offer(service.id, spec.application_plans, found.plans or ())
    writes = [*first, *offers]
    # If True, rules, limits and prices wait: creations return new ids, and deletions also remove limits and prices.
    unsettled = any(write.method != "PUT" for write in counting.writes) or any(
        each.method == "DELETE" for each in first
    )
    rules = None if unsettled else order(owner, spec.mapping_rules, found.metrics or (), found.rules or (), refused)
    ids = metric_ids(found.metrics or (), wanted.backends, found.used)
    missing = {each for each in references(spec.application_plans) if id_of(each, ids) is None}
    if rules is not None:
        writes += [*rules, *_terms(spec, found.plans or (), ids)]
    allowed = unless_refused(writes, refused)
    lost = tuple(sorted(f"{each.backend}/{each.system_name}" for each in missing if each.backend))
    if rules is None or any(write.slot in refused for write in first) or _is_held(spec, owner, found, refused):
        return Sync(writes=allowed, missing=lost)
    gateway = _gateway(wanted, found, service, before=(*first, *rules))
    allowed += unless_refused(gateway, refused)
    reads: tuple[Read, ...] = ()
    if not wanted.promote or not wanted.backends:
        allowed += unless_refused(counting.farewells, refused)
    elif not gateway:
        # Until the promotion, production uses the metrics to be deleted.
        reads = tuple(reads_of_configs(service.id, found.configs))
        onward = () if reads else promotion(service.id, found.configs)
        allowed += unless_refused((*onward, *counting.farewells), refused)
    return Sync(reads=reads, writes=allowed, missing=lost)


def _cleared(
    spec: ProductSpec, owner: Owner, found: FoundProduct, obstacles: tuple[Write, ...], refused: set[str]
) -> list[Write]:
    """The calls that free the gateway of `obstacles`, then delete the obstacles; empty if all deletions are refused."""
    allowed = unless_refused(obstacles, refused)
    if not allowed:
        return []
    metrics = found.metrics or ()
    rules = without(obstacles, spec.mapping_rules, owner.ids(metrics))
    writes = list(order(owner, rules, metrics, found.rules or (), refused) or ())
    if found.usages:
        writes.append(Write(resource=Resource.PROXY, method="POST", path=f"{owner.path}/proxy/deploy"))
    return [*writes, *allowed]


def _is_held(spec: ProductSpec, owner: Owner, found: FoundProduct, refused: set[str]) -> bool:
    """Whether the deployment must wait, because a refused call leaves the mapping rules incomplete."""
    whole = order(owner, spec.mapping_rules, found.metrics or (), found.rules or ()) or ()
    return any(write.slot in refused for write in whole)


def _creation(spec: ProductSpec) -> Write:
    fields: dict[str, Json] = {"name": spec.name, "system_name": spec.system_name, **_own_fields(spec)}
    fields["annotations"] = {**MANAGED_BY}
    return creation(Resource.SERVICE, "services", fields, {"system_name": spec.system_name}, spec.system_name)


def _own_fields(spec: ProductSpec) -> dict[str, Json]:
    fields: dict[str, Json] = {
        "description": spec.description,
        "deployment_option": deployment_option(spec.deployment),
        "backend_version": backend_version(spec.deployment),
    }
    return {name: value for name, value in fields.items() if value is not None}


def changes_of_service(spec: ProductSpec, service: FoundService) -> Iterable[Write]:
    # As with the replaced operator: an absent description equals an empty one.
    wanted = {"name": spec.name, "description": "", **_own_fields(spec)}
    fields = {name: value for name, value in wanted.items() if not same_text(str(value), getattr(service, name))}
    fields |= missing_mark(service.annotations)
    if fields:
        yield change(Resource.SERVICE, "services", service.id, fields, service.system_name)


def _usages(wanted: Wanted, service: FoundService, found: Iterable[FoundUsage]) -> Iterable[Write]:
    path = f"services/{service.id}/backend_usages"
    paths = {wanted.backends[name]: usage.path for name, usage in wanted.spec.backend_usages.items()}
    there: dict[int, FoundUsage] = {}
    for each in found:
        if each.backend_id in paths:
            there[each.backend_id] = each
            continue
        yield deletion(Resource.USAGE, path, each.id, f"backend {each.backend_id}")
    moves = {each.id: usage_path(paths[id_]) for id_, each in there.items() if not same_path(paths[id_], each.path)}
    backend_of = {each.id: each.backend_id for each in there.values()}
    current = {each.id: each.path for each in there.values()}
    # Temporary paths contain the current paths, so they are unique.
    for id_, to in in_turn(current, moves, aside=_ASIDE, normalized=str.lower):
        yield change(Resource.USAGE, path, id_, {"path": to}, f"backend {backend_of[id_]}")
    for backend_id, to in sorted(paths.items()):
        if backend_id not in there:
            fields: dict[str, Json] = {"backend_api_id": backend_id, "path": usage_path(to)}
            yield creation(Resource.USAGE, path, fields, {"backend_id": backend_id}, f"backend {backend_id}")


def _terms(spec: ProductSpec, plans: Iterable[FoundPlan], ids: Mapping[tuple[str, str], int]) -> Iterable[Write]:
    for plan in plans:
        wanted = spec.application_plans.get(plan.system_name)
        if wanted is not None:
            yield from limit_and_price(wanted, plan, ids)


def _gateway(wanted: Wanted, found: FoundProduct, service: FoundService, before: Iterable[Write]) -> list[Write]:
    """The last call deploys to staging."""
    deployment, path = wanted.spec.deployment, f"services/{service.id}/proxy"
    writes = []
    if any((found.flow or {}).get(name) != value for name, value in flows(deployment).items()):
        fields = flows(deployment)
        writes.append(Write(resource=Resource.FLOW, method="PATCH", path=f"{path}/oidc_configuration", fields=fields))
    if proxy := differing_proxy(proxy_fields(deployment), found.proxy or {}):
        writes.append(Write(resource=Resource.PROXY, method="PUT", path=path, fields=proxy))
    if not same_chain(wanted.spec.policies, found.chain or ()):
        chain: dict[str, Json] = {"policies_config": chain_of(wanted.spec.policies)}
        writes.append(Write(resource=Resource.CHAIN, method="PUT", path=f"{path}/policies", fields=chain))
    if not wanted.backends:
        return writes
    if writes and writes[-1].resource is not Resource.FLOW:
        writes[-1] = writes[-1].model_copy(update={"deploys": wanted.gateway})
    elif writes or found.deployed != wanted.gateway or any(touches_gateway(each) for each in before):
        deploy = Write(resource=Resource.PROXY, method="POST", path=f"{path}/deploy", deploys=wanted.gateway)
        writes.append(deploy)
    return writes


def touches_gateway(write: Write) -> bool:
    if write.resource is Resource.SERVICE:
        return "backend_version" in write.fields or "deployment_option" in write.fields
    return write.resource in (Resource.RULE, Resource.USAGE, Resource.FLOW)
