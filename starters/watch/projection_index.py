"""All projections in memory, by kind and name; reflectors write them from lists and watch events."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from engine.kube.indexer import Indexer
from starters.watch.projection import Place, Projection


class Index:
    def __init__(self) -> None:
        self._kinds: dict[str, Indexer[Projection]] = {}

    def of(self, kind: str) -> Indexer[Projection]:
        return self._kinds.setdefault(kind, Indexer())

    def get(self, kind: str, namespace: str, name: str) -> Projection | None:
        return self.of(kind).get((namespace, name))

    def at(self, kind: str, place: Place, name: Hashable) -> list[Projection]:
        return self._indexed(kind, place).find(place, name)

    def names_at(self, kind: str, place: Place) -> Iterable[Hashable]:
        return tuple(self._indexed(kind, place).values_of(place))

    def _indexed(self, kind: str, place: Place) -> Indexer[Projection]:
        objects = self.of(kind)
        if not objects.has_index(place):
            objects.add_index(place, lambda known: known.shown[place].names if place in known.shown else ())
        return objects

    def all(self, kind: str) -> Iterator[Projection]:
        return iter(tuple(self.of(kind).values()))
