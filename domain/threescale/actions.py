from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

from domain import writes
from domain.decision import Action, Queue
from domain.model import Model
from domain.refusal import FIRST_RETRY, LONGEST_RETRY, ErrorType, Refusal
from domain.schema import JsonObject
from domain.threescale.resources import Tenant

SECRET = "Secret"  # noqa: S105 - a slot, no secret


class Stored(writes.Written):
    """The object after a write. `obj` is empty if the object is gone. `world` is a new observation if the write changed
    the object's spec; otherwise None.
    """

    obj: JsonObject = {}
    world: Any = None


class _OwnWrite(writes.Write):
    result: ClassVar[type[Model] | None] = Stored

    def fold(self, world: Any, result: Model | None) -> Any:
        stored = result if isinstance(result, Stored) else Stored()
        if not stored.obj:
            return world.model_copy(update={"exists": False})
        return (stored.world.recall(world) if stored.world is not None else world).stored(stored.obj)

    def refuse(self, world: Any, refusal: Refusal) -> Any:
        """Record every refusal, even a conflict. `writes.Patch` would ignore conflicts."""
        return Action.refuse(self, world, refusal)


class PatchObject(_OwnWrite, writes.Patch):
    note: str = "write the object"

    def refuse(self, world: Any, refusal: Refusal) -> Any:
        """If the API server refuses the patched spec as invalid, store the message in `unwritable`, for the status."""
        if refusal.type is ErrorType.INVALID and "spec" in self.patch:
            return world.model_copy(update={"unwritable": refusal.message})
        return super().refuse(world, refusal)


class ShowStatus(_OwnWrite, writes.Patch):
    """`in_sync` is True if the write only adds the condition InSync during a long sync."""

    subresource: str = "status"
    note: str = "write the status"
    in_sync: bool = False

    def fold(self, world: Any, result: Model | None) -> Any:
        return super().fold(world, result).model_copy(update={"shown_last": self.patch["status"]})

    def refuse(self, world: Any, refusal: Refusal) -> Any:
        """Ignore a conflict if the write only adds `InSync`. If the API server refuses a Tenant's status as invalid,
        set `mute`, so that the status is not written: the replaced operator's CRD requires ids in a Tenant's status.
        """
        if self.in_sync and refusal.type is ErrorType.CONFLICT:
            return world
        if refusal.type is ErrorType.INVALID and isinstance(world.resource, Tenant):
            return world.model_copy(update={"mute": True})
        return super().refuse(world, refusal)


class DeleteObject(_OwnWrite, writes.Delete):
    observed_after: ClassVar[bool] = False

    @property
    def summary(self) -> str:
        return "delete the object"


class DropFinalizer(_OwnWrite, writes.DropFinalizer):
    """`left` names what is not deleted: an entry in 3scale, or the objects that an OpenAPI created."""

    note: str = "remove the finalizer"
    left: tuple[str, ...] = ()


class Beside(Model):
    beside: dict[str, Any] = {}


class ClusterWrite(Action):
    activity: ClassVar[str] = "threescale.write_cluster"
    queue: ClassVar[str] = Queue.THREESCALE
    result: ClassVar[type[Model] | None] = Beside
    first_retry: ClassVar[timedelta] = FIRST_RETRY
    longest_retry: ClassVar[timedelta] = LONGEST_RETRY

    def fold(self, world: Any, result: Model | None) -> Any:
        return world.beside(result.beside if isinstance(result, Beside) else {})


class WriteSecret(ClusterWrite):
    """Write a Secret: random values under the keys in `generated`, and the given `values`."""

    generated: tuple[str, ...] = ()
    values: dict[str, str] = {}

    @property
    def slot(self) -> str:
        return SECRET

    @property
    def summary(self) -> str:
        return f"write {', '.join((*self.generated, *self.values))} to its Secret"
