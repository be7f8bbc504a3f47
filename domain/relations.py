"""References between kinds of objects, and which changes of an object wake the lifecycles at the other end.

    Relation(
        of=LoadBalancerMachine,
        to=LoadBalancer,
        by=lambda machine: [(machine.spec.load_balancer_ref.namespace, machine.spec.load_balancer_ref.name)],
        matters=News(lambda balancer: balancer.status.group_id),
    )

When the LoadBalancer is created or deleted, or its security group changes, the machines that refer to it are woken
(`matters`). A further argument, `news`, would say which changes of a machine wake its LoadBalancer's lifecycle.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any, Generic, TypeVar

from pydantic import SkipValidation, model_validator

from domain.identity import Key, Kind
from domain.resource import KubeModel, KubeObject

T = TypeVar("T")
# What identifies an object in a relation: its namespace and name, or another value that both sides have.
Name = Hashable
# One end of a relation: the objects' model, their kind if they have no model, or a lifecycle's key if it has no object.
End = type[KubeModel] | Kind | Key
ANY_KIND = "*"


class AnyObject(KubeModel):
    """An object of any kind, unparsed. Referrers name it by apiVersion, kind, namespace and name."""

    document: Annotated[dict[str, Any], SkipValidation] = {}

    @model_validator(mode="before")
    @classmethod
    def _keep(cls, value: dict[str, Any]) -> dict[str, Any]:
        return {"document": value}


class On(Enum):
    COMES = "comes"
    CHANGES = "changes"
    GOES = "goes"


class Whom(Enum):
    ALL = "all"
    UNSETTLED = "those that have something left to do"
    DELETING = "those that are being deleted"
    ONE = "any one of them: one workflow handles all of them"
    NONE = "none of them: the wake is only passed on, see `News.onward`"


class Linked(Enum):
    NEWS = "news"
    KNOWN = "no: Perdure has already written the reference back into the referent, and that write woke the referent"
    FOLLOWED = "no: Perdure is about to write the reference back into the referent, and that write wakes the referent"
    NEVER = "no: references that begin or end wake nothing; only changes of `News.value` wake the referent's lifecycle"


def always(_: Any) -> bool:
    return True


def nothing(_: Any) -> Hashable:
    """For relations where no field matters: only creation, deletion and references count."""
    return ()


@dataclass(frozen=True)
class News(Generic[T]):
    """Which changes of an object wake the lifecycles at the other end of a relation.

    Args:
        value: the part of the object that those lifecycles depend on. If it is a frozenset, only added elements count.
        on: whether creation, change and deletion count.
        whom: which lifecycles at the other end are woken.
        linked: whether an object's first reference to a referent wakes the referent's lifecycle.
        as_made: tests whether a new object is in the form in which the lifecycle at the other end creates it. If so,
            and if Perdure wrote the object last, the creation wakes nothing.
        onward: relations along which the wake is passed on.
        ours: whether Perdure's own writes count.
        among: whether to wake a related object, given `Relation.trait` of the changed and of the related object.
        counts: which objects matter; others are treated as absent.
    """

    value: Callable[[T], Hashable] = nothing
    on: frozenset[On] = frozenset(On)
    whom: Whom = Whom.ALL
    linked: Linked = Linked.NEWS
    as_made: Callable[[T], bool] | None = None
    onward: tuple[Relation, ...] = ()
    ours: bool = True
    among: Callable[[Any, Any], bool] | None = None
    counts: Callable[[T], bool] = always


class Scope(Enum):
    KIND = "all objects of a kind, whose apiVersion and kind begin each tuple that `Relation.by` returns"
    NAME = "one object by its name"
    NAMESPACE = "all objects of a namespace"
    CLUSTER = "all objects of the cluster"


@dataclass(frozen=True)
class WhileNamed:
    """Referents that are watched only while objects refer to them by namespace and name.

    If permissions allow it, one watch of the whole cluster replaces many watches of names or namespaces. An empty name
    refers to all objects, and never counts as a missing referent.

    Args:
        one: the label of a watch of one name or namespace in metrics and logs.
        all: the label of a watch of the whole cluster; with `Scope.KIND`, the kind's name precedes it.
        field_manager: the field manager under which the referrers' lifecycles write the referents, if not Perdure's.
            With `Scope.KIND`, it also says that a referrer, when it is deleted, deletes its referents. Their deletions
            then wake the referrer after several seconds instead of at once.
    """

    scope: Scope
    one: str = ""
    all: str = ""
    field_manager: str = ""


def by_name(model: Any) -> Iterable[Name]:
    return ((model.metadata.namespace, model.metadata.name),)


def version(model: Any) -> Hashable:
    return str(model.metadata.resource_version)


@dataclass(frozen=True, eq=False)
class Relation:
    """A reference from objects (referrers) to other objects (referents).

    Args:
        of: the referrers.
        to: the referents.
        by: the names that a referrer refers to, or keys of lifecycles without an object.
        known_as: the names of a referent.
        matters: which changes of a referent wake its referrers; None for none.
        news: which changes of a referrer wake its referents; None for none.
        required: whether a starting watcher wakes referrers whose referent is missing, perhaps deleted unnoticed.
        watched: how referents are watched, if the watcher has no entry of its own for them.
        trait: returns the value of an object, at either end, that `News.among` receives.
        transitive: if A refers to B and B to C, A also refers to C.
    """

    of: End | tuple[End, ...]
    to: End | tuple[End, ...]
    by: Callable[[Any], Iterable[Name]] = field(default=lambda _: ())
    known_as: Callable[[Any], Iterable[Name]] = by_name
    matters: News[Any] | None = None
    news: News[Any] | None = None
    required: bool = False
    watched: WhileNamed | None = None
    trait: Callable[[Any], Hashable] = nothing
    transitive: bool = False

    @property
    def referrers(self) -> tuple[End, ...]:
        return self.of if isinstance(self.of, tuple) else (self.of,)

    @property
    def referents(self) -> tuple[End, ...]:
        return self.to if isinstance(self.to, tuple) else (self.to,)


def kind_name(end: End) -> str:
    if isinstance(end, Key):
        return ""
    if end is AnyObject:
        return ANY_KIND
    return end.name if isinstance(end, Kind) else str(end.kind_of.name)  # type: ignore[attr-defined]


def model_of(end: End) -> type[KubeModel]:
    return KubeObject if isinstance(end, Kind | Key) else end
