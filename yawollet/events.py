"""Kubernetes Events about the machine, as `kubectl describe` shows them.

The machine's role may create and patch Events, but not read them. So the agent remembers the Event of
each message, and increases its count if the message recurs.
"""

from __future__ import annotations

import logging
from datetime import datetime

from domain.loadbalancers import LOAD_BALANCER_MACHINE
from domain.notices import Notice
from domain.resource import timestamp
from engine.errors import Absent, ApiError
from engine.kube import EVENT, JsonObject, KubeApi
from engine.kube.events import EventContent, Subject, event
from engine.kube.json import text

COMPONENT = "yawollet"
_REMEMBERED = 100

log = logging.getLogger(__name__)


class EventRecorder:
    def __init__(self, api: KubeApi, host: str) -> None:
        self._api = api
        self._host = host
        self._recorded: dict[Notice, tuple[str, int]] = {}  # the Event's name and count

    async def record(self, machine: JsonObject, notice: Notice, now: datetime) -> None:
        """A failure is only logged."""
        (log.info if notice.type == "Normal" else log.warning)("%s: %s", notice.reason, notice.message)
        namespace = text(machine, "metadata", "namespace")
        name, count = self._recorded.get(notice, ("", 0))
        try:
            if name and await self._counted_up(namespace, name, count + 1, now):
                self._recorded[notice] = (name, count + 1)
                return
            content = EventContent(notice.type.value, notice.reason, notice.message, COMPONENT, host=self._host)
            made = await self._api.create(
                EVENT, event(Subject.of(LOAD_BALANCER_MACHINE, machine), content, now), namespace
            )
        except ApiError as error:
            log.info("no Event was written about %s: %s", text(machine, "metadata", "name"), error.message)
            return
        if len(self._recorded) >= _REMEMBERED:
            self._recorded.clear()
        self._recorded[notice] = (text(made, "metadata", "name"), 1)

    async def _counted_up(self, namespace: str, name: str, count: int, now: datetime) -> bool:
        try:
            await self._api.patch(EVENT, namespace, name, {"count": count, "lastTimestamp": timestamp(now)})
        except Absent:
            return False  # Kubernetes deletes Events after an hour
        return True
