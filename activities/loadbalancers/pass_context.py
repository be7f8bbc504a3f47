"""What the area's activities share: access to Kubernetes and OpenStack, and pauses."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TypeVar

from activities.loadbalancers.cache import LoadBalancerCache, View
from activities.loadbalancers.machine_heartbeats import Reports
from activities.loadbalancers.replaced_operator import Predecessor
from activities.openstack.projects import Projects
from domain.control_annotations import is_paused
from domain.identity import Kind
from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET
from domain.loadbalancers.fleet_silence import AskFleet, Fleet
from domain.loadbalancers.machine_health import Timings
from domain.loadbalancers.resources import LoadBalancerMachine, LoadBalancerSet
from domain.loadbalancers.selectors import selects
from domain.resource import CustomResource, ObjectMeta
from domain.writes import JsonPatch
from engine.clock import now
from engine.errors import Absent, Conflict, unless_absent
from engine.kube import BlockingKube, KubeApi
from engine.kube.json import JsonObject, mapping, text
from engine.pauses import held
from engine.settings import Settings

R = TypeVar("R", bound=CustomResource)

log = logging.getLogger(__name__)


class PassContext:
    def __init__(
        self,
        kube: KubeApi,
        blocking: BlockingKube,
        projects: Projects,
        settings: Settings,
        cache: LoadBalancerCache | None = None,
    ) -> None:
        self.kube = kube
        self.cache = cache or LoadBalancerCache(kube)
        self.blocking = blocking
        self.settings = settings
        self.timings = Timings(boot=settings.loadbalancers_boot_timeout, grace=settings.loadbalancers_deletion_grace)
        self.projects = projects
        self.leads = Predecessor(kube, settings.loadbalancers_yawol_namespace).leads
        self._reports = Reports()

    # --- Kubernetes ---

    async def everywhere(self, model: type[R]) -> tuple[R, ...]:
        """All objects of the kind in the installation: costly, so for rare passes only."""
        return tuple(model.model_validate(each) for each in await self._documents(model.kind_of))

    async def ask_fleet(self, ask: AskFleet) -> Fleet:
        moment, sets = now(), await self._documents(LOAD_BALANCER_SET)
        metadata = (mapping(each, "metadata") for each in sets if is_paused(mapping(each, "metadata", "annotations")))
        paused = {f"{text(each, 'namespace')}/{text(each, 'name')}" for each in metadata}
        fleet = self._reports.fleet(await self._documents(LOAD_BALANCER_MACHINE), moment, self.timings, paused)
        return fleet.model_copy(update={"at": moment})

    async def is_managed(self, machine: LoadBalancerMachine) -> bool:
        meta = machine.metadata
        owners = [each.name for each in meta.owner_references if each.kind == LOAD_BALANCER_SET.name]
        if owners:
            found: Iterable[LoadBalancerSet | None] = [
                await self.read(LoadBalancerSet, meta.namespace, name) for name in owners
            ]
        else:
            sets = await self._documents(LOAD_BALANCER_SET)
            near = (each for each in sets if text(each, "metadata", "namespace") == meta.namespace)
            # Parsed lazily: once a set selects the machine, a malformed set after it does no harm.
            found = (LoadBalancerSet.model_validate(each) for each in near)
        return any(selects(each, machine) for each in found if each is not None)

    async def read(self, model: type[R], namespace: str, name: str) -> R | None:
        return await View(self.cache, fresh=False).get(model, namespace, name)

    async def _documents(self, kind: Kind) -> Iterable[JsonObject]:
        mirror = self.cache.mirror(kind)
        return mirror.all() if mirror is not None else (await self.kube.list(kind)).items

    async def patch(
        self, kind: Kind, namespace: str, name: str, patch: JsonPatch, *, status: bool = False, version: str = ""
    ) -> JsonObject | None:
        """Merge-patch an object of the area; None if it is gone. With `version`, the patch applies only to this
        resourceVersion.
        """
        subresource = "status" if status else ""
        try:
            answer = await self.kube.patch(
                kind, namespace, name, patch, subresource=subresource, resource_version=version
            )
        except Absent:
            log.info("%s %s/%s is gone", kind.name, namespace, name)
            return None
        self.cache.learn(kind, answer)
        return answer

    async def create(self, kind: Kind, body: Mapping[str, object], namespace: str) -> JsonObject | None:
        """None if the name exists already. Other conflicts are raised."""
        try:
            made = await self.kube.create(kind, body, namespace)
        except Conflict as error:
            if error.code != "AlreadyExists":
                raise
            log.info("%s", error.message)
            return None
        self.cache.learn(kind, made)
        return made

    async def delete(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        """Returns the object while finalizers delay its deletion, None if it is gone."""
        left = await unless_absent(self.kube.delete(kind, namespace, name))
        if left is not None:
            self.cache.learn(kind, left)
        return left

    def hold(self, meta: ObjectMeta) -> str:
        return held(LOAD_BALANCER.area, meta.annotations, self.settings)
