"""The plan for a Service: create, update or release its LoadBalancer.

| Service | LoadBalancer | what happens |
|---|---|---|
| of a class that another installation serves | absent | nothing; our finalizer stays, unless `release_foreign` is set |
| not of type LoadBalancer, being deleted, or of another class | present | the LoadBalancer is deleted |
| not of type LoadBalancer, or being deleted | absent | the Service's address and finalizer are removed |
| of our class, with something that cannot be served | any | a warning is reported; only endpoints change |
| of our class | absent | the finalizer is added, then the whole LoadBalancer is created in one request |
| of our class | present | all differences are corrected in one patch |

A patch changes only fields that the Service determines. Differences in spelling (order of additional networks, empty or
absent lists, `5m` or `5m0s`) stay as stored: the template hash covers the stored form, so a change would replace every
machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from domain.loadbalancers import LOAD_BALANCER
from domain.loadbalancers.constants import (
    API_VERSION,
    LOAD_BALANCER_LABEL,
    SERVICE_NAME_ANNOTATION,
)
from domain.loadbalancers.go_formats import parse_duration
from domain.loadbalancers.names import load_balancer_label, load_balancer_name, service_name
from domain.loadbalancers.resources import (
    Endpoint,
    Infrastructure,
    LoadBalancer,
    LoadBalancerOptions,
    LoadBalancerSpec,
    Port,
    Selector,
)
from domain.loadbalancers.services.endpoints import endpoints_of
from domain.loadbalancers.services.existing_floating_ip import address_to_store, creation_problem, ignored
from domain.loadbalancers.services.objects import Installation, Node, Service
from domain.loadbalancers.services.service_annotations import ServiceAnnotations, parse_annotations
from domain.loadbalancers.services.service_class import drops_finalizer, wants_balancer
from domain.loadbalancers.services.service_validation import fault_of
from domain.loadbalancers.services.unreadable_annotations import keeping, limited
from domain.model import Model
from domain.notices import Notice, normal, warning
from domain.schema import Document
from domain.writes import JsonPatch, difference

M = TypeVar("M", bound=Model)

_PORTS_SYNCED = "LoadBalancer ports successfully synced with service ports"
_ENDPOINTS_SYNCED = "LoadBalancer endpoints successfully synced with nodes addresses"


class ServiceWork(Model):
    """The next changes, in this order."""

    add_finalizer: bool = False  # before anything else exists for the Service
    create: Document = {}
    patch: JsonPatch = {}
    delete: bool = False  # the LoadBalancer's workflow removes machines and cloud objects
    clear_ingress: bool = False  # remove the Service's address
    drop_finalizer: bool = False
    waits_for: str = ""  # what must happen first
    problem: str = ""  # what a person has to correct
    notices: tuple[Notice, ...] = ()

    @property
    def idle(self) -> bool:
        done = (self.add_finalizer, self.create, self.patch, self.delete, self.clear_ingress, self.drop_finalizer)
        return not any(done)


def work_for(
    service: Service, balancer: LoadBalancer | None, nodes: Iterable[Node], installation: Installation
) -> ServiceWork:
    stranger = other_service(service, balancer)
    if not wants_balancer(installation, service):
        return _release(service, None if stranger else balancer, release=drops_finalizer(installation, service))
    if stranger:
        problem = f"validation failed: LoadBalancer {load_balancer_name(service.metadata)} serves Service {stranger}"
        return ServiceWork(problem=problem, notices=(warning("Failed", problem),))
    endpoints = endpoints_of(service, nodes)
    if problem := fault_of(service):
        return _unservable(balancer, endpoints, f"validation failed: {problem}")
    annotations = parse_annotations(service, installation)
    finalizer = not service.held
    if balancer is None:
        return _creation(service, annotations, endpoints, installation, finalizer=finalizer)
    if balancer.metadata.deleting:
        return ServiceWork(waits_for="the previous LoadBalancer is gone", notices=annotations.notices)
    synchronized = _synchronization(service, balancer, annotations, endpoints)
    return synchronized.model_copy(update={"add_finalizer": finalizer})


def _release(service: Service, balancer: LoadBalancer | None, *, release: bool) -> ServiceWork:
    if balancer is not None and (service.held or balancer.service == service_name(service.metadata)):
        gone = "the LoadBalancer is gone"
        return ServiceWork(waits_for=gone) if balancer.metadata.deleting else ServiceWork(delete=True, waits_for=gone)
    if not service.held or not release:
        return ServiceWork()
    return ServiceWork(clear_ingress=bool(service.ingress), drop_finalizer=True)


def other_service(service: Service, balancer: LoadBalancer | None) -> str:
    if balancer is None or balancer.service in ("", service_name(service.metadata)):
        return ""
    namespace, _, name = balancer.service.partition("/")
    other = service.metadata.model_copy(update={"namespace": namespace, "name": name})
    return balancer.service if load_balancer_name(other) == balancer.metadata.name else ""


def _unservable(balancer: LoadBalancer | None, endpoints: tuple[Endpoint, ...], problem: str) -> ServiceWork:
    # Nodes come and go meanwhile. As in yawol their addresses are still written, so that the former ports stay served.
    patch: JsonPatch = {}
    if balancer is not None and not balancer.metadata.deleting:
        stored = balancer.spec
        patch = _spec_patch(stored, stored.model_copy(update={"endpoints": _endpoints(stored, endpoints)}))
    return ServiceWork(patch=patch, problem=problem, notices=(warning("Failed", problem), *_synced(patch)))


def _creation(
    service: Service,
    annotations: ServiceAnnotations,
    endpoints: tuple[Endpoint, ...],
    installation: Installation,
    *,
    finalizer: bool,
) -> ServiceWork:
    if problem := creation_problem(annotations.problem):
        return ServiceWork(problem=problem, notices=(*annotations.notices, warning("Failed", problem)))
    meta, annotations = service.metadata, limited(annotations, LoadBalancerOptions())
    spec = LoadBalancerSpec(
        selector=Selector(match_labels={LOAD_BALANCER_LABEL: load_balancer_label(installation.namespace, meta)}),
        replicas=annotations.replicas,
        existing_floating_ip=annotations.existing_floating_ip,
        debug_settings=annotations.debug_settings,
        infrastructure=annotations.infrastructure,
        options=annotations.options,
        ports=service.spec.ports,
        endpoints=endpoints,
    )
    body = {
        "apiVersion": API_VERSION,
        "kind": LOAD_BALANCER.name,
        "metadata": {
            "name": load_balancer_name(meta),
            "namespace": installation.namespace,
            "annotations": {SERVICE_NAME_ANNOTATION: service_name(meta)},
        },
        "spec": spec.model_dump(mode="json", exclude_defaults=True),
    }
    return ServiceWork(add_finalizer=finalizer, create=body, notices=(*annotations.notices, *_created()))


def _synchronization(
    service: Service, balancer: LoadBalancer, annotations: ServiceAnnotations, endpoints: tuple[Endpoint, ...]
) -> ServiceWork:
    stored = balancer.spec
    annotations = keeping(annotations, stored)
    infrastructure, refused = _infrastructure(stored.infrastructure, annotations.infrastructure)
    existing, doubts = address_to_store(service, balancer, annotations.existing_floating_ip)
    wanted = stored.model_copy(
        update={
            "ports": service.spec.ports,
            "replicas": annotations.replicas,
            "endpoints": _endpoints(stored, endpoints),
            "infrastructure": infrastructure,
            "debug_settings": _as_stored(stored.debug_settings, annotations.debug_settings),
            "options": _options(stored.options, annotations.options),
            "existing_floating_ip": existing,
        }
    )
    patch = _spec_patch(stored, wanted)
    notices = (*annotations.notices, *ignored(annotations.problem), *refused, *doubts, *_synced(patch))
    if balancer.service != service_name(service.metadata):
        patch["metadata"] = {"annotations": {SERVICE_NAME_ANNOTATION: service_name(service.metadata)}}
    return ServiceWork(patch=patch, notices=notices)


def _endpoints(stored: LoadBalancerSpec, endpoints: tuple[Endpoint, ...]) -> tuple[Endpoint, ...]:
    same = sorted(stored.endpoints, key=lambda each: each.name) == list(endpoints)
    return stored.endpoints if same else endpoints


def _spec_patch(stored: LoadBalancerSpec, wanted: LoadBalancerSpec) -> JsonPatch:
    changes = difference(stored, wanted)
    if "ports" in changes:
        changes["ports"] = [_port(port) for port in wanted.ports]
    return {"spec": changes} if changes else {}


def _infrastructure(
    stored: Infrastructure, infrastructure: Infrastructure
) -> tuple[Infrastructure, tuple[Notice, ...]]:
    notices: tuple[Notice, ...] = ()
    if (infrastructure.project_id or "") != (stored.project_id or ""):
        notices = (warning("Failed", "project id is immutable, cant be changed after initial creation"),)
    keep: dict[str, object] = {"project_id": stored.project_id}
    if _network_ids(stored) == _network_ids(infrastructure):
        keep["additional_networks"] = stored.additional_networks
    return _as_stored(stored, infrastructure).model_copy(update=keep), notices


def _network_ids(infrastructure: Infrastructure) -> set[str]:
    return {each.network_id for each in infrastructure.additional_networks or ()}


def _options(stored: LoadBalancerOptions, options: LoadBalancerOptions) -> LoadBalancerOptions:
    """The options to store. An equal timeout keeps its stored spelling. Unused log forwarding keeps its stored
    settings, which are part of the template hash.
    """
    keep: dict[str, object] = {
        name: getattr(stored, name)
        for name in ("tcp_idle_timeout", "udp_idle_timeout")
        if _same_timeout(getattr(stored, name), getattr(options, name))
    }
    if not (stored.log_forward.enabled or options.log_forward.enabled):
        keep["log_forward"] = stored.log_forward
    return _as_stored(stored, options).model_copy(update=keep)


def _as_stored(stored: M, requested: M) -> M:
    update: dict[str, object] = {}
    for name in type(requested).model_fields:
        before, after = getattr(stored, name), getattr(requested, name)
        if isinstance(before, Model) and isinstance(after, Model):
            update[name] = _as_stored(before, after)
        elif not before and not after:
            update[name] = before
    return requested.model_copy(update=update)


def _same_timeout(one: str | None, other: str | None) -> bool:
    if one is None or other is None:
        return one is other
    return parse_duration(one) == parse_duration(other)


def _port(port: Port) -> Document:
    """The port without nulls: inside a list, a merge patch would store them."""
    return {**port.model_dump(mode="json", exclude_defaults=True), "protocol": port.protocol}


def done_since(balancer: LoadBalancer, generation: int) -> tuple[Notice, ...]:
    """The notices about an attempt whose answer was lost; empty if the attempt had no effect.

    `generation` is the LoadBalancer's generation before the attempt, 0 if there was no LoadBalancer. It is unknown
    which parts a change affected, so ports, replicas and endpoints are all reported.
    """
    now = balancer.metadata.generation
    if generation == 0:
        return _created() if now == 1 else ()
    if now == generation:
        return ()
    return _synced({"spec": {"ports": (), "replicas": 0, "endpoints": ()}})


def _created() -> tuple[Notice, ...]:
    """The two Events of a creation. yawol writes two, because it adds the ports a second later."""
    return (normal("creation", "LoadBalancer is in creation", each_time=True), _update(_PORTS_SYNCED))


def _synced(patch: JsonPatch) -> tuple[Notice, ...]:
    spec = patch.get("spec")
    changes = spec if isinstance(spec, dict) else {}
    options = changes.get("options")
    updates = {
        "ports": _PORTS_SYNCED,
        "replicas": "LoadBalancer replicas successfully synced with service replicas",
        "endpoints": _ENDPOINTS_SYNCED,
    }
    found = [_update(text) for part, text in updates.items() if part in changes]
    if isinstance(options, dict) and "loadBalancerSourceRanges" in options:
        found.append(_update("LoadBalancer SourceRanges successfully synced with service SourceRange"))
    return tuple(found)


def _update(message: str) -> Notice:
    return normal("update", message, each_time=True)
