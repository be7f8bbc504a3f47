"""The pass over a Service: its LoadBalancer, its address, its condition, and the Events that it is told.

    Service, LoadBalancer, nodes --> work (domain/loadbalancers/services) --> finalizer, LoadBalancer, status --> Events

Services and nodes are in the cluster that is served, LoadBalancers in Perdure's own; mostly these are one. Whatever the
API server refuses as invalid is told to the one Service that asks for it, and no other is touched by it.

Each Event about the LoadBalancer is told to the Service once: its name there follows from the Event's uid, so the API
server refuses a second one, whichever process tells it. A warning's follows from its words, as those have that the
Service is told of itself: some of its wishes are found wrong in both places, and one Event says so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime

from temporalio import activity

from activities.conflicts import until_undisturbed
from activities.leaders import HELD_FOR
from activities.loadbalancers.predecessor import Predecessor
from domain.decision import Decision, Outcome
from domain.identity import Key
from domain.loadbalancers import LOAD_BALANCER, SERVICE
from domain.loadbalancers.constants import (
    LOAD_BALANCER_COMPONENT,
    SERVICE_COMPONENT,
    SERVICE_FINALIZER,
)
from domain.loadbalancers.names import load_balancer_name
from domain.loadbalancers.resources import LoadBalancer
from domain.loadbalancers.services.objects import Installation, Node, Service
from domain.loadbalancers.services.passes import PassService, ServiceWorld, decision_of, planned
from domain.loadbalancers.services.standing import Standing, standing_of
from domain.loadbalancers.services.synchronization import ServiceWork, work_for
from domain.notices import Notice, NoticeType, warning
from engine.clock import now
from engine.errors import Absent, ApiError, Denied, Invalid
from engine.kube import EVENT, NODE, KubeApi
from engine.kube.events import LONGEST_MESSAGE, Said, Subject, event, named, record
from engine.kube.json import JsonObject, text
from engine.kube.sharing import SharedReading
from engine.pauses import held
from engine.settings import Settings

MOST_ROUNDS = 5
MOST_FORWARDED = 20_000

_NOT_SERVED = "this worker serves no Services: see the settings PERDURE_LOADBALANCERS_NAMESPACE and those after it"

log = logging.getLogger(__name__)


class ServiceActivities:
    """The Service's activity.

    Args:
        kube: Perdure's own cluster.
        served: the cluster with the Services and nodes.
        settings: see `engine.settings`.
        installation: what all Services are given; None where none are served.
    """

    def __init__(self, kube: KubeApi, served: KubeApi, settings: Settings, installation: Installation | None) -> None:
        self._kube = kube
        self._served = served
        self._settings = settings
        self._installation = installation
        self._nodes = SharedReading(self._list_nodes)
        self._yawol = Predecessor(kube, settings.loadbalancers_yawol_namespace, SERVICE)
        self._forwarded: dict[tuple[str, str], None] = {}  # Service and Event, by uid

    def all(self) -> Sequence[Callable[..., object]]:
        """Every activity, for the worker."""
        return (self.pass_service,)

    @activity.defn(name=PassService.activity)
    async def pass_service(self, look: PassService) -> ServiceWorld:
        """One pass; another one at once where somebody has written what was read."""
        return await until_undisturbed(look.key, lambda _: self._pass(look))

    async def _pass(self, look: PassService) -> ServiceWorld:
        installation, key = self._installation, look.key
        if installation is None:
            why = Decision(phase="Held", outcome=Outcome.WAITING, why=_NOT_SERVED, waits_for=("the settings",))
            return ServiceWorld(key=key, hold=_NOT_SERVED, decision=why)
        service = await self._service(key)
        if service is None:
            gone = Decision(phase="Deleted", outcome=Outcome.GONE, why="it does not exist any more")
            return ServiceWorld(key=key, exists=False, decision=gone)
        balancer = await self._balancer(service, installation)
        nodes = await self._nodes.read() if installation.wants(service) else ()
        work = work_for(service, balancer, nodes, installation)
        standing = standing_of(service, balancer, work, now())
        hold, until = ("", None) if look.dry_run else await self._hold(service)
        if look.dry_run or hold:
            shown = {"planned": planned(work, status=bool(standing.patch)), "deadline": until}
            decision = decision_of(service, balancer, work).model_copy(update=shown)
            return ServiceWorld(key=key, hold=hold, decision=decision)
        for _ in range(MOST_ROUNDS):
            if work.idle and standing == Standing():
                break
            service = await self._take_in_hand(service, work)
            balancer, work, refused = await self._carry_out(service, balancer, work, installation)
            standing = standing_of(service, balancer, work, now())
            service = await self._show(service, standing)
            if work.drop_finalizer:
                await self._let_go(service)
                return ServiceWorld(key=key, decision=decision_of(service, None, work))
            if refused:
                break
            work = work_for(service, balancer, nodes, installation)
            standing = standing_of(service, balancer, work, now())
        if balancer is not None:
            await self._forward(service, balancer, installation)
        return ServiceWorld(key=key, decision=decision_of(service, balancer, work))

    # --- observing ---

    async def _service(self, key: Key) -> Service | None:
        """The Service that the key names, not one made anew under its name."""
        try:
            found = Service.model_validate(await self._served.get(SERVICE, key.namespace, key.name))
        except Absent:
            return None
        return found if found.metadata.uid == key.uid else None

    async def _balancer(self, service: Service, installation: Installation) -> LoadBalancer | None:
        name = load_balancer_name(service.metadata)
        try:
            return LoadBalancer.model_validate(
                await self._kube.get(LOAD_BALANCER, installation.control_namespace, name)
            )
        except Absent:
            return None

    async def _list_nodes(self) -> tuple[Node, ...]:
        listing = await self._served.list(NODE)
        return tuple(Node.model_validate(item) for item in listing.items)

    async def _hold(self, service: Service) -> tuple[str, datetime | None]:
        """Why nothing may be changed for the Service now, empty if it may; until when, where no event tells."""
        if reason := held(LOAD_BALANCER.area, service.metadata.annotations, self._settings):
            return reason, None
        reason = await self._yawol.leads()
        return reason, now() + HELD_FOR if reason else None

    # --- acting ---

    async def _take_in_hand(self, service: Service, work: ServiceWork) -> Service:
        if not work.add_finalizer:
            return service
        return await self._patch(
            service, {"metadata": {"finalizers": [*service.metadata.finalizers, SERVICE_FINALIZER]}}
        )

    async def _carry_out(
        self, service: Service, balancer: LoadBalancer | None, work: ServiceWork, installation: Installation
    ) -> tuple[LoadBalancer | None, ServiceWork, bool]:
        """The LoadBalancer as it is then, and the work as it went; True if the API server refuses what is asked."""
        try:
            if work.create:
                made = await self._kube.create(LOAD_BALANCER, work.create, installation.control_namespace)
                return LoadBalancer.model_validate(made), work, False
            if work.patch and balancer is not None:
                return await self._patch_balancer(balancer, work), work, False
            if work.delete and balancer is not None:
                return await self._delete_balancer(balancer), work, False
        except (Invalid, Absent) as error:
            return balancer, _refused(work, error), True
        return balancer, work, False

    async def _patch_balancer(self, balancer: LoadBalancer, work: ServiceWork) -> LoadBalancer:
        """All that differs in one patch, of that very LoadBalancer."""
        meta = balancer.metadata
        metadata = work.patch.get("metadata")
        body = {**work.patch, "metadata": {**(metadata if isinstance(metadata, dict) else {}), "uid": meta.uid}}
        return LoadBalancer.model_validate(await self._kube.patch(LOAD_BALANCER, meta.namespace, meta.name, body))

    async def _delete_balancer(self, balancer: LoadBalancer) -> LoadBalancer | None:
        """The LoadBalancer as it goes, None if it has gone."""
        meta = balancer.metadata
        try:
            answer = await self._kube.delete(LOAD_BALANCER, meta.namespace, meta.name, uid=meta.uid)
        except Absent:
            return None
        return LoadBalancer.model_validate(answer) if text(answer, "kind") == LOAD_BALANCER.name else None

    async def _show(self, service: Service, standing: Standing) -> Service:
        """Tell, then write: whoever dies in between tells it again, under the same name."""
        for notice in standing.notices:
            await self._tell(service, notice)
        return await self._patch(service, standing.patch, subresource="status") if standing.patch else service

    async def _let_go(self, service: Service) -> None:
        kept = service.metadata.finalizers_without(SERVICE_FINALIZER)
        try:
            await self._patch(service, {"metadata": {"finalizers": kept}})
        except Absent:
            return

    async def _patch(self, service: Service, patch: JsonObject, *, subresource: str = "") -> Service:
        meta = service.metadata
        answer = await self._served.patch(
            SERVICE,
            meta.namespace,
            meta.name,
            patch,
            subresource=subresource,
            resource_version=meta.resource_version,
        )
        return Service.model_validate(answer)

    # --- telling ---

    async def _tell(self, service: Service, notice: Notice) -> None:
        subject = Subject.with_metadata(SERVICE, service.metadata)
        said = Said(notice.type.value, notice.reason, notice.message, SERVICE_COMPONENT)
        standing = notice.type is NoticeType.WARNING  # what is wrong stays so, what was done is done again
        name = _warned(subject, said) if standing else ""
        await record(self._served, event(subject, said, now(), name=name))

    async def _forward(self, service: Service, balancer: LoadBalancer, installation: Installation) -> None:
        """Tell the Service what its LoadBalancer was told; what cannot be written now comes with the next pass."""
        selector = f"involvedObject.uid={balancer.metadata.uid},source={LOAD_BALANCER_COMPONENT}"
        try:
            listing = await self._kube.list(EVENT, installation.control_namespace, field_selector=selector)
        except Denied as error:
            log.info("no Events are forwarded to Services: %s", error.message)
            return
        subject = Subject.with_metadata(SERVICE, service.metadata)
        for found in listing.items:
            known = (service.metadata.uid, text(found, "metadata", "uid"))
            if known not in self._forwarded and await record(self._served, forwarded(subject, found)):
                if len(self._forwarded) >= MOST_FORWARDED:
                    self._forwarded.clear()
                self._forwarded[known] = None


def forwarded(subject: Subject, found: JsonObject) -> JsonObject:
    """An Event about a LoadBalancer as one about its Service, with the times at which it was first told."""
    said = Said(text(found, "type"), text(found, "reason"), text(found, "message"), SERVICE_COMPONENT)
    wrong = said.type == NoticeType.WARNING
    name = _warned(subject, said) if wrong else named(subject, text(found, "metadata", "uid"))
    told = event(subject, said, now(), name=name)
    times = {field: text(found, field) for field in ("firstTimestamp", "lastTimestamp")}
    return told | {field: moment for field, moment in times.items() if moment}


def _warned(subject: Subject, said: Said) -> str:
    """The name of a warning: its words decide, as far as an Event holds them."""
    return named(subject, said.reason, said.message[:LONGEST_MESSAGE])


def _refused(work: ServiceWork, error: ApiError) -> ServiceWork:
    """The work that could not be done, and why: without what would have been told of it."""
    problem = f"the LoadBalancer could not be written: {error.message}"
    wrong = tuple(notice for notice in work.notices if notice.type is NoticeType.WARNING)
    return work.model_copy(update={"problem": problem, "notices": (*wrong, warning("Failed", problem))})
