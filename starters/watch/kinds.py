"""The watched kinds of all areas, as a table.

An area joins with a module here that defines `WATCHED`, or `watched_for` if it depends on the settings. An entry is
pure: how an object is read into a projection, and which keys a change concerns. If another object's workflow does an
object's work, that object is its *carrier* and gets its wakes. A carrier may have a carrier itself.
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

# Seconds. Objects come and go; listing a namespace repeatedly would cost more than watching on.
LINGERS = 300.0

# Seconds that an object's own wake may wait after a change, given the object before and after it.
Patience = Callable[[Projection | None, Projection], float]
# Whether an object has a lifecycle.
Lives = Callable[[Projection, Index], bool]
# Whether a change, given the object before and after it, is a step of an end in progress.
Ending = Callable[[Projection | None, Projection | None, Index], bool]
# The key of the object whose workflow does an object's work.
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
    """Which workflow does the work of a kind's objects.

    Args:
        by: the key of that workflow's object.
        from_birth: whether the workflow that makes an object also opens the object's own, so that a new one wakes
            nothing.
        relieved: seconds until an object's own workflow is woken after another takes over its work, or opened when it
            has the work itself.
    """

    by: Carrier = _carries_itself
    from_birth: bool = False
    relieved: float = 0.0


@dataclass(frozen=True)
class Watched:
    """One kind (or a part of it) that is watched.

    Args:
        followed: what is listed and watched; a declared kind may leave `plural` empty for discovery. Two entries of one
            kind need different `called` names.
        read: reads an object into the fields of its projection.
        relations: all relations; those of the kind determine which lifecycles its changes wake.
        dependents: the keys of further lifecycles that a change concerns.
        lives: which objects have a lifecycle, if most have none; an object that stops having one wakes an open
            lifecycle as if it were gone.
        patience: how long an object's own wake may wait, because another workflow does its work.
        ending: whether a change is a step of an end in progress, whose workflow is then woken only seconds later;
            lifecycles of objects that live on are woken at once.
        carried: which workflow does the work of its objects.
        gathers: seconds for which wakes of dependents are gathered, if one change concerns thousands.
        missed_by: keys of objects that name missing objects of this kind, since deletions without a watcher leave no
            event.
        silent_at: when (seconds of the epoch) an object's last report expires, if its status is a heartbeat: only a
            missed report, and the next one after it, wake lifecycles.
        declares: further kinds to watch while this object exists.
        writer: the field manager of the lifecycles that its changes wake; their own writes wake nothing.
        lingers: seconds that a declared kind stays watched after its last declaring object.
        wider: for a declared kind, the cluster-wide selection that may replace many partial watches.
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
        return self.followed.kind

    @property
    def name(self) -> str:
        """Used in metrics, logs and the index."""
        return self.followed.name

    def project(self, cluster: str, obj: JsonObject) -> Projection:
        shown = partial(shown_by, self.relations, self.kind.name, obj)
        return project(self.kind.name, cluster, obj, self.read, self.writer, shown)

    def relatives(self, before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
        """Other lifecycles that a change concerns."""
        return self.dependents(before, after, index) | woken(self.relations, self.kind.name, before, after, index)

    def missing(self, index: Index) -> set[Key]:
        """Lifecycles that need a missing object of this kind."""
        return self.missed_by(index) | missing_referents(self.relations, self.kind.name, index)

    def declared(self, known: Projection) -> tuple[Watched, ...]:
        """The further kinds to watch while this object exists."""
        found = (_watched_while_named(*each) for each in dict.fromkeys(self._named(known)))
        return (*self.declares(known), *found)

    def _named(self, known: Projection) -> Iterator[tuple[Relation, str, str]]:
        """Returns relation, namespace and name; empty means all."""
        for (relation, side), _ in places_of(self.relations, self.kind.name):
            if side is Side.REFERRER and relation.watched and (relation, side) in known.shown:
                for each in sorted(cast(tuple[tuple[str, str], ...], known.shown[relation, side].names)):
                    kept = {Scope.NAME: 2, Scope.NAMESPACE: 1, Scope.CLUSTER: 0}[relation.watched.scope]
                    namespace, name = (*each[:kept], "", "")[:2]
                    yield relation, namespace, name

    def told_of_silence(self, known: Projection, index: Index) -> set[Key]:
        """The lifecycles that an object's reports are for."""
        return referents(self.relations, known, index)

    @cached_property
    def area(self) -> str:
        """The area of the lifecycles that read its objects; empty if none."""
        known = all_kinds()
        ends = (kind_name(end) for each in self.relations for end in (*each.referrers, *each.referents))
        return self.kind.area or next((known[name].area for name in ends if name in known and known[name].area), "")

    @property
    def has_workflow(self) -> bool:
        return self.kind.lifecycle

    @property
    def declaring(self) -> bool:
        named = (place for place, _ in places_of(self.relations, self.kind.name) if place[0].watched)
        return self.declares is not _declares_nothing or any(side is Side.REFERRER for _, side in named)

    @property
    def reporting(self) -> bool:
        return self.silent_at is not _is_never_silent


@cache
def _watched_while_named(relation: Relation, namespace: str, name: str) -> Watched:
    """Watches an object, a namespace, or the cluster, as long as objects refer to it."""
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
            # Excludes Helm's releases, which are many and large.
            field_selector="type!=helm.sh/release.v1" if end == SECRET else "",
            metadata_only=isinstance(end, Kind),
            called=called.all,
        ),
        read=read_nothing,
        relations=(relation,),
        lingers=LINGERS if called.scope is Scope.CLUSTER else 0.0,
    )


def read_nothing(_: JsonObject) -> View:
    """Reads objects of which only the relations matter."""
    return View((), settled=True)


def watched_under(settings: Settings) -> tuple[Watched, ...]:
    """Covers all served areas, including kinds that depend on the settings."""
    served = areas.modules_served(settings)
    always = [entry for module in served for entry in getattr(module, "WATCHED", ())]
    chosen = [module.watched_for(settings) for module in served if hasattr(module, "watched_for")]
    return (*always, *(entry for entries in chosen for entry in entries))


@cache
def watched_kinds() -> tuple[Watched, ...]:
    return tuple(entry for module in areas.modules() for entry in getattr(module, "WATCHED", ()))
