"""Which objects in the cloud are ours: by their mark, by what the custom resource has recorded, or by inheritance.

Names are `namespace/name` and not unique: another cluster in the same project may use the same ones. So security groups
and ports that Perdure makes carry the uid of their owner in their description, and servers in their metadata. What
yawol made carries no mark: it is ours if its id is recorded, or if the custom resource has recorded the *name* (which
yawol writes before it creates) and no id yet. Any other unmarked object of our name may be somebody else's: it is
neither taken nor deleted, and a person is told.

Of several that are ours the recorded one is kept, else the oldest. The others are doubles; those that carry our mark
are deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, Protocol, TypeVar

from domain.model import Model

_MARK = "perdure:"
_LAST = datetime.max.replace(tzinfo=UTC)


def mark_of(uid: str) -> str:
    """The description of what belongs to the object of that uid."""
    return f"{_MARK}{uid}"


def marked_for(description: str) -> str:
    """The uid that a description marks, empty if it is no mark."""
    return description.removeprefix(_MARK) if description.startswith(_MARK) else ""


class _Found(Protocol):
    @property
    def id(self) -> str: ...


class _Dated(_Found, Protocol):
    @property
    def created_at(self) -> datetime | None: ...


F = TypeVar("F", bound=_Dated)


class Owner(Model):
    """Whose objects are looked for.

    Attributes:
        uid: of the custom resource.
        recorded: the id in its status, empty if there is none.
        inherited: whether unmarked objects of its name are its own: its status holds the name, and no id.
    """

    uid: str
    recorded: str = ""
    inherited: bool = False

    def owns(self, id_: str, mark: str) -> bool:
        """Whether an object is the owner's."""
        if id_ == self.recorded:
            return True
        return mark == self.uid if mark else self.inherited


@dataclass(frozen=True)
class Selection(Generic[F]):
    """One kept, doubles to be deleted, others of ours that are left alone until the end, and strangers."""

    kept: F | None = None
    doubles: tuple[F, ...] = ()
    spare: tuple[F, ...] = ()
    strangers: tuple[F, ...] = ()

    @property
    def ours(self) -> tuple[F, ...]:
        """All that is ours."""
        return (*((self.kept,) if self.kept else ()), *self.doubles, *self.spare)


def select(found: Iterable[F], owner: Owner, mark: Callable[[F], str]) -> Selection[F]:
    """What of the candidates is the owner's; `mark` gives the uid that an object carries."""
    candidates = tuple(found)
    ours = sorted((each for each in candidates if owner.owns(each.id, mark(each))), key=lambda each: _rank(each, owner))
    rest = ours[1:]
    return Selection(
        kept=ours[0] if ours else None,
        doubles=tuple(each for each in rest if mark(each) == owner.uid),
        spare=tuple(each for each in rest if mark(each) != owner.uid),
        strangers=tuple(each for each in candidates if not owner.owns(each.id, mark(each))),
    )


def _rank(found: _Dated, owner: Owner) -> tuple[bool, datetime, str]:
    return (found.id != owner.recorded, found.created_at or _LAST, found.id)
