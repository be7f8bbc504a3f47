"""What refers to what: the relations of a kind, from which follows what wakes whom.

    Relation(
        of=LoadBalancerMachine,
        to=LoadBalancer,
        by=lambda machine: [(machine.metadata.namespace, machine.spec.load_balancer_ref.name)],
        matters=News(lambda balancer: balancer.status.group_id),
    )

When the LoadBalancer's security group changes, and when it comes or goes, the machines that refer to it are woken
(`matters`). `told` is the other direction: what of the referrer its referents decide by. The watcher also derives its
indexes, which objects it has to watch because others name them (`watched`), and what a restart looks at (`required`).
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
# An object by namespace and name, or by whatever else both sides of a relation know it.
Name = Hashable
# Objects by their model; by their kind where they have none; or the key of a lifecycle that no object stands behind.
End = type[KubeModel] | Kind | Key
ANY_KIND = "*"


class AnyObject(KubeModel):
    """An object of any kind; referrers name its apiVersion and kind before namespace and name.

    Most objects of such a kind refer to nothing, so nothing is parsed.
    """

    document: Annotated[dict[str, Any], SkipValidation] = {}

    @model_validator(mode="before")
    @classmethod
    def _keep(cls, value: dict[str, Any]) -> dict[str, Any]:
        return {"document": value}


class On(Enum):
    """What may happen to an object, as those related to it see it."""

    COMES = "comes"
    CHANGES = "changes"
    GOES = "goes"


class Whom(Enum):
    """Which of those that a change concerns are woken."""

    ALL = "all"
    UNSETTLED = "those that have something left to do"
    DELETING = "those that are being deleted"
    ONE = "one of them: whose workflow carries one carries them all"
    NONE = "none but those to whom it is passed on"


class Linked(Enum):
    """What it is to a referent that an object begins to refer to it, when that object referred to nothing before."""

    NEWS = "news"
    KNOWN = "known: whoever links the two links the referent first"
    FOLLOWED = "followed: Perdure links the referent next, which is news to it by itself"
    NEVER = "never, nor that it does so no more: only what it is told counts"


def always(_: Any) -> bool:
    return True


def nothing(_: Any) -> Hashable:
    """No field: only coming, going and being named otherwise count."""
    return ()


@dataclass(frozen=True)
class News(Generic[T]):
    """What of an object matters to those at the other end of a relation.

    Args:
        value: what they decide by; another value is news. A frozenset counts by its elements: one more is news, one
            less
            is not, and an empty one says nothing.
        on: whether coming, changing and going are news.
        whom: which of them are woken.
        linked: whether a referent is woken by being referred to at first.
        as_made: whether an object looks as its referent makes it: a new one that only Perdure has written is no news.
        onward: relations along which the wake is passed on, to those whom the relation's own news would wake.
        ours: whether what Perdure has written is news.
        among: which of them are woken, by the traits of the changed object, as it is now, and theirs.
        counts: which objects matter; another one is as if it did not exist.
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
    """What is watched of objects while others refer to them."""

    KIND = "all of a kind, whose apiVersion and kind the names begin with"
    NAME = "each by its name"
    NAMESPACE = "all of a namespace"
    CLUSTER = "all of the cluster"


@dataclass(frozen=True)
class WhileNamed:
    """That referents are watched only while objects refer to them, which do so by namespace and name.

    Many names or namespaces are watched together, where rights allow a watch of the whole cluster. A name that is empty
    stands for all objects, and requires none.

    Args:
        scope: what is watched.
        one: what metrics and logs call the watch of one name or namespace; that follows.
        all: what they call the watch of the cluster; of a kind, after its name.
        field_manager: of the referrers' lifecycles, if these make and delete the referents and write as somebody other
            than Perdure's other lifecycles; a deletion is then a step of the end of a referrer that is being deleted.
    """

    scope: Scope
    one: str = ""
    all: str = ""
    field_manager: str = ""


def by_name(model: Any) -> Iterable[Name]:
    return ((model.metadata.namespace, model.metadata.name),)


def version(model: Any) -> Hashable:
    """Any change at all."""
    return str(model.metadata.resource_version)


@dataclass(frozen=True, eq=False)
class Relation:
    """Objects that refer to others.

    Args:
        of: those that refer.
        to: those that are referred to.
        by: the names under which an object refers to others; or keys of lifecycles that no object stands behind.
        known_as: the names under which an object is referred to.
        matters: what of a referent wakes its referrers, None for nothing.
        told: what of a referrer wakes its referents, None for nothing.
        required: a referrer whose referent does not exist is woken when a watcher begins: a deletion that nobody has
            watched has left no event.
        watched: how referents are watched, where no entry of the watcher's does.
        trait: what of an object at either end `News.among` compares.
        transitive: whatever refers to a referrer counts as referring to its referent, too.
    """

    of: End | tuple[End, ...]
    to: End | tuple[End, ...]
    by: Callable[[Any], Iterable[Name]] = field(default=lambda _: ())
    known_as: Callable[[Any], Iterable[Name]] = by_name
    matters: News[Any] | None = None
    told: News[Any] | None = None
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
    """The kind of the objects at an end; empty where no object stands behind the lifecycle."""
    if isinstance(end, Key):
        return ""
    if end is AnyObject:
        return ANY_KIND
    return end.name if isinstance(end, Kind) else str(end.kind_of.name)  # type: ignore[attr-defined]


def model_of(end: End) -> type[KubeModel]:
    return KubeObject if isinstance(end, Kind | Key) else end
