"""What the Service's side of load balancers watches: Services, Nodes, and Events about LoadBalancers.

| change of | wakes, besides itself |
|---|---|
| Service | nothing |
| Node: ready, about to go, its addresses | every Service that wants a load balancer; changes gather for half a second |
| LoadBalancer: spec, address, readiness, its going | its Service |
| Event about a LoadBalancer | the LoadBalancer's Service, which is told the same |

Most Services of a cluster are nobody's business here: a lifecycle is for those that want a load balancer of ours, hold
our finalizer, or have a LoadBalancer left. Kubelets write their Node every few minutes, and more often where pods come
and go: only what endpoints are made from is news. Nothing is watched where the settings have no Services served.
"""

from __future__ import annotations

from activities.loadbalancers.installation import installation_of
from domain.identity import Key
from domain.levers import LEVERS
from domain.loadbalancers import LOAD_BALANCER, SERVICE
from domain.loadbalancers.constants import (
    GROUP,
    LOAD_BALANCER_COMPONENT,
    LOG_LABEL_PREFIX,
    SERVICE_FINALIZER,
    SERVICE_NAME_ANNOTATION,
)
from domain.loadbalancers.names import load_balancer_name
from domain.loadbalancers.services.endpoints import what_matters
from domain.loadbalancers.services.objects import Installation, Node, Service
from domain.resource import ObjectMeta
from engine.kube import EVENT, NODE
from engine.kube.json import JsonObject, at, text
from engine.settings import settings
from starters.watch.index import Index
from starters.watch.kinds import Watched
from starters.watch.loadbalancer_figures import service_figures
from starters.watch.projection import Projection, View, generation, others_finalizers

AREA = "loadbalancers"

# A node pool that is rolled, or an API server that comes back, changes many nodes at once.
NODES_GATHER = 0.5
EVENTS = "Events of LoadBalancers"


class Reading:
    """How objects are read, and whom they concern, in one installation."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation

    def service(self, obj: JsonObject) -> View:
        """A Service."""
        read = Service.model_validate(obj)
        ours = self._installation.serves(read)
        return View(
            fingerprint=(
                read.spec.model_dump_json(),
                ours,
                read.held,
                others_finalizers(obj, SERVICE_FINALIZER),
                tuple(sorted(each for each in read.metadata.annotations.items() if _matters(each[0]))),
                read.status.model_dump_json(),
            ),
            facts={
                "wanted": "true" if self._installation.wants(read) else "",
                "held": "true" if read.held and self._installation.lets_go(read) else "",
                **service_figures(obj),
            },
        )

    def lives(self, known: Projection, index: Index) -> bool:
        """Whether a Service wants a load balancer, or has something of one left."""
        return bool(known.fact("wanted") or known.fact("held")) or self._has_balancer(known.key, index)

    def _has_balancer(self, key: Key, index: Index) -> bool:
        name = load_balancer_name(ObjectMeta(namespace=key.namespace, name=key.name))
        found = index.get(LOAD_BALANCER.name, self._installation.control_namespace, name)
        return found is not None and found.fact("service") == f"{key.namespace}/{key.name}"

    def node_dependents(self, before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
        """Every Service that has endpoints."""
        return {each.key for each in index.find(SERVICE.name, "wanted", "true")}

    def event_dependents(self, before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
        """The Service of the LoadBalancer that an Event is about."""
        if after is None:
            return set()  # kept for an hour
        balancer = index.get(LOAD_BALANCER.name, after.key.namespace, after.fact("about"))
        return _named(balancer.fact("service"), index) if balancer else set()

    def watched(self) -> tuple[Watched, ...]:
        """What is watched."""
        return (
            Watched(kind=SERVICE, read=self.service, dependents=nobody, lives=self.lives),
            Watched(
                kind=NODE, read=read_node, dependents=self.node_dependents, has_workflow=False, gathers=NODES_GATHER
            ),
            Watched(
                kind=EVENT,
                name=EVENTS,
                read=read_event,
                dependents=self.event_dependents,
                has_workflow=False,
                namespace=self._installation.control_namespace,
                field_selector=f"involvedObject.kind={LOAD_BALANCER.name},source={LOAD_BALANCER_COMPONENT}",
            ),
        )


def read_node(obj: JsonObject) -> View:
    """A Node."""
    return View(fingerprint=what_matters(Node.model_validate(obj)))


def read_event(obj: JsonObject) -> View:
    """An Event: only that there is one."""
    return View(fingerprint=(), facts={"about": text(obj, "involvedObject", "name")})


def nobody(before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
    """Nobody waits for a Service."""
    return set()


# What the Service's side needs of LoadBalancers, whose own watch is in `loadbalancers.py`.


def facts_for_service(obj: JsonObject) -> dict[str, str]:
    """What a LoadBalancer's Service is found by and cares about."""
    return {
        "service": text(obj, "metadata", "annotations", SERVICE_NAME_ANNOTATION),
        "for service": repr((generation(obj), shown_to_service(obj))),
    }


def shown_to_service(obj: JsonObject) -> tuple[str, bool]:
    """The address, and whether anybody will answer at it."""
    answers = at(obj, "spec", "replicas") == 0 or bool(at(obj, "status", "readyReplicas"))
    return text(obj, "status", "externalIP"), answers


def service_of(before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
    """The Service of a LoadBalancer that has changed in what the Service cares about."""
    if before and after and all(_seen(before, fact) == _seen(after, fact) for fact in ("service", "for service")):
        return set()
    return {key for side in (before, after) if side is not None for key in _named(side.fact("service"), index)}


def _seen(known: Projection, fact: str) -> tuple[str, bool]:
    return known.fact(fact), known.deleting


def _named(service: str, index: Index) -> set[Key]:
    namespace, _, name = service.partition("/")
    return set(index.keys(SERVICE.name, namespace, [name]))


def _matters(annotation: str) -> bool:
    return annotation.startswith((f"{GROUP}/", LOG_LABEL_PREFIX)) or annotation in LEVERS


_INSTALLATION = installation_of(settings())
WATCHED = Reading(_INSTALLATION).watched() if _INSTALLATION else ()
