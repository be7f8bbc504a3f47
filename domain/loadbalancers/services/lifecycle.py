"""The lifecycle of a Service of type LoadBalancer.

    add finalizer --> create LoadBalancer --> write Events, address and condition
    Service deleted --> delete LoadBalancer --> remove finalizer

Each step waits for the previous one. If the API server refuses a LoadBalancer, its Service shows the error.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from domain.decision import Action, Decision, Outcome
from domain.loadbalancers.names import load_balancer_name
from domain.loadbalancers.object_world import adopt, gone, refused_write
from domain.loadbalancers.resources import LoadBalancer
from domain.loadbalancers.services.objects import Installation, Service
from domain.loadbalancers.services.service_status import shown_status
from domain.loadbalancers.services.synchronization import ServiceWork, done_since, work_for
from domain.loadbalancers.services.world import BALANCER, CreateBalancer, DeleteBalancer, PatchBalancer, ServiceWorld
from domain.notices import Notice, NoticeType, warning
from domain.refusal import ErrorType

NOT_SERVED = "this worker serves no Services: set CLUSTER_NAMESPACE, SECRET_NAME, FLOATING_NET_ID and NETWORK_ID"


class ServicePhase(StrEnum):
    CREATING = "Creating"
    READY = "Ready"
    UNSERVABLE = "Unservable"
    RELEASING = "Releasing"
    LEFT = "Left"


def decide_service(world: ServiceWorld, now: datetime) -> Decision:
    if not world.exists:
        return gone()
    if world.installation is None:
        return Decision(phase="Held", outcome=Outcome.WAITING, why=NOT_SERVED, waits_for=("the settings",))
    service, balancer = world.service, world.own
    work = work_for(service, world.balancer, world.nodes, world.installation)
    done: tuple[Notice, ...] = ()
    acts = _balancer_actions(world, work, world.installation)
    refused = world.refused(BALANCER) if acts else None
    if refused and refused.type in (ErrorType.INVALID, ErrorType.DENIED):
        work = _without_success(work, f"the LoadBalancer could not be written: {refused.message}")
    elif world.unsure and balancer is not None:
        done = done_since(balancer, world.known.balancer_generation)
    standing = shown_status(service, balancer, work, now)
    status = (world.write(standing.patch, subresource="status", note="write its status"),) if standing.patch else ()
    adopted = (world.write(adopt(world), note="add the finalizer"),) if work.add_finalizer else ()
    dropped = (world.drop_finalizer("remove the finalizer"),) if work.drop_finalizer else ()
    # A refused LoadBalancer is retried; meanwhile the status is still written.
    if refused and not adopted:
        stages: tuple[tuple[Action, ...], ...] = ((*acts, *status),)
    else:
        stages = tuple(each for each in (adopted, acts, status, dropped) if each)
    shown = stages and (refused or stages[0] is status)
    actions = stages[0] if stages else ()
    decision = decision_of(service, balancer, work)
    if why := refused_write(world, actions):
        decision = decision.model_copy(update={"why": why, "outcome": Outcome.WAITING, "waits_for": (why,)})
        done = (*done, warning("Failed", why))
    return decision.model_copy(
        update={
            "actions": actions,
            "planned": tuple(action.summary for stage in stages[1:] for action in stage),
            "deadline": world.again,
            "notices": (*done, *(standing.notices if shown else ())),
        }
    )


def _balancer_actions(world: ServiceWorld, work: ServiceWork, installation: Installation) -> tuple[Action, ...]:
    normal = tuple(each for each in work.notices if each.type is NoticeType.NORMAL)
    if work.create:
        namespace, name = installation.namespace, load_balancer_name(world.service.metadata)
        return (CreateBalancer(namespace=namespace, name=name, document=work.create, notices=normal),)
    if world.balancer is None:
        return ()
    of = world.balancer.metadata
    if work.patch:
        return (PatchBalancer(namespace=of.namespace, name=of.name, uid=of.uid, patch=work.patch, notices=normal),)
    return (DeleteBalancer(namespace=of.namespace, name=of.name, uid=of.uid),) if work.delete else ()


def _without_success(work: ServiceWork, problem: str) -> ServiceWork:
    wrong = tuple(notice for notice in work.notices if notice.type is NoticeType.WARNING)
    return work.model_copy(update={"problem": problem, "notices": (*wrong, warning("Failed", problem))})


def decision_of(service: Service, balancer: LoadBalancer | None, work: ServiceWork) -> Decision:
    if work.problem:
        return _waiting(ServicePhase.UNSERVABLE, work.problem, "a change of the Service")
    if work.waits_for:
        return _waiting(ServicePhase.RELEASING, f"waits until {work.waits_for}", work.waits_for)
    if work.drop_finalizer:
        return _waiting(ServicePhase.RELEASING, "its load balancer is gone", "the removal of its finalizer")
    if work.idle and balancer is None:
        return Decision(phase=ServicePhase.LEFT, outcome=Outcome.GONE, why="it has no load balancer from Perdure")
    if not service.ingress:
        why = "its load balancer has no address or no ready machine yet"
        return _waiting(ServicePhase.CREATING, why, "the load balancer's address and first machine")
    ignored = [notice.message for notice in work.notices if notice.type is NoticeType.WARNING]
    address = ", ".join(each.ip or each.hostname for each in service.ingress)
    why = " ".join((f"it is served at {address}.", *ignored))
    return Decision(phase=ServicePhase.READY, outcome=Outcome.SETTLED, why=why)


def _waiting(phase: ServicePhase, why: str, waits_for: str) -> Decision:
    return Decision(phase=phase, outcome=Outcome.WAITING, why=why, waits_for=(waits_for,))
