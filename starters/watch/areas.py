"""How areas join the watcher: the names below are collected from this package and from areas of other packages.

| name | is | collected by |
|---|---|---|
| `WATCHED`, `watched_for` | kinds to watch; kinds whose watch depends on the settings | `kinds.py` |
| `opened_for` | lifecycles without an object, woken when a watcher starts | `opening.py` |
| `GAUGES` | metrics | `gauges.py` |
| `duties_for` | background tasks of the leading watcher | `duties.py` |

A module of this package that defines any of these except `GAUGES` names its area in `AREA` (empty for none). If the
settings restrict the areas, modules of other areas are skipped. Gauges need no `AREA`: they cover what is watched.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from domain.areas import area_of, installed
from engine.settings import Settings


def modules() -> list[ModuleType]:
    """Every module of the package in alphabetical order, then those of areas from other packages."""
    import starters.watch

    ours = (each.name for each in pkgutil.iter_modules(starters.watch.__path__, "starters.watch."))
    others = (f"{area.package}.watch" for area in installed().values() if not area.own)
    return [importlib.import_module(name) for name in (*ours, *others)]


def modules_served(settings: Settings) -> list[ModuleType]:
    """The modules of the areas that the settings name.

    Raises:
        ValueError: the settings name an unknown area.
    """
    found = modules()
    known = sorted({area for area in map(_area, found) if area})
    if unknown := set(settings.areas) - set(known):
        raise ValueError(f"PERDURE_AREAS names {', '.join(sorted(unknown))}; there are: {', '.join(known)}")
    return [module for module in found if not settings.areas or _area(module) in ("", *settings.areas)]


def _area(module: ModuleType) -> str:
    return str(getattr(module, "AREA", area_of(module.__name__)))
