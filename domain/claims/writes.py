"""Actions that replace one object, or its status, in full, with the decision's resourceVersion as precondition."""

from __future__ import annotations

from typing import ClassVar, TypeVar

from domain.claims.deep_merge import same
from domain.claims.domain_names import DomainNames
from domain.claims.finalizers import is_in_hand, others_finalizers
from domain.claims.json_objects import GivenObject, JsonObject, object_at, text_at, with_metadata
from domain.decision import Action, Queue, World
from domain.identity import Kind
from domain.model import Model
from domain.notices import warning
from domain.refusal import ErrorType, Refusal

_LASTING = (ErrorType.INVALID, ErrorType.DENIED)
# After these refusals, an immediate retry would be refused, too.
_REFUSED_AGAIN = (*_LASTING, ErrorType.UNAVAILABLE)


class ObjectsWorld(World):
    wrote: tuple[str, ...] = ()

    def stored(self, kind: str, obj: JsonObject) -> ObjectsWorld:
        raise NotImplementedError(f"{type(self).__name__} holds no {kind}")

    def with_refused(self, write: PutObject, refusal: Refusal) -> ObjectsWorld | None:
        """The world that shows the refusal as a fault; None if the write is merely tried again."""
        return None

    def with_unwritten(self, write: PutObject) -> ObjectsWorld:
        """The world after the API server refused the write, if an immediate retry would be refused, too."""
        return self

    def to_write(self, *writes: PutObject) -> tuple[PutObject, ...]:
        """The writes that change something, without those already made in this pass: if the API server drops a field,
        another write of it would always seem necessary.
        """
        return tuple(each for each in writes if each.mark not in self.wrote and each.differs)


W = TypeVar("W", bound=ObjectsWorld)


class ClaimsAction(Action):
    queue: ClassVar[str] = Queue.CLAIMS


class Stored(Model):
    obj: GivenObject


class PutObject(ClaimsAction):
    activity: ClassVar[str] = "claims.put"
    result: ClassVar[type[Model] | None] = Stored

    kind: Kind
    before: GivenObject
    after: GivenObject
    what: str = "spec and metadata"

    @property
    def mark(self) -> str:
        return f"{self.kind.name} {self.what}"

    @property
    def differs(self) -> bool:
        return not all(same(self.before.get(part), self.after.get(part)) for part in ("metadata", "spec"))

    @property
    def slot(self) -> str:
        """One slot for each object: its writes run in sequence, each with the previous write's resourceVersion."""
        return f"write {self.kind.name} {text_at(self.before, 'metadata', 'name')}"

    @property
    def summary(self) -> str:
        return f"write {self.what} of {self.kind.name} {text_at(self.before, 'metadata', 'name')}"

    def fold(self, world: W, written: Stored) -> W:  # type: ignore[override]
        after = world.stored(self.kind.name, written.obj)
        return after.model_copy(update={"wrote": (*world.wrote, self.mark)})  # type: ignore[return-value]

    def refuse(self, world: W, refusal: Refusal) -> W:  # type: ignore[override]
        after = world.with_refused(self, refusal)
        if after is None:
            left = world.with_unwritten(self) if refusal.type in _REFUSED_AGAIN else world
            if refusal.type in _LASTING:  # perhaps no status can show this
                left = left.with_news(warning("WriteRefused", f"{self.summary}: {refusal.message}"))
            return super().refuse(left, refusal)  # type: ignore[return-value]
        others = {slot: each for slot, each in world.refusals.items() if slot != self.slot}
        return after.model_copy(update={"refusals": others})  # type: ignore[return-value]


class PutStatus(PutObject):
    activity: ClassVar[str] = "claims.put_status"
    last: ClassVar[bool] = True

    what: str = "status"

    @property
    def differs(self) -> bool:
        return not same(object_at(self.before, "status"), object_at(self.after, "status"))


class LetGo(PutObject):
    activity: ClassVar[str] = "claims.let_go"
    last: ClassVar[bool] = True

    what: str = "finalizers"


def let_go(names: DomainNames, kind: Kind, obj: JsonObject) -> tuple[LetGo, ...]:
    if not is_in_hand(names, obj):
        return ()
    return (LetGo(kind=kind, before=obj, after=with_metadata(obj, finalizers=others_finalizers(names, obj))),)
