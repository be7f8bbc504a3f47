"""Everything the watcher knows, by kind and name: where a change of one object finds the relatives to wake.

Built from the first list of each kind and kept by its events; nothing in it outlives the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from domain.identity import Key
from engine.kube.reflector import Name
from starters.watch.projection import Projection

# What somebody who refers to an object needs to know: before and after the change, None for not existing.
Dependents = Callable[[Projection | None, Projection | None, "Index"], set[Key]]


class Index:
    """The projections of all watched objects."""

    def __init__(self) -> None:
        self._kinds: dict[str, dict[Name, Projection]] = {}

    def of(self, kind: str) -> dict[Name, Projection]:
        """The objects of a kind by namespace and name; the reflector of the kind writes it."""
        return self._kinds.setdefault(kind, {})

    def get(self, kind: str, namespace: str, name: str) -> Projection | None:
        """One object."""
        return self.of(kind).get((namespace, name))

    def keys(self, kind: str, namespace: str, names: Iterable[str]) -> Iterator[Key]:
        """The keys of those of the named objects that exist."""
        for name in names:
            if found := self.get(kind, namespace, name):
                yield found.key

    def all(self, kind: str) -> Iterator[Projection]:
        """All objects of a kind."""
        return iter(tuple(self.of(kind).values()))
