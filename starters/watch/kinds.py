"""The watched kinds of all areas, as a table.

An area joins with a module of its name here (`accounts.py`, ...) that defines `WATCHED`, or `watched_for` where the
settings decide. What an entry says is pure:
how an object is read into a projection, and whom a change concerns. Whatever must be asked of a server is not for the
watcher.

An object's work may be done by another object's workflow, its *carrier*: then whatever would wake the object wakes the
carrier, and no workflow of the object's own is missed. A carrier may be carried itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import cast

from domain.built_in_kinds import SECRET
from domain.identity import Key, Kind, all_kinds
from domain.relations import Relation, Scope, kind_name
from engine.kube.api import FIELD_MANAGER
from engine.kube.json import JsonObject
from engine.kube.store import Followed
from engine.settings import Settings
from starters.watch import areas
from starters.watch.index import Dependents, Index
from starters.watch.projection import Projection, Read, Side, View, project
from starters.watch.relations import missing_referents, places_of, referents, shown_by, woken

# Objects of a kind come and go; listing a namespace again each time would cost more than watching on (seconds).
LINGERS = 300.0

# For how many seconds an object's own wake may wait after a change, before and after it.
Patience = Callable[[Projection | None, Projection], float]
# Whether an object has a lifecycle.
Lives = Callable[[Projection, Index], bool]
# Whether a change, before and after it, is a step of an end that is being carried out.
Ending = Callable[[Projection | None, Projection | None, Index], bool]
# The key of whose workflow does the work of an object.
Carrier = Callable[[Projection, Index], Key]


def _no_patience(before: Projection | None, after: Projection) -> float:
    return 0.0


def _ends_unseen(before: Projection | None, after: Projection | None, _: Index) -> bool:
    return False


def _declares_nothing(_: Projection) -> tuple[Watched, ...]:
    return ()


def _carries_itself(known: Projection, _: Index) -> Key:
    return known.key


def _is_never_silent(_: Projection) -> float | None:
    return None


def _concerns_nobody(before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
    return set()


def _lives_always(_known: Projection, _index: Index) -> bool:
    return True


def _is_missed_by_nobody(_: Index) -> set[Key]:
    return set()


@dataclass(frozen=True)
class Carried:
    """Whose workflow does the work of a kind's objects.

    Args:
        by: the key of that workflow.
        from_birth: whether those that Perdure makes are made by another object's workflow, which also opens theirs:
            such a new object is no news.
        relieved: after how many seconds an object's own workflow is woken when another's does its work from now on; and
            opened, if nobody has, when it is to do the work itself, from the beginning or from now on.
    """

    by: Carrier = _carries_itself
    from_birth: bool = False
    relieved: float = 0.0


@dataclass(frozen=True)
class Watched:
    """One kind (or a part of it) that is watched.

    Args:
        followed: what is listed and watched; a kind that is declared may leave its `plural` to be found out. It is
            called by the kind's name unless it says otherwise: two entries of one kind need two names.
        read: an object as its projection needs it.
        relations: among them those of the kind, from which follows whom its changes wake.
        dependents: the keys of others that a change concerns beyond that.
        lives: which of its objects have one, for kinds of which most are nobody's business; one that has a lifecycle no
            more is told so, as if it were gone, and none is started for it.
        patience: how long an object's own wake may wait after a change, as another workflow is doing its work.
        ending: whether a change is a step of an end that a workflow is carrying out already; whom it would wake knows
            of it then, and is woken some seconds later, but for those who live on.
        carried: whose workflow does the work of its objects.
        gathers: for how many seconds dependents are gathered, for kinds of which one change concerns thousands.
        missed_by: the keys of those who name objects of this kind that do not exist, asked after the first list: what
            was deleted while nobody watched has left no event.
        silent_at: when (seconds of the epoch) the last report of an object counts no more, for kinds whose status is a
            heartbeat: reports wake nobody; one that stays away or comes again wakes those whom the object tells.
        declares: further kinds to watch while this object exists, for areas whose objects name kinds by themselves.
        writer: the field manager under which those write whom its changes wake, and who know what they have written.
        lingers: how long a declared kind is watched on after the last object that declares it.
        wider: for a declared kind, the selection of the whole cluster that may be watched in place of many such.
    """

    followed: Followed
    read: Read
    relations: tuple[Relation, ...] = ()
    dependents: Dependents = _concerns_nobody
    lives: Lives = _lives_always
    patience: Patience = _no_patience
    ending: Ending = _ends_unseen
    carried: Carried = Carried()
    gathers: float = 0.0
    missed_by: Callable[[Index], set[Key]] = _is_missed_by_nobody
    silent_at: Callable[[Projection], float | None] = _is_never_silent
    declares: Callable[[Projection], tuple[Watched, ...]] = _declares_nothing
    writer: str = FIELD_MANAGER
    lingers: float = 0.0
    wider: Watched | None = None

    def __post_init__(self) -> None:
        called = self.followed.called or self.kind.name
        object.__setattr__(self, "followed", replace(self.followed, called=called))

    @property
    def kind(self) -> Kind:
        """The kind of its objects."""
        return self.followed.kind

    @property
    def name(self) -> str:
        """What metrics, logs and the index call it."""
        return self.followed.name

    def project(self, cluster: str, obj: JsonObject) -> Projection:
        """An object as the watcher remembers it."""
        shown = partial(shown_by, self.relations, self.kind.name, obj)
        return project(self.kind.name, cluster, obj, self.read, self.writer, shown)

    def relatives(self, before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
        """The keys of others that a change concerns."""
        return self.dependents(before, after, index) | woken(self.relations, self.kind.name, before, after, index)

    def missing(self, index: Index) -> set[Key]:
        """The keys of those who need an object of this kind that does not exist."""
        return self.missed_by(index) | missing_referents(self.relations, self.kind.name, index)

    def declared(self, known: Projection) -> tuple[Watched, ...]:
        """What further is watched while this object exists."""
        found = (_watched_while_named(*each) for each in dict.fromkeys(self._named(known)))
        return (*self.declares(known), *found)

    def _named(self, known: Projection) -> Iterator[tuple[Relation, str, str]]:
        """What is to be watched: of a relation a namespace and a name, empty for all."""
        for (relation, side), _ in places_of(self.relations, self.kind.name):
            if side is Side.REFERRER and relation.watched and (relation, side) in known.shown:
                for each in sorted(cast(tuple[tuple[str, str], ...], known.shown[relation, side].names)):
                    kept = {Scope.NAME: 2, Scope.NAMESPACE: 1, Scope.CLUSTER: 0}[relation.watched.scope]
                    namespace, name = (*each[:kept], "", "")[:2]
                    yield relation, namespace, name

    def told_of_silence(self, known: Projection, index: Index) -> set[Key]:
        """The keys of those whom an object's reports are for."""
        return referents(self.relations, known, index)

    @cached_property
    def area(self) -> str:
        """The area of the lifecycles that look at its objects; empty if they are of none."""
        known = all_kinds()
        ends = (kind_name(end) for each in self.relations for end in (*each.referrers, *each.referents))
        return self.kind.area or next((known[name].area for name in ends if name in known and known[name].area), "")

    @property
    def has_workflow(self) -> bool:
        """Whether its objects have lifecycles of their own."""
        return self.kind.lifecycle

    @property
    def declaring(self) -> bool:
        """Whether its objects name further kinds."""
        named = (place for place, _ in places_of(self.relations, self.kind.name) if place[0].watched)
        return self.declares is not _declares_nothing or any(side is Side.REFERRER for _, side in named)

    @property
    def reporting(self) -> bool:
        """Whether its objects report."""
        return self.silent_at is not _is_never_silent


@cache
def _watched_while_named(relation: Relation, namespace: str, name: str) -> Watched:
    """The watch of one object, of a namespace, or of the whole cluster, for as long as objects refer to them."""
    end, called = relation.referents[0], relation.watched
    if called is None or isinstance(end, Key):
        raise TypeError(f"{end} is not watched while it is named")
    if namespace:
        whole = _watched_while_named(relation, "", "")
        return replace(
            whole,
            followed=replace(
                whole.followed,
                called=f"{called.one} {namespace}/{name}" if name else f"{called.one} {namespace}",
                namespace=namespace,
                field_selector=f"metadata.name={name}" if name else whole.followed.field_selector,
            ),
            lingers=0.0 if name else LINGERS,
            wider=whole,
        )
    return Watched(
        followed=Followed(
            kind=end if isinstance(end, Kind) else end.kind_of,  # type: ignore[attr-defined]
            # Helm keeps its releases in Secrets, which are many and large.
            field_selector="type!=helm.sh/release.v1" if end == SECRET else "",
            metadata_only=isinstance(end, Kind),
            called=called.all,
        ),
        read=read_nothing,
        relations=(relation,),
        lingers=LINGERS if called.scope is Scope.CLUSTER else 0.0,
    )


def read_nothing(_: JsonObject) -> View:
    """An object of which only its relations hold something."""
    return View((), settled=True)


def watched_under(settings: Settings) -> tuple[Watched, ...]:
    """What the areas that are served watch, with what some watch only where the settings ask for it."""
    served = areas.modules_served(settings)
    always = [entry for module in served for entry in getattr(module, "WATCHED", ())]
    chosen = [module.watched_for(settings) for module in served if hasattr(module, "watched_for")]
    return (*always, *(entry for entries in chosen for entry in entries))


@cache
def watched_kinds() -> tuple[Watched, ...]:
    """What all areas watch."""
    return tuple(entry for module in areas.modules() for entry in getattr(module, "WATCHED", ()))
