"""Writing the area's objects: whole, only where they differ, and only over the version that was decided upon.

A patch that changes nothing costs the API server as much as one that does, so everything is compared first. Whole
objects are put, since statuses hold free-form maps and lists of which a merge patch would keep what is gone. What the
API server answers is known to the process at once.
"""

from __future__ import annotations

from datetime import datetime
from typing import cast

from activities.claims.known import Known
from domain.claims import RESOURCE_HANDLE
from domain.claims.constants import EVENT_COMPONENT
from domain.claims.domain_names import DomainNames
from domain.claims.merging import same
from domain.claims.objects import JsonObject, object_at, text_at, value_at
from domain.identity import Kind
from domain.levers import RETRIED, RETRY
from engine import kube
from engine.errors import Absent, ApiError, Conflict
from engine.kube import KubeApi
from engine.kube.events import Said, Subject, event, record


class Writer:
    """Writes of claims, handles, pools and scalings."""

    def __init__(self, api: KubeApi, known: Known) -> None:
        self.api = api
        self.names = known.names
        self._known = known

    async def put(self, kind: Kind, before: JsonObject, after: JsonObject) -> JsonObject:
        """The object as `after` says, but for its status; its newest version comes back."""
        if all(same(before.get(part), after.get(part)) for part in ("metadata", "spec")):
            return before
        answer = await self.api.replace(kind, *_name(before), _plain(after))
        return self._learnt(kind, cast("JsonObject", answer))

    async def put_status(
        self, kind: Kind, before: JsonObject, status: JsonObject, *, unwritten: bool = False
    ) -> JsonObject:
        """The object with this status, as it stands; `unwritten` says that the status of `before` never was."""
        if same(object_at(before, "status"), status) and not unwritten:
            return before
        body: JsonObject = {**before, "status": status}
        answer = await self.api.replace(kind, *_name(before), _plain(body), subresource="status")
        return self._learnt(kind, cast("JsonObject", answer))

    async def patch(self, kind: Kind, obj: JsonObject, patch: JsonObject) -> JsonObject:
        """The object with a JSON merge patch applied; `Conflict` if it has changed since it was read."""
        version = text_at(obj, "metadata", "resourceVersion")
        answer = await self.api.patch(kind, *_name(obj), patch, resource_version=version)
        return self._learnt(kind, cast("JsonObject", answer))

    async def create(self, kind: Kind, body: JsonObject, namespace: str) -> JsonObject:
        """A new object; `Conflict` if its name is taken."""
        answer = await self.api.create(kind, _plain(body), namespace)
        return self._learnt(kind, cast("JsonObject", answer))

    async def delete(self, kind: Kind, obj: JsonObject, *, as_seen: bool = False) -> JsonObject:
        """Ask for the deletion of that very object, with `as_seen` only if it has not changed.

        Returns:
            The object as it is marked; as it was, if nothing keeps it or it was marked before.

        Raises:
            Conflict: it has changed, or is another object of the name.
        """
        if value_at(obj, "metadata", "deletionTimestamp"):
            return obj
        version = text_at(obj, "metadata", "resourceVersion") if as_seen else ""
        try:
            answer = await self.api.delete(
                kind, *_name(obj), uid=text_at(obj, "metadata", "uid"), resource_version=version
            )
        except Absent:
            return obj
        if text_at(cast("JsonObject", answer), "kind") != kind.name:
            return obj
        return self._learnt(kind, cast("JsonObject", answer))

    async def let_go(self, kind: Kind, obj: JsonObject) -> None:
        """Drop our finalizers from the object, those of former installations too; others' stay."""
        finalizers = value_at(obj, "metadata", "finalizers")
        held = finalizers if isinstance(finalizers, list) else []
        kept = [each for each in held if each not in self.names.our_finalizers]
        if len(kept) == len(held):
            return
        body = {"metadata": {"uid": text_at(obj, "metadata", "uid"), "finalizers": kept}}
        try:
            answer = await self.api.patch(
                kind, *_name(obj), body, resource_version=text_at(obj, "metadata", "resourceVersion")
            )
        except Absent:
            return
        if kept or not value_at(obj, "metadata", "deletionTimestamp"):
            self._learnt(kind, cast("JsonObject", answer))

    async def tell(
        self,
        kind: Kind,
        obj: JsonObject,
        reason: str,
        message: str,
        now: datetime,
        *,
        normal: bool = False,
        action: str = "",
    ) -> None:
        """A Kubernetes Event on the object; that it cannot be written is only logged."""
        said = Said("Normal" if normal else "Warning", reason, message, EVENT_COMPONENT, action)
        await record(self.api, event(Subject.of(self.names.of(kind), cast("kube.JsonObject", obj)), said, now))

    def _learnt(self, kind: Kind, answer: JsonObject) -> JsonObject:
        self._known.learn(kind, answer)
        return answer


def with_metadata(obj: JsonObject, **fields: object) -> JsonObject:
    """The object with these fields of its metadata."""
    return {**obj, "metadata": {**object_at(obj, "metadata"), **cast("JsonObject", fields)}}


def with_spec(obj: JsonObject, **fields: object) -> JsonObject:
    """The object with these fields of its spec."""
    return {**obj, "spec": {**object_at(obj, "spec"), **cast("JsonObject", fields)}}


def in_hand(names: DomainNames, kind: Kind, obj: JsonObject) -> JsonObject:
    """The object as one that we look after: with our finalizer, and a person's retry honoured."""
    taken = with_metadata(obj, finalizers=managed_finalizers(names, kind, obj))
    token = text_at(obj, "metadata", "annotations", RETRY)
    if not token:
        return taken
    return with_metadata(taken, annotations={**object_at(obj, "metadata", "annotations"), RETRIED: token})


def managed_finalizers(names: DomainNames, kind: Kind, obj: JsonObject) -> list[str]:
    """The finalizers with ours among them; a handle has no other of former installations."""
    finalizers = value_at(obj, "metadata", "finalizers")
    held = [str(each) for each in finalizers] if isinstance(finalizers, list) else []
    if kind is RESOURCE_HANDLE:
        held = [each for each in held if each not in names.former_finalizers]
    return held if names.finalizer in held else [names.finalizer, *held]


def is_conflict(error: ApiError) -> bool:
    """Whether somebody else has written, or the object is gone: look again."""
    return isinstance(error, (Conflict, Absent))


def _name(obj: JsonObject) -> tuple[str, str]:
    return text_at(obj, "metadata", "namespace"), text_at(obj, "metadata", "name")


def _plain(obj: JsonObject) -> kube.JsonObject:
    """Without managedFields: left out they stay as they are."""
    metadata = {name: value for name, value in object_at(obj, "metadata").items() if name != "managedFields"}
    return {**obj, "metadata": metadata}
