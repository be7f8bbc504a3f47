"""A Service's status: its address, and a condition for its current problems.

Events expire after an hour, so problems of a Service (an unreadable annotation, an immutable project) also appear as
the condition `perdure.dev/Misconfigured`. The condition also records which warnings were already reported, so that a
restart does not repeat them.

    address     none ──► written when a machine is ready ──► ... ──► removed when the load balancer is gone
    condition   none ──► one message with all problems ──► none

The address is compared by IP only: Kubernetes adds fields to an ingress (`ipMode: VIP` since 1.30), so a comparison of
all fields would write the same status endlessly. The address is never removed while the LoadBalancer exists.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from domain.loadbalancers.ip_addresses import same_address
from domain.loadbalancers.names import service_name
from domain.loadbalancers.patches import combined
from domain.loadbalancers.resources import LoadBalancer
from domain.loadbalancers.services.objects import Service, ServiceCondition
from domain.loadbalancers.services.synchronization import ServiceWork
from domain.model import Model
from domain.notices import Notice, NoticeType, normal
from domain.resource import timestamp
from domain.writes import JsonPatch

MISCONFIGURED = "perdure.dev/Misconfigured"
UNSERVABLE = "Unservable"  # only endpoints change until the problem is corrected
PARTLY_IGNORED = "PartlyIgnored"  # the faulty values are ignored, everything else is as requested
_LONGEST_MESSAGE = 32_000  # the API server's limit is 32768


class ShownStatus(Model):
    patch: JsonPatch = {}
    notices: tuple[Notice, ...] = ()


def shown_status(service: Service, balancer: LoadBalancer | None, work: ServiceWork, now: datetime) -> ShownStatus:
    wrong = [notice for notice in work.notices if notice.type is NoticeType.WARNING]
    known = _stored(service)
    news = tuple(notice for notice in wrong if known is None or f" {notice.message} " not in f" {known.message} ")
    address = _address(service, balancer, work)
    patch = combined(address.patch, _condition(service, wrong, work, now))
    return ShownStatus(patch=patch, notices=(*news, *address.notices))


def _address(service: Service, balancer: LoadBalancer | None, work: ServiceWork) -> ShownStatus:
    if work.clear_ingress:
        return ShownStatus(patch=_ingress(None))
    if balancer is None or work.delete or balancer.service != service_name(service.metadata):
        return ShownStatus()
    return write_back(service, balancer)


def write_back(service: Service, balancer: LoadBalancer) -> ShownStatus:
    """The address to write, if any. With zero replicas it is written at once, because no machine will become ready."""
    address = balancer.status.external_ip
    answering = balancer.spec.replicas == 0 or bool(balancer.status.ready_replicas)
    if not address or not answering or service.metadata.deleting or balancer.metadata.deleting:
        return ShownStatus()
    if len(service.ingress) == 1 and same_address(service.ingress[0].ip, address):
        return ShownStatus()
    notice = normal("creation", f"LoadBalancer is successfully created with IP {address}", each_time=True)
    return ShownStatus(patch=_ingress([{"ip": address}]), notices=(notice,))


def _ingress(ingress: object) -> JsonPatch:
    return {"status": {"loadBalancer": {"ingress": ingress}}}


def _condition(service: Service, wrong: Iterable[Notice], work: ServiceWork, now: datetime) -> JsonPatch:
    known, message = _stored(service), " ".join(dict.fromkeys(notice.message for notice in wrong))[:_LONGEST_MESSAGE]
    reason = UNSERVABLE if work.problem else PARTLY_IGNORED
    if (known is None and not message) or (known and (known.reason, known.message) == (reason, message)):
        return {}
    others = [each for each in service.status.conditions if each.type != MISCONFIGURED]
    since = known.last_transition_time if known else timestamp(now)
    ours = ServiceCondition(
        type=MISCONFIGURED, status="True", reason=reason, message=message, last_transition_time=since
    )
    remaining = [*others, ours] if message else others
    return {
        "status": {"conditions": [each.model_dump(mode="json", exclude_defaults=True) for each in remaining] or None}
    }


def _stored(service: Service) -> ServiceCondition | None:
    return next((each for each in service.status.conditions if each.type == MISCONFIGURED), None)
