"""What the passes of the area stand on: reading and writing its objects, the OpenStack project, Events, the hold."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TypeVar

from activities.openstack.projects import Projects
from activities.openstack.session import Project
from activities.openstack.steps import carry_out
from domain.identity import Key, Kind
from domain.levers import held
from domain.loadbalancers.actions import ProjectReference
from domain.loadbalancers.cloud.changes import Brought
from domain.loadbalancers.cloud.steps import Step
from domain.loadbalancers.constants import LOAD_BALANCER_COMPONENT
from domain.loadbalancers.notices import Notice
from domain.loadbalancers.resources import Infrastructure
from domain.resource import CustomResource, ObjectMeta
from domain.writes import JsonPatch
from engine.errors import Absent, Conflict
from engine.kube import BlockingKube, KubeApi
from engine.kube.events import Said, Subject, event, record
from engine.settings import Settings

R = TypeVar("R", bound=CustomResource)
T = TypeVar("T")
MOST_TOLD = 5_000

log = logging.getLogger(__name__)


class Ground:
    """One per worker."""

    def __init__(self, kube: KubeApi, blocking: BlockingKube, projects: Projects, settings: Settings) -> None:
        self.kube = kube
        self.blocking = blocking
        self.settings = settings
        self._projects = projects
        self._told: dict[tuple[str, str, str], None] = {}

    # --- Kubernetes ---

    async def get(self, model: type[R], namespace: str, name: str) -> R | None:
        """An object, None if there is none."""
        try:
            return model.model_validate(await self.kube.get(model.kind_of, namespace, name))
        except Absent:
            return None

    async def own(self, model: type[R], key: Key) -> R | None:
        """The object that the key names, not one made anew under its name."""
        found = await self.get(model, key.namespace, key.name)
        return found if found is not None and found.metadata.uid == key.uid else None

    async def all(self, model: type[R], namespace: str = "") -> tuple[R, ...]:
        """Every object of a kind."""
        listing = await self.kube.list(model.kind_of, namespace)
        return tuple(model.model_validate(item) for item in listing.items)

    async def patch(self, before: R, patch: JsonPatch, *, status: bool = False) -> R:
        """The object after a merge patch of what was read; as it was if there is nothing to patch."""
        if not patch:
            return before
        meta = before.metadata
        answer = await self.kube.patch(
            before.kind_of,
            meta.namespace,
            meta.name,
            patch,
            subresource="status" if status else "",
            resource_version=meta.resource_version,
        )
        return type(before).model_validate(answer)

    async def patch_other(
        self, kind: Kind, namespace: str, name: str, patch: JsonPatch, *, status: bool = False
    ) -> None:
        """Patch another object of the area, if it is there."""
        try:
            if patch:
                await self.kube.patch(kind, namespace, name, patch, subresource="status" if status else "")
        except Absent:
            log.info("%s %s/%s is gone", kind.name, namespace, name)

    async def create(self, kind: Kind, body: Mapping[str, object], namespace: str) -> None:
        """Make an object; one of its name is it already."""
        try:
            await self.kube.create(kind, body, namespace)
        except Conflict as error:
            log.info("%s", error.message)

    async def delete(self, kind: Kind, namespace: str, names: Iterable[str]) -> None:
        """Ask for deletions."""
        for name in names:
            try:
                await self.kube.delete(kind, namespace, name)
            except Absent:
                log.info("%s %s/%s is gone", kind.name, namespace, name)

    async def drop_finalizer(self, obj: CustomResource) -> None:
        """Let the object go."""
        kept = [each for each in obj.metadata.finalizers if each != obj.kind_of.finalizer]
        try:
            await self.patch(obj, {"metadata": {"finalizers": kept}})
        except Absent:
            return

    def hold(self, meta: ObjectMeta) -> str:
        """Why nothing may be changed on behalf of this object now, empty if it may."""
        return held(meta.annotations, observing=self.settings.observing)

    async def tell(self, obj: CustomResource, notices: Iterable[Notice], now: datetime) -> None:
        """Kubernetes Events, each once per process; that one cannot be written is only logged."""
        for notice in notices:
            told = (obj.metadata.uid, notice.reason, notice.message)
            if told in self._told:
                continue
            if len(self._told) >= MOST_TOLD:
                self._told.clear()
            self._told[told] = None
            said = Said(notice.type.value, notice.reason, notice.message, LOAD_BALANCER_COMPONENT)
            await record(self.kube, event(Subject.with_metadata(obj.kind_of, obj.metadata), said, now))

    # --- OpenStack, whose client blocks ---

    async def project(self, infrastructure: Infrastructure, namespace: str) -> Project:
        """The project that an infrastructure names."""
        return await asyncio.to_thread(self._projects.project, ProjectReference.of(infrastructure, namespace))

    async def observe(self, look: Callable[[Project, R], T], project: Project, obj: R) -> T:
        """What an object has in the cloud."""
        return await asyncio.to_thread(look, project, obj)

    async def carry_out(self, project: Project, step: Step, user_data: Callable[[], str] | None = None) -> Brought:
        """One step in the cloud."""
        return await asyncio.to_thread(carry_out, project, step, user_data)
