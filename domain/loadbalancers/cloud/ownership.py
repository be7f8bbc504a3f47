"""Ownership of cloud objects: by mark, by the id recorded in the custom resource, or by inheritance from yawol.

Names are `namespace/name` and not unique. So Perdure marks what it creates with the owner's uid: security groups and
ports in the description, servers in the metadata. An object that yawol created has no mark. It is adopted if the custom
resource records its id, or its *name* and no id: yawol records the name before the creation. If several unmarked
objects have the recorded name, each of them may be foreign, so none is adopted. Unmarked objects that are not adopted
are not deleted either, and a warning reports them. Of several objects of one owner, the recorded object is used, or
else the oldest. Marked duplicates are deleted.
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
    return f"{_MARK}{uid}"


def marked_for(description: str) -> str:
    return description.removeprefix(_MARK) if description.startswith(_MARK) else ""


class _Found(Protocol):
    @property
    def id(self) -> str: ...


class _Dated(_Found, Protocol):
    @property
    def created_at(self) -> datetime | None: ...


F = TypeVar("F", bound=_Dated)


class Owner(Model):
    uid: str  # of the custom resource
    recorded: str = ""  # the id in its status; empty if there is none
    inherited: bool = False  # it owns the unmarked object of its name, which yawol may have created
    unique: bool = False  # no other owner has its name, so it owns even several unmarked objects of the name

    def owns(self, id_: str, mark: str) -> bool:
        if self.recorded and id_ == self.recorded:
            return True
        return mark == self.uid if mark else self.inherited


@dataclass(frozen=True)
class Selection(Generic[F]):
    """The objects of one name: the `selected` one is used, marked `doubles` are deleted now, unmarked `spare` objects
    are deleted with the owner, and `strangers` belong to others.
    """

    selected: F | None = None
    doubles: tuple[F, ...] = ()
    spare: tuple[F, ...] = ()
    strangers: tuple[F, ...] = ()

    @property
    def ours(self) -> tuple[F, ...]:
        return (*((self.selected,) if self.selected else ()), *self.doubles, *self.spare)


def select(found: Iterable[F], owner: Owner, mark: Callable[[F], str]) -> Selection[F]:
    candidates = tuple(found)
    if not owner.unique and sum(not mark(each) for each in candidates) > 1:
        owner = owner.model_copy(update={"inherited": False})
    ours = sorted((each for each in candidates if owner.owns(each.id, mark(each))), key=lambda each: _rank(each, owner))
    rest = ours[1:]
    return Selection(
        selected=ours[0] if ours else None,
        doubles=tuple(each for each in rest if mark(each) == owner.uid),
        spare=tuple(each for each in rest if mark(each) != owner.uid),
        strangers=tuple(each for each in candidates if not owner.owns(each.id, mark(each))),
    )


def _rank(found: _Dated, owner: Owner) -> tuple[bool, datetime, str]:
    return (found.id != owner.recorded, found.created_at or _LAST, found.id)
