"""The watched kinds of all areas, as a table.

An area joins with a module of its name here (`accounts.py`, ...) that defines `WATCHED`. What an entry says is pure:
how an object is read into a projection, and whom a change concerns. Whatever must be asked of a server is not for the
watcher.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from domain.identity import Kind
from starters.watch.index import Dependents
from starters.watch.projection import Projection, Read

# For how many seconds an object's own wake may wait after a change, before and after it.
Patience = Callable[[Projection | None, Projection], float]


def _no_patience(before: Projection | None, after: Projection) -> float:
    return 0.0


def _declares_nothing(_: Projection) -> tuple[Watched, ...]:
    return ()


@dataclass(frozen=True)
class Watched:
    """One kind (or a part of it) that is watched.

    Args:
        kind: what is listed and watched.
        read: an object as its projection needs it.
        dependents: the keys of others that a change concerns.
        has_workflow: whether its objects have lifecycles of their own (ConfigMaps and Secrets do not).
        namespace: the only namespace looked at, empty for all.
        field_selector: which objects, in the API's notation.
        label_selector: which objects, in the API's notation.
        name: what metrics, logs and the index call it, by default the kind's name. Two entries of one kind need two.
        kept: how long (seconds) workers may go on with an older reading; its dependents are woken once more then.
        patience: how long an object's own wake may wait after a change, as another workflow is doing its work.
        declares: further kinds to watch while this object exists, for areas whose objects name kinds by themselves.
    """

    kind: Kind
    read: Read
    dependents: Dependents
    has_workflow: bool = True
    namespace: str = ""
    field_selector: str = ""
    label_selector: str = ""
    name: str = ""
    kept: float = 0.0
    patience: Patience = _no_patience
    declares: Callable[[Projection], tuple[Watched, ...]] = _declares_nothing

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or self.kind.name)

    @property
    def declaring(self) -> bool:
        """Whether its objects name further kinds."""
        return self.declares is not _declares_nothing

    @property
    def selection(self) -> tuple[str, ...]:
        """What is listed and watched, as values that compare."""
        kind = self.kind
        return (self.name, kind.api_version, kind.plural, self.namespace, self.field_selector, self.label_selector)


@cache
def watched_kinds() -> tuple[Watched, ...]:
    """What all areas watch."""
    import starters.watch

    found: list[Watched] = []
    for module in pkgutil.iter_modules(starters.watch.__path__):
        area = importlib.import_module(f"starters.watch.{module.name}")
        found += getattr(area, "WATCHED", ())
    return tuple(found)
