"""Everything the watcher knows, by kind and name: where a change of one object finds the relatives to wake.

Built from the first list of each kind and kept by its events; nothing in it outlives the process. Relatives that an
object does not name are found by what they say of themselves (`find`): with thousands of objects no change may cost a
look at all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import partial

from domain.identity import Key
from engine.kube.indexer import Indexer
from starters.watch.projection import Place, Projection

# What somebody who refers to an object needs to know: before and after the change, None for not existing.
Dependents = Callable[[Projection | None, Projection | None, "Index"], set[Key]]


class Index:
    """The projections of all watched objects."""

    def __init__(self) -> None:
        self._kinds: dict[str, Indexer[Projection]] = {}

    def of(self, kind: str) -> Indexer[Projection]:
        """The objects of a kind by namespace and name; the reflector of the kind writes it."""
        return self._kinds.setdefault(kind, Indexer())

    def get(self, kind: str, namespace: str, name: str) -> Projection | None:
        """One object."""
        return self.of(kind).get((namespace, name))

    def find(self, kind: str, fact: str, value: str) -> list[Projection]:
        """The objects of a kind of which a fact holds with this value, or with it among others, one a line."""
        objects = self.of(kind)
        if not objects.has_index(fact):
            objects.add_index(fact, partial(_values, fact))
        return objects.find(fact, value)

    def at(self, kind: str, place: Place, name: Hashable) -> list[Projection]:
        """The objects of a kind that show this name in a relation."""
        return self._indexed(kind, place).find(place, name)

    def names_at(self, kind: str, place: Place) -> Iterable[Hashable]:
        """The names that objects of a kind show in a relation."""
        return tuple(self._indexed(kind, place).values_of(place))

    def _indexed(self, kind: str, place: Place) -> Indexer[Projection]:
        objects = self.of(kind)
        if not objects.has_index(place):
            objects.add_index(place, lambda known: known.shown[place].names if place in known.shown else ())
        return objects

    def keys(self, kind: str, namespace: str, names: Iterable[str]) -> Iterator[Key]:
        """The keys of those of the named objects that exist."""
        for name in names:
            if found := self.get(kind, namespace, name):
                yield found.key

    def all(self, kind: str) -> Iterator[Projection]:
        """All objects of a kind."""
        return iter(tuple(self.of(kind).values()))


def _values(fact: str, known: Projection) -> list[str]:
    return known.fact(fact).splitlines()
