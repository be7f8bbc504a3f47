"""Everything the watcher knows, by kind and name: where a change of one object finds the relatives to wake.

Built from the first list of each kind and kept by its events; nothing in it outlives the process. Relatives that an
object does not name are found by what they say of themselves (`find`): with thousands of objects no change may cost a
look at all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping

from domain.identity import Key
from engine.kube.reflector import Name
from starters.watch.projection import Projection

# What somebody who refers to an object needs to know: before and after the change, None for not existing.
Dependents = Callable[[Projection | None, Projection | None, "Index"], set[Key]]


class Objects(MutableMapping[Name, Projection]):
    """The objects of one kind, by namespace and name and by their facts.

    A fact may hold several values, one a line. Which objects have a value is kept from the first question on.
    """

    def __init__(self) -> None:
        self._objects: dict[Name, Projection] = {}
        self._having: dict[str, dict[str, dict[Name, None]]] = {}

    def find(self, fact: str, value: str) -> list[Projection]:
        """The objects of which a fact holds with this value, or with it among others."""
        if fact not in self._having:
            self._having[fact] = {}
            for known in self._objects.values():
                self._note(fact, known)
        return [self._objects[name] for name in self._having[fact].get(value, ())]

    def __getitem__(self, name: Name) -> Projection:
        return self._objects[name]

    def __setitem__(self, name: Name, known: Projection) -> None:
        before = self._objects.get(name)
        self._objects[name] = known
        for fact in self._having:
            if before is None:
                self._note(fact, known)
            elif before.fact(fact) != known.fact(fact):
                self._forget(fact, before)
                self._note(fact, known)

    def __delitem__(self, name: Name) -> None:
        before = self._objects.pop(name)
        for fact in self._having:
            self._forget(fact, before)

    def __iter__(self) -> Iterator[Name]:
        return iter(self._objects)

    def __len__(self) -> int:
        return len(self._objects)

    def _note(self, fact: str, known: Projection) -> None:
        for value in known.fact(fact).splitlines():
            self._having[fact].setdefault(value, {})[known.name] = None

    def _forget(self, fact: str, known: Projection) -> None:
        for value in known.fact(fact).splitlines():
            names = self._having[fact].get(value, {})
            names.pop(known.name, None)
            if not names:
                self._having[fact].pop(value, None)


class Index:
    """The projections of all watched objects."""

    def __init__(self) -> None:
        self._kinds: dict[str, Objects] = {}

    def of(self, kind: str) -> Objects:
        """The objects of a kind by namespace and name; the reflector of the kind writes it."""
        return self._kinds.setdefault(kind, Objects())

    def get(self, kind: str, namespace: str, name: str) -> Projection | None:
        """One object."""
        return self.of(kind).get((namespace, name))

    def find(self, kind: str, fact: str, value: str) -> list[Projection]:
        """The objects of a kind of which a fact holds with this value, or with it among others."""
        return self.of(kind).find(fact, value)

    def keys(self, kind: str, namespace: str, names: Iterable[str]) -> Iterator[Key]:
        """The keys of those of the named objects that exist."""
        for name in names:
            if found := self.get(kind, namespace, name):
                yield found.key

    def all(self, kind: str) -> Iterator[Projection]:
        """All objects of a kind."""
        return iter(tuple(self.of(kind).values()))
