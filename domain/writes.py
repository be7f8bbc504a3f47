"""Writes of an object's own custom resource: actions that every lifecycle uses.

A write is a merge patch of the changed fields, with the observed resourceVersion as precondition. If the object has
changed meanwhile, the API server answers with a conflict, and the loop observes and decides again. `fold` applies the
same patch to the world, so nothing is read back.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar, Self, TypeVar

from domain.decision import Action, W, WhenUnwanted, World
from domain.identity import Key
from domain.model import Model
from domain.notices import Notice
from domain.refusal import ErrorType, Refusal
from domain.resource import CustomResource, ObjectMeta

R = TypeVar("R", bound=CustomResource)

JsonPatch = dict[str, object]


class Written(Model):
    """The result of a write. `dropped` are status fields that the API server has not stored."""

    resource_version: str = ""
    gone: bool = False
    dropped: tuple[str, ...] = ()


class Write(Action):
    """A write, executed by the worker that observes the object (`workflows/durable_driver.py`)."""

    start_to_close: ClassVar[timedelta] = timedelta(seconds=20)

    key: Key

    @property
    def slot(self) -> str:
        """The slot that all writes of an object share, so that each has the resourceVersion of the previous write."""
        return "kube.write"


class Patch(Write):
    activity: ClassVar[str] = "kube.patch"
    result: ClassVar[type[Model] | None] = Written

    patch: JsonPatch
    subresource: str = ""
    resource_version: str = ""
    note: str = ""

    @property
    def summary(self) -> str:
        return self.note or f"write {self.subresource or 'object'}"

    def fold(self, world: World, result: Model | None) -> World:  # type: ignore[override]
        written = result if isinstance(result, Written) else Written()
        return world.written(self.patch, written.resource_version, gone=written.gone)

    def refuse(self, world: World, refusal: Refusal) -> World:  # type: ignore[override]
        """Do not record a conflict if the lifecycle observes and decides again at once because of it."""
        ignored = refusal.type is ErrorType.CONFLICT and refusal.pause == timedelta(0)
        return world if ignored else super().refuse(world, refusal)


class LeverPatch(Patch):
    """A patch for which a person waits. After `schedule_to_close` it is refused, and is not written later.

    All its attempts together take less time than a command waits (`starters.cli.lifecycle.ANSWER`).
    """

    start_to_close: ClassVar[timedelta] = timedelta(seconds=8)
    schedule_to_close: ClassVar[timedelta | None] = timedelta(seconds=20)
    urgent: ClassVar[bool] = True


class DropFinalizer(Patch):
    last: ClassVar[bool] = True

    @classmethod
    def of(cls, key: Key, meta: ObjectMeta, finalizer: str, note: str) -> Self:
        patch: JsonPatch = {"metadata": {"finalizers": meta.finalizers_without(finalizer)}}
        return cls(key=key, patch=patch, resource_version=meta.resource_version, note=note)


class Delete(Write):
    """Delete the object, after sending the signal `died` to the `dependent` lifecycle, if there is one."""

    observed_after: ClassVar[bool] = True

    activity: ClassVar[str] = "kube.delete"

    dependent: Key | None = None

    @property
    def summary(self) -> str:
        return f"delete {self.key.path}"


class RecordEvents(Write):
    """Record notices as Events. The loop adds this action to decisions. It blocks no other action.

    A failure is only logged.
    """

    activity: ClassVar[str] = "kube.record_events"
    when_unwanted: ClassVar[WhenUnwanted] = WhenUnwanted.FINISHED

    notices: tuple[Notice, ...]
    at: datetime

    @property
    def slot(self) -> str:
        return self.activity

    @property
    def summary(self) -> str:
        return f"write an Event: {self.notices[0].message}"

    def fold(self, world: W, result: Model | None) -> W:
        recorded = {each.digest: None if each.each_time else self.at for each in self.notices}
        return world.model_copy(update={"recorded": {**world.recorded, **recorded}})

    def refuse(self, world: W, refusal: Refusal) -> W:
        return super().refuse(world.with_news(*self.notices), refusal)


def merge(target: object, patch: object) -> object:
    """The target after a JSON merge patch, as the API server applies it (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged


def patched(resource: R, patch: JsonPatch, resource_version: str) -> R:
    """The object after a patch that led to `resource_version`; unchanged if it has this or a newer version.

    resourceVersions of one object are comparable as numbers (guaranteed from Kubernetes 1.35, always true with etcd).
    """
    seen = resource.metadata.resource_version
    if seen.isdigit() and resource_version.isdigit() and int(seen) >= int(resource_version):
        return resource
    body = merge(resource.model_dump(mode="json"), patch)
    if resource_version and isinstance(body, dict):
        body["metadata"] = {**body["metadata"], "resourceVersion": resource_version}
    return type(resource).model_validate(body)


def difference(before: Model, after: Model) -> JsonPatch:
    old, new = before.model_dump(mode="json"), after.model_dump(mode="json")
    return _difference(old, new)


def _difference(old: dict[str, object], new: dict[str, object]) -> JsonPatch:
    patch: JsonPatch = {}
    for name, value in new.items():
        past = old.get(name)
        if value == past:
            continue
        patch[name] = _difference(past, value) if isinstance(value, dict) and isinstance(past, dict) else value
    patch.update({name: None for name in old if name not in new})
    return patch
