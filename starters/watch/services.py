"""What the watcher watches for Services: Services, Nodes, and Events on LoadBalancers.

Only a Service that needs or still has a load balancer of ours has a lifecycle. Kubelets update Nodes often, so the
watcher compares only the fields that endpoints depend on.
"""

from __future__ import annotations

from activities.loadbalancers.installation import installation_of
from domain.control_annotations import LEVERS
from domain.loadbalancers import LOAD_BALANCER, SERVICE
from domain.loadbalancers.constants import GROUP, LOAD_BALANCER_COMPONENT, LOG_LABEL_PREFIX, SERVICE_FINALIZER
from domain.loadbalancers.names import load_balancer_name
from domain.loadbalancers.relations import RELATIONS, endpoints
from domain.loadbalancers.services.objects import Installation, Service
from domain.loadbalancers.services.service_class import concerns, serves
from domain.resource import ObjectMeta
from engine.kube import EVENT, NODE
from engine.kube.json import JsonObject
from engine.kube.reflector import Followed
from engine.settings import settings
from starters.watch.loadbalancer_metric_facts import service_figures
from starters.watch.projection import Projection, View, others_finalizers
from starters.watch.projection_index import Index
from starters.watch.watched_kinds import Pacing, Watched, read_nothing

AREA = "loadbalancers"

# Seconds in which changes of Nodes are gathered: a rolled node pool, or a recovering API server, changes many at once.
NODES_GATHER = 0.5
EVENTS = "Events of LoadBalancers"


class Reading:
    def __init__(self, installation: Installation) -> None:
        self._installation = installation

    def service(self, obj: JsonObject) -> View:
        read = Service.model_validate(obj)
        ours = serves(self._installation, read)
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
                "concerns us": "true" if concerns(self._installation, read) else "",
                **service_figures(obj),
            },
            model=read,
        )

    def lives(self, known: Projection, index: Index) -> bool:
        key = known.key
        if known.fact("concerns us"):
            return True
        name = load_balancer_name(ObjectMeta(namespace=key.namespace, name=key.name))
        found = index.get(LOAD_BALANCER.name, self._installation.namespace, name)
        return found is not None and found.fact("service") == f"{key.namespace}/{key.name}"

    def watched(self) -> tuple[Watched, ...]:
        nodes = endpoints(self._installation)
        return (
            Watched(Followed(SERVICE), read=self.service, relations=(*RELATIONS, nodes), lives=self.lives),
            Watched(Followed(NODE), read=read_nothing, relations=(nodes,), pacing=Pacing(gathers=NODES_GATHER)),
            Watched(
                Followed(
                    EVENT,
                    self._installation.namespace,
                    field_selector=f"involvedObject.kind={LOAD_BALANCER.name},source={LOAD_BALANCER_COMPONENT}",
                    called=EVENTS,
                ),
                read=read_nothing,
                relations=RELATIONS,
            ),
        )


def _matters(annotation: str) -> bool:
    return annotation.startswith((f"{GROUP}/", LOG_LABEL_PREFIX)) or annotation in LEVERS


_INSTALLATION = installation_of(settings())
WATCHED = Reading(_INSTALLATION).watched() if _INSTALLATION else ()
