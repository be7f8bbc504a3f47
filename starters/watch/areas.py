"""How areas join the watcher: what a module of this package, or of an area from elsewhere, defines is found.

| name | is | asked for by |
|---|---|---|
| `WATCHED`, `watched_for` | kinds to watch; those that the settings decide on | `kinds.py` |
| `opened_for` | lifecycles without an object, to be woken when a watcher begins | `opening.py` |
| `GAUGES` | numbers to tell | `gauges.py` |
| `duties_for` | what else to do while leading | `duties.py` |

A module of this package with any but the third names its area, `AREA` (empty for none): where the settings say which
areas are served, those of others are left out. Numbers are told of what is watched, so they need no such word.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from domain.areas import area_of, installed
from engine.settings import Settings


def modules() -> list[ModuleType]:
    """Every module of the package, in the order of their names, then those of areas from elsewhere."""
    import starters.watch

    ours = (each.name for each in pkgutil.iter_modules(starters.watch.__path__, "starters.watch."))
    others = (f"{area.package}.watch" for area in installed().values() if not area.own)
    return [importlib.import_module(name) for name in (*ours, *others)]


def modules_served(settings: Settings) -> list[ModuleType]:
    """Those of the areas that the settings ask for.

    Raises:
        ValueError: they ask for an area that there is none of.
    """
    found = modules()
    known = sorted({area for area in map(_area, found) if area})
    if unknown := set(settings.areas) - set(known):
        raise ValueError(f"PERDURE_AREAS names {', '.join(sorted(unknown))}; there are: {', '.join(known)}")
    return [module for module in found if not settings.areas or _area(module) in ("", *settings.areas)]


def _area(module: ModuleType) -> str:
    return str(getattr(module, "AREA", area_of(module.__name__)))
