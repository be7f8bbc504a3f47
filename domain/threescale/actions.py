"""The writes of the cluster that a decision on an object of 3scale may ask for."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

from domain import writes
from domain.decision import Action, Queue
from domain.model import Model
from domain.refusal import FIRST_RETRY, LONGEST_RETRY, ErrorType, Refusal
from domain.schema import JsonObject
from domain.threescale.resources import Tenant

# The slot of what the object writes to a Secret of the cluster.
SECRET = "Secret"  # noqa: S105 - no secret itself


class Stored(writes.Written):
    """The object as the API server has answered it, empty if it is gone.

    `world` is what is observed beside it, where its spec has changed.
    """

    obj: JsonObject = {}
    world: Any = None


class _OwnWrite(writes.Write):
    """A write of the object itself; its conflicts count."""

    result: ClassVar[type[Model] | None] = Stored

    def fold(self, world: Any, result: Model | None) -> Any:
        """The object as it is now."""
        stored = result if isinstance(result, Stored) else Stored()
        if not stored.obj:
            return world.model_copy(update={"exists": False})
        return (stored.world.recall(world) if stored.world is not None else world).stored(stored.obj)

    def refuse(self, world: Any, refusal: Refusal) -> Any:
        """By its slot."""
        return Action.refuse(self, world, refusal)


class PatchObject(_OwnWrite, writes.Patch):
    """A merge patch of the object."""

    note: str = "write the object"

    def refuse(self, world: Any, refusal: Refusal) -> Any:
        """Where the API server refuses a spec with its defaults, that is shown."""
        if refusal.type is ErrorType.INVALID and "spec" in self.patch:
            return world.model_copy(update={"unwritable": refusal.message})
        return super().refuse(world, refusal)


class ShowStatus(_OwnWrite, writes.Patch):
    """A merge patch of its status; `in_sync`: it says only that the sync lasts."""

    subresource: str = "status"
    note: str = "write the status"
    in_sync: bool = False

    def refuse(self, world: Any, refusal: Refusal) -> Any:
        """A conflict of what is shown by the way is left to the next write.

        The replaced operator's definition of Tenants allows no status without ids, and may still stand.
        """
        if self.in_sync and refusal.type is ErrorType.CONFLICT:
            return world
        if refusal.type is ErrorType.INVALID and isinstance(world.resource, Tenant):
            return world.model_copy(update={"mute": True})
        return super().refuse(world, refusal)


class DeleteObject(_OwnWrite, writes.Delete):
    """Delete the object, because what it belongs to is gone."""

    observed_after: ClassVar[bool] = False

    @property
    def summary(self) -> str:
        """For `plan`."""
        return "delete the object"


class DropFinalizer(_OwnWrite, writes.DropFinalizer):
    """The object may go. `left` is what stays in 3scale, in words."""

    note: str = "remove the finalizer"
    left: tuple[str, ...] = ()


class Beside(Model):
    """What the world shows from now on, by its fields."""

    beside: dict[str, Any] = {}


class ClusterWrite(Action):
    """A write of the cluster besides the object itself."""

    activity: ClassVar[str] = "threescale.write_cluster"
    queue: ClassVar[str] = Queue.THREESCALE
    result: ClassVar[type[Model] | None] = Beside
    first_retry: ClassVar[timedelta] = FIRST_RETRY
    longest_retry: ClassVar[timedelta] = LONGEST_RETRY

    def fold(self, world: Any, result: Model | None) -> Any:
        """What was written is seen."""
        return world.beside(result.beside if isinstance(result, Beside) else {})


class WriteSecret(ClusterWrite):
    """Keys of the object's Secret get random values (`generated`), or these (`values`)."""

    generated: tuple[str, ...] = ()
    values: dict[str, str] = {}

    @property
    def slot(self) -> str:
        """One for the whole Secret."""
        return SECRET

    @property
    def summary(self) -> str:
        """The keys; never what they get."""
        return f"write {', '.join((*self.generated, *self.values))} to its Secret"
