"""The watched kinds of all areas, as a table. `areas.py` says how an area joins.

If the workflow of object A does the work of object B, then A is B's *delegate* and gets B's wakes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import cast

from domain.built_in_kinds import SECRET
from domain.identity import Key, Kind, all_kinds
from domain.relations import ANY_KIND, Relation, Scope, WhileNamed, kind_name
from engine.kube.api import FIELD_MANAGER
from engine.kube.json import JsonObject
from engine.kube.reflector import Followed
from engine.settings import Settings
from starters.watch import areas
from starters.watch.projection import Place, Projection, Read, Side, View, project
from starters.watch.projection_index import Index
from starters.watch.relations import ending_with_referrer, missing_referents, places_of, shown_by, woken

# Seconds that a watch continues after the last reference. References come and go, and listing a namespace again would
# cost more.
LINGERS = 300.0

# Seconds that an object's own wake may wait after a change, given the object before and after it.
Patience = Callable[[Projection | None, Projection], float]
# Whether an object has a lifecycle.
Lives = Callable[[Projection, Index], bool]
# Whether a change, given the object before and after it, is a step of a deletion in progress.
Ending = Callable[[Projection | None, Projection | None, Index], bool]
# The key of the object whose workflow does an object's work.
Carrier = Callable[[Projection, Index], Key]


def _ends_unseen(before: Projection | None, after: Projection | None, _: Index) -> bool:
    return False


@dataclass(frozen=True)
class Carried:
    """Which workflow does the work of a kind's objects.

    Args:
        by: returns the key of the object's delegate: the object, possibly itself, whose workflow does the work.
        from_birth: whether an object's creator does the object's work or opens the object's workflow, so that the
            creation need not wake this workflow.
        relieved: seconds from a change of delegate until the object's own workflow is woken or opened; 0 for never.
    """

    by: Carrier = lambda known, index: known.key
    from_birth: bool = False
    relieved: float = 0.0


@dataclass(frozen=True)
class Pacing:
    """How long the wakes after a change are delayed.

    Args:
        patience: how long an object's own wake is delayed because another workflow does the object's work.
        gathers: seconds for which wakes of other lifecycles are collected, if one change concerns thousands.
    """

    patience: Patience = lambda before, after: 0.0
    gathers: float = 0.0


@dataclass(frozen=True)
class Watched:
    """A watched kind, or a watched part of a kind.

    Args:
        followed: what is listed and watched. Two entries of one kind need different `followed.called`.
        relations: the relations that contain this kind. They determine which lifecycles a change wakes, which other
            objects are watched while this kind's objects refer to them, and which lifecycles are woken after the kind's
            first list because they need a missing object.
        lives: whether an object has a lifecycle. An object that no longer has a lifecycle is treated as gone.
        ending: whether a change is a step of a deletion in progress. Such a change does not wake the object's workflow
            at once, but several seconds later.
        silent_at: if the status is a heartbeat, the expiry of the last report, in seconds since 1970
            (`missed_heartbeats.py`).
    """

    followed: Followed
    read: Read
    relations: tuple[Relation, ...] = ()
    lives: Lives = lambda known, index: True
    ending: Ending = _ends_unseen
    carried: Carried = Carried()
    silent_at: Callable[[Projection], float | None] | None = None
    pacing: Pacing = Pacing()

    def __post_init__(self) -> None:
        called = self.followed.called or self.kind.name
        object.__setattr__(self, "followed", replace(self.followed, called=called))

    @property
    def kind(self) -> Kind:
        return self.followed.kind

    @property
    def name(self) -> str:
        return self.followed.name

    @property
    def end(self) -> str:
        return self.kind.name

    @property
    def writer(self) -> str:
        """The field manager of the lifecycles. A lifecycle's own writes do not wake it."""
        return FIELD_MANAGER

    def project(self, cluster: str, obj: JsonObject) -> Projection:
        shown = partial(shown_by, self.relations, self.end, obj)
        return project(self.kind.name, cluster, obj, self.read, self.writer, shown)

    def relatives(self, before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
        return woken(self.relations, self.end, before, after, index)

    def missing(self, index: Index) -> set[Key]:
        return missing_referents(self.relations, self.end, index)

    def declared(self, known: Projection) -> tuple[WatchedWhileNamed, ...]:
        return tuple(_watched_while_named(self.relations, *each) for each in dict.fromkeys(self._named(known)))

    def _named(self, known: Projection) -> Iterator[tuple[Relation, tuple[str, ...]]]:
        length = {Scope.KIND: 2, Scope.NAME: 2, Scope.NAMESPACE: 1, Scope.CLUSTER: 0}
        for (relation, side), _ in places_of(self.relations, self.end):
            if side is Side.REFERRER and relation.watched and (relation, side) in known.shown:
                for name in sorted(cast(tuple[tuple[str, ...], ...], known.shown[relation, side].names)):
                    yield relation, name[: length[relation.watched.scope]]

    @cached_property
    def area(self) -> str:
        """The area of the lifecycles that read this kind's objects; empty if there is none."""
        known = all_kinds()
        ends = (kind_name(end) for each in self.relations for end in (*each.referrers, *each.referents))
        return self.kind.area or next((known[name].area for name in ends if name in known and known[name].area), "")

    @property
    def declaring(self) -> bool:
        places = (place for place, _ in places_of(self.relations, self.end))
        return any(relation.watched and side is Side.REFERRER for relation, side in places)


@dataclass(frozen=True, kw_only=True)
class WatchedWhileNamed(Watched):
    """Objects that are watched while other objects refer to them.

    Args:
        named: selects the watched objects by their (apiVersion, kind), their (namespace,) or one object's
            (namespace, name); empty for the whole cluster.
        lingers: seconds that these objects stay watched after the last reference.
        wider: the cluster-wide watch that may replace many such watches; None if there is none.
    """

    relation: Relation
    named: tuple[str, ...] = ()
    lingers: float = 0.0
    wider: WatchedWhileNamed | None = None

    @property
    def end(self) -> str:
        return kind_name(self.relation.referents[0])

    @property
    def writer(self) -> str:
        return (self.relation.watched and self.relation.watched.field_manager) or FIELD_MANAGER

    def project(self, cluster: str, obj: JsonObject) -> Projection:
        """Project the object after adding its kind, because objects in lists may lack their kind."""
        return super().project(cluster, {"apiVersion": self.kind.api_version, "kind": self.kind.name, **obj})

    def missing(self, index: Index) -> set[Key]:
        return missing_referents(self.relations, self.end, index, self._is_missing)

    @property
    def whole(self) -> bool:
        how = self.relation.watched
        return how is not None and how.scope is Scope.CLUSTER

    def _is_missing(self, _: Place, name: Hashable, index: Index) -> bool:
        path = cast(tuple[str, ...], name)
        selected = path[: len(self.named)] == self.named and bool(path[-1])
        return selected and index.get(self.name, *path[-2:]) is None


@cache
def _watched_while_named(
    relations: tuple[Relation, ...], relation: Relation, named: tuple[str, ...]
) -> WatchedWhileNamed:
    end, how = relation.referents[0], relation.watched
    if how is None or isinstance(end, Key):
        raise TypeError(f"no reference starts a watch of {end}: the relation has no `watched`, or {end} is a Key")
    if how.scope is Scope.KIND:
        open_ended = tuple(each for each in relations if ANY_KIND in map(kind_name, (each.referrers + each.referents)))
        return WatchedWhileNamed(
            followed=_all_of(how, *named),
            read=read_nothing,
            relations=open_ended,
            ending=partial(ending_with_referrer, open_ended, ANY_KIND) if how.field_manager else _ends_unseen,
            relation=relation,
            named=named,
            lingers=LINGERS,
        )
    if named and named[0]:
        whole = _watched_while_named(relations, relation, ())
        selector = f"metadata.name={named[1]}" if named[1:] else whole.followed.field_selector
        followed = replace(
            whole.followed, called=f"{how.one} {'/'.join(named)}", namespace=named[0], field_selector=selector
        )
        return replace(whole, followed=followed, named=named, lingers=0.0 if named[1:] else LINGERS, wider=whole)
    return WatchedWhileNamed(
        followed=Followed(
            kind=end if isinstance(end, Kind) else end.kind_of,  # type: ignore[attr-defined]
            # Excludes Helm's releases, which are many and large.
            field_selector="type!=helm.sh/release.v1" if end == SECRET else "",
            metadata_only=isinstance(end, Kind),
            called=how.all,
        ),
        read=read_nothing,
        relations=(relation,),
        relation=relation,
        lingers=LINGERS if how.scope is Scope.CLUSTER else 0.0,
    )


def _all_of(how: WhileNamed, api_version: str, name: str) -> Followed:
    group, _, version = api_version.rpartition("/")
    # Discovery finds the plural.
    kind = Kind(name=name, group=group, version=version, plural="", area="", lifecycle=False)
    return Followed(kind, called=f"{name} of {api_version}, {how.all}")


def read_nothing(_: JsonObject) -> View:
    return View((), settled=True)


def watched_under(settings: Settings) -> tuple[Watched, ...]:
    served = areas.modules_served(settings)
    always = [entry for module in served for entry in getattr(module, "WATCHED", ())]
    chosen = [module.watched_for(settings) for module in served if hasattr(module, "watched_for")]
    return (*always, *(entry for entries in chosen for entry in entries))
