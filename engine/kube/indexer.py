"""The objects of one kind, by namespace and name and by declared indexes, like client-go's Indexer.

    indexer = Indexer({"owner": owners_of})        # an index is a function from an object to the values it is found by
    indexer["default", "web"] = deployment         # the reflector of the kind writes objects
    indexer.find("owner", "uid-1")                 # the objects, without a search

Each write updates the indexes, so neither a change nor a look-up scans all objects.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, MutableMapping
from typing import Generic, TypeVar

from engine.kube.reflector import Name

T = TypeVar("T")

# Maps an object to the values under which `find` lists it.
IndexFunction = Callable[[T], Iterable[Hashable]]


class Indexer(MutableMapping[Name, T], Generic[T]):
    def __init__(self, indexes: Mapping[Hashable, IndexFunction[T]] | None = None) -> None:
        self._objects: dict[Name, T] = {}
        self._functions: dict[Hashable, IndexFunction[T]] = {}
        self._names: dict[Hashable, dict[Hashable, dict[Name, None]]] = {}
        for name, function in (indexes or {}).items():
            self.add_index(name, function)

    def add_index(self, name: Hashable, function: IndexFunction[T]) -> None:
        self._functions[name], self._names[name] = function, {}
        for key, each in self._objects.items():
            self._enter(name, key, each)

    def has_index(self, name: Hashable) -> bool:
        return name in self._functions

    def find(self, index: Hashable, value: Hashable) -> list[T]:
        return [self._objects[name] for name in self._names[index].get(value, ())]

    def count(self, index: Hashable, value: Hashable) -> int:
        return len(self._names[index].get(value, ()))

    def values_of(self, index: Hashable) -> Iterable[Hashable]:
        return self._names[index].keys()

    def __getitem__(self, name: Name) -> T:
        return self._objects[name]

    def __setitem__(self, name: Name, value: T) -> None:
        if (before := self._objects.get(name)) is not None:
            self._leave(name, before)
        self._objects[name] = value
        for index in self._functions:
            self._enter(index, name, value)

    def __delitem__(self, name: Name) -> None:
        self._leave(name, self._objects.pop(name))

    def __iter__(self) -> Iterator[Name]:
        return iter(self._objects)

    def __len__(self) -> int:
        return len(self._objects)

    def _enter(self, index: Hashable, name: Name, value: T) -> None:
        for each in self._functions[index](value):
            self._names[index].setdefault(each, {})[name] = None

    def _leave(self, name: Name, value: T) -> None:
        for index, function in self._functions.items():
            entries = self._names[index]
            for each in function(value):
                names = entries.get(each, {})
                names.pop(name, None)
                if not names:
                    entries.pop(each, None)
