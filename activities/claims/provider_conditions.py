"""Writes changed conditions of the ResourceProviders that a pass has used.

A provider has no lifecycle, and its status is no subresource, so the condition is written by a patch of the object. An
Event has the same message, because the CRD of an earlier installation may drop the status.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime
from typing import cast

from activities.claims.object_writes import Writer
from domain.claims import RESOURCE_PROVIDER
from domain.claims.constants import EVENT_COMPONENT
from domain.claims.deep_merge import same
from domain.claims.json_objects import JsonObject, object_at, text_at
from domain.claims.provider_conditions import VARS_ARE_TEMPLATES, with_vars_condition
from domain.claims.stalled_condition import condition_at
from engine import kube
from engine.errors import Absent, ApiError, Conflict
from engine.kube.events import EventContent, EventDeduplicator, Subject

log = logging.getLogger(__name__)


class ProviderConditions:
    def __init__(self, writer: Writer, *, newer: bool) -> None:
        self._writer = writer
        self._events = EventDeduplicator(writer.api)
        self._newer = newer
        self._dropped: set[str] = set()  # uids of providers whose status the API server drops

    async def show(self, providers: Iterable[JsonObject], now: datetime) -> None:
        """A failure is only logged."""
        for provider in providers:
            status = with_vars_condition(provider, now, newer=self._newer)
            if same(object_at(provider, "status"), status):
                continue
            if text_at(provider, "metadata", "uid") not in self._dropped:
                await self._write(provider, status)
            await self._record(provider, status, now)

    async def _write(self, provider: JsonObject, status: JsonObject) -> None:
        namespace, name = text_at(provider, "metadata", "namespace"), text_at(provider, "metadata", "name")
        body: JsonObject = {"status": {"conditions": status.get("conditions")}}
        try:
            answer = await self._writer.patch(RESOURCE_PROVIDER, provider, body)
        except (Absent, Conflict):
            return  # the next pass decides on the newer version
        except ApiError as error:
            log.warning("the condition of ResourceProvider %s/%s was not written: %s", namespace, name, error.message)
            return
        if not same(object_at(answer, "status"), status):
            self._dropped.add(text_at(provider, "metadata", "uid"))

    async def _record(self, provider: JsonObject, status: JsonObject, now: datetime) -> None:
        condition = condition_at(status, VARS_ARE_TEMPLATES)
        if condition is not None:
            event = EventContent("Normal", str(condition["type"]), str(condition["message"]), EVENT_COMPONENT)
            await self._events.record_once(
                Subject.of(self._writer.names.of(RESOURCE_PROVIDER), cast("kube.JsonObject", provider)), event, now
            )
