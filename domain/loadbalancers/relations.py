"""References among Services, LoadBalancers, their sets and machines.

Service <── LoadBalancer <── LoadBalancerSet <── LoadBalancerMachine
                 ^                                       |
                 +---------------------------------------+
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_SET, THE_PROJECTS
from domain.loadbalancers.constants import TEMPLATE_HASH_LABEL
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerMachine, LoadBalancerSet, owner_name
from domain.loadbalancers.services.endpoints import what_matters
from domain.loadbalancers.services.objects import BalancerEvent, Installation, Node, Service
from domain.loadbalancers.services.service_class import wants_balancer
from domain.relations import News, On, Relation, Whom


def _shown_to_service(balancer: LoadBalancer) -> Hashable:
    answers = balancer.spec.replicas == 0 or bool(balancer.status.ready_replicas)
    return balancer.status.external_ip or "", answers


def _services_of(balancer: LoadBalancer) -> Iterable[Hashable]:
    # The Service that the LoadBalancer serves, and all Services whose LoadBalancer would have the same name: they wait
    # until this LoadBalancer is gone.
    namespace, _, name = balancer.service.partition("/")
    own = balancer.metadata.name
    named = {(own[:at], own[at + 2 :]) for at in range(len(own)) if own.startswith("--", at)}
    return sorted({(namespace, name)} | named)


def _balancer_of(machine_set: LoadBalancerSet) -> Iterable[Hashable]:
    meta = machine_set.metadata
    owner = owner_name(meta, LOAD_BALANCER)
    return [(meta.namespace, owner)] if owner else []


def _set_of(machine: LoadBalancerMachine) -> Iterable[Hashable]:
    meta = machine.metadata
    if owner := owner_name(meta, LOAD_BALANCER_SET):
        return [(meta.namespace, owner)]
    template = meta.labels.get(TEMPLATE_HASH_LABEL, "")
    return [(meta.namespace, "template", template)] if template else []


def _set_names(machine_set: LoadBalancerSet) -> Iterable[Hashable]:
    meta, selector = machine_set.metadata, machine_set.spec.selector.match_labels
    return [(meta.namespace, meta.name), (meta.namespace, "template", selector.get(TEMPLATE_HASH_LABEL, ""))]


def _rolled_out(machine_set: LoadBalancerSet) -> Hashable:
    meta, status = machine_set.metadata, machine_set.status
    conditions = tuple((each.type, each.status) for each in status.conditions)
    labels = tuple(sorted(meta.labels.items()))
    return status.replicas, status.ready_replicas, conditions, machine_set.revision, labels, meta.deleting


def _health(machine: LoadBalancerMachine) -> Hashable:
    """The parts of a machine that its set depends on. A heartbeat that repeats the same conditions changes none of
    them.
    """
    meta = machine.metadata
    conditions = sorted((each.type, each.status, str(each.last_transition_time)) for each in machine.status.conditions)
    annotations, labels = (tuple(sorted(each.items())) for each in (meta.annotations, meta.labels))
    return tuple(conditions), annotations, labels, meta.deleting


_BALANCER_TO_SERVICE = Relation(
    of=LoadBalancer,
    to=Service,
    by=_services_of,
    news=News(lambda each: (each.metadata.generation, _shown_to_service(each), each.metadata.deleting)),
)

# Events on a LoadBalancer are repeated on its Service.
_EVENT_TO_BALANCER = Relation(
    of=BalancerEvent,
    to=LoadBalancer,
    by=lambda event: [(event.metadata.namespace, event.involved_object.name)],
    news=News(on=frozenset({On.COMES}), whom=Whom.NONE, onward=(_BALANCER_TO_SERVICE,)),
)

RELATIONS = (
    _BALANCER_TO_SERVICE,
    _EVENT_TO_BALANCER,
    Relation(of=LoadBalancer, to=THE_PROJECTS, news=News(on=frozenset({On.COMES}))),
    Relation(of=LoadBalancerSet, to=LoadBalancer, by=_balancer_of, news=News(_rolled_out)),
    Relation(of=LoadBalancerMachine, to=LoadBalancerSet, by=_set_of, known_as=_set_names, news=News(_health)),
    # A machine waits until its LoadBalancer has a security group, which the machine's port needs.
    Relation(
        of=LoadBalancerMachine,
        to=LoadBalancer,
        by=lambda machine: [(machine.spec.load_balancer_ref.namespace, machine.spec.load_balancer_ref.name)],
        matters=News(lambda balancer: balancer.status.group_id),
    ),
)


def endpoints(installation: Installation) -> Relation:
    return Relation(
        of=Service,
        to=Node,
        by=lambda service: ["nodes"] if wants_balancer(installation, service) else [],
        known_as=lambda _: ["nodes"],
        matters=News(what_matters),
    )
