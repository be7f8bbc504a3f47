"""The writes that every lifecycle uses: patch and delete its own object, and record Events. All can be repeated.

A patch carries the observed resourceVersion, so a repetition after a lost answer is refused as a conflict.
An absent object is reported as gone, not as an error. An object with another uid is never changed.
"""

from __future__ import annotations

from temporalio import activity
from temporalio.client import Client

from activities.activity_class import Activities
from activities.clients import OnWrite
from domain.identity import Kind, all_kinds
from domain.writes import Delete, Patch, RecordEvents, Written
from engine import metrics
from engine.errors import Absent, Conflict
from engine.kube import KubeApi
from engine.kube.events import record_events
from engine.kube.json import JsonObject, mapping, text
from engine.temporal import signal_if_open


class KubeActivities(Activities):
    def __init__(
        self, kube: KubeApi, client: Client, served: KubeApi | None = None, wrote: OnWrite | None = None
    ) -> None:
        self._kube = kube
        self._served = served or kube
        self._client = client
        self._wrote = wrote

    @activity.defn(name=Patch.activity)
    async def patch(self, write: Patch) -> Written:
        key = write.key
        body = {**write.patch, "metadata": {**mapping(write.patch, "metadata"), "uid": key.uid}}
        kind = all_kinds()[key.kind]
        try:
            answer = await self._of(kind).patch(
                kind,
                key.namespace,
                key.name,
                body,
                subresource=write.subresource,
                resource_version=write.resource_version,
            )
        except Absent:
            return Written(gone=True)
        if self._wrote is not None:
            self._wrote(key, kind, answer)
        metrics.wrote(write, answer)
        version = text(answer, "metadata", "resourceVersion")
        return Written(resource_version=version, dropped=dropped_fields(write.patch, answer))

    @activity.defn(name=Delete.activity)
    async def delete(self, deletion: Delete) -> None:
        """Delete the object, after signalling the `dependent` lifecycle, if there is one."""
        key = deletion.key
        if deletion.dependent is not None:
            # If that lifecycle has ended, its count of such deletions is lost anyway.
            await signal_if_open(self._client, deletion.dependent, "died", key)
        kind = all_kinds()[key.kind]
        try:
            await self._of(kind).delete(kind, key.namespace, key.name, uid=key.uid)
        except (Absent, Conflict):
            return

    @activity.defn(name=RecordEvents.activity)
    async def record_events(self, action: RecordEvents) -> None:
        """A failure is only logged."""
        await record_events(action, self._kube, self._served)

    def _of(self, kind: Kind) -> KubeApi:
        return self._served if kind.served else self._kube


def dropped_fields(patch: dict[str, object], answer: JsonObject) -> tuple[str, ...]:
    """Status fields that were not stored, because the installed CRD lacks them."""
    patched, stored = mapping(patch, "status"), mapping(answer, "status")
    return tuple(name for name, value in patched.items() if value and name not in stored)
