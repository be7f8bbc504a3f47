"""The pass over a Service. `domain/loadbalancers/services/lifecycle.py` decides."""

from __future__ import annotations

from temporalio import activity

from activities.activity_class import Activities
from activities.inline_driver import Inline, effects_of
from activities.kube import KubeActivities
from activities.loadbalancers.forwarded_events import ForwardedEvents
from activities.loadbalancers.replaced_operator import Predecessor
from activities.replaced_operator import HELD_FOR
from domain.loadbalancers import LOAD_BALANCER, SERVICE
from domain.loadbalancers.names import load_balancer_name
from domain.loadbalancers.passes import LoadBalancerWorld, PassService
from domain.loadbalancers.resources import LoadBalancer
from domain.loadbalancers.services.lifecycle import NOT_SERVED, decide_service
from domain.loadbalancers.services.objects import Installation, Node, Service
from domain.loadbalancers.services.service_class import wants_balancer
from domain.loadbalancers.services.world import (
    CreateBalancer,
    DeleteBalancer,
    FoundBalancer,
    PatchBalancer,
    ServiceWorld,
)
from engine.clock import now
from engine.errors import Absent, Invalid, unless_absent
from engine.kube import NODE, KubeApi
from engine.kube.json import text
from engine.kube.shared_reads import SharedReading
from engine.pauses import held
from engine.settings import Settings


class ServiceActivities(Activities):
    def __init__(
        self,
        kube: KubeApi,
        served: KubeApi,
        settings: Settings,
        installation: Installation | None,
        writes: KubeActivities,
    ) -> None:
        self._kube = kube
        self._served = served
        self._settings = settings
        self._installation = installation
        self._nodes = SharedReading(self._list_nodes)
        self._yawol = Predecessor(kube, settings.loadbalancers_yawol_namespace)
        self._events = ForwardedEvents(kube, served)
        own = (self.create_load_balancer, self.patch_load_balancer, self.delete_load_balancer)
        self._effects = effects_of(writes.patch, writes.record_events, *own)

    @activity.defn(name=PassService.activity)
    async def pass_service(self, look: PassService) -> LoadBalancerWorld:
        async def observe(fresh: bool) -> ServiceWorld:
            return await self._observe(look)

        passed = await Inline(decide_service, self._effects, observe).carry_out(look, look.memory)
        world = passed.world
        if world.own is not None and not (world.hold or look.dry_run):
            await self._events.forward(world.service.metadata, world.own)
            world = world.with_balancer(world.balancer)
        # True while the Service exists, even if the lifecycle ends because the Service has no load balancer of ours.
        # Otherwise a wake that arrives as the lifecycle ends would be lost.
        return passed.as_world(LoadBalancerWorld, exists=world.exists, known=world.known)

    # --- observing ---

    async def _observe(self, look: PassService) -> ServiceWorld:
        installation, key = self._installation, look.key
        if installation is None:
            return ServiceWorld(key=key, hold=NOT_SERVED)
        found = await unless_absent(self._served.get(SERVICE, key.namespace, key.name))
        if found is None or text(found, "metadata", "uid") != key.uid:
            return ServiceWorld(key=key, exists=False)
        service = Service.model_validate(found)
        hold = "" if look.dry_run else held(LOAD_BALANCER.area, service.metadata.annotations, self._settings)
        left_to = "" if hold or look.dry_run else await self._yawol.leads(SERVICE)
        return ServiceWorld(
            key=key,
            hold=hold or left_to,
            service=service,
            balancer=await self._balancer(service, installation),
            nodes=await self._nodes.read() if wants_balancer(installation, service) else (),
            installation=installation,
            again=now() + HELD_FOR if left_to else None,
        )

    async def _balancer(self, service: Service, installation: Installation) -> LoadBalancer | None:
        name = load_balancer_name(service.metadata)
        found = await unless_absent(self._kube.get(LOAD_BALANCER, installation.namespace, name))
        return None if found is None else LoadBalancer.model_validate(found)

    async def _list_nodes(self) -> tuple[Node, ...]:
        listing = await self._served.list(NODE)
        return tuple(Node.model_validate(item) for item in listing.items)

    # --- effects ---

    @activity.defn(name=CreateBalancer.activity)
    async def create_load_balancer(self, create: CreateBalancer) -> FoundBalancer:
        """Raises Conflict if a LoadBalancer of this name exists, Invalid if the API server refuses the
        document or the namespace does not exist.
        """
        try:
            made = await self._kube.create(LOAD_BALANCER, create.document, create.namespace)
        except Absent as error:
            raise Invalid(error.message, code=error.code) from error
        return FoundBalancer(balancer=LoadBalancer.model_validate(made))

    @activity.defn(name=PatchBalancer.activity)
    async def patch_load_balancer(self, change: PatchBalancer) -> FoundBalancer:
        metadata = change.patch.get("metadata")
        body = {**change.patch, "metadata": {**(metadata if isinstance(metadata, dict) else {}), "uid": change.uid}}
        answer = await self._kube.patch(LOAD_BALANCER, change.namespace, change.name, body)
        return FoundBalancer(balancer=LoadBalancer.model_validate(answer))

    @activity.defn(name=DeleteBalancer.activity)
    async def delete_load_balancer(self, deletion: DeleteBalancer) -> FoundBalancer:
        left = await unless_absent(
            self._kube.delete(LOAD_BALANCER, deletion.namespace, deletion.name, uid=deletion.uid)
        )
        return FoundBalancer(balancer=LoadBalancer.model_validate(left) if left else None)
