"""How areas join the watcher: whatever a module of this package defines under a known name is found.

| name | is | asked for by |
|---|---|---|
| `WATCHED`, `watched_for` | kinds to watch; those that the settings decide on | `kinds.py` |
| `opened_for` | lifecycles without an object, to be woken when a watcher begins | `opening.py` |
| `GAUGES` | numbers to tell | `gauges.py` |
| `DUTIES` | what else to do while leading | `duties.py` |
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType


def modules() -> list[ModuleType]:
    """Every module of the package, in the order of their names."""
    import starters.watch

    names = (each.name for each in pkgutil.iter_modules(starters.watch.__path__))
    return [importlib.import_module(f"starters.watch.{name}") for name in names]
