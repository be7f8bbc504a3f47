"""How areas join the watcher. A module of this package, or the module `watch` of another package's area, may define:

- `WATCHED`, or `watched_for` if the watched kinds depend on settings: watched kinds (`watched_kinds.py`);
- `opened_for`: lifecycles without an object, woken at each start (`objectless_lifecycles.py`);
- `GAUGES`: metrics (`gauges.py`);
- `duties_for`: background tasks of the leading watcher (`background_tasks.py`).

A module that defines any of these except `GAUGES` names its area in `AREA` (empty if it has no area). The module is
skipped if the settings exclude its area.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from domain.areas import area_of, installed
from engine.settings import Settings


def modules() -> list[ModuleType]:
    import starters.watch

    ours = (each.name for each in pkgutil.iter_modules(starters.watch.__path__, "starters.watch."))
    others = (f"{area.package}.watch" for area in installed().values() if not area.own)
    return [importlib.import_module(name) for name in (*ours, *others)]


def modules_served(settings: Settings) -> list[ModuleType]:
    return [module for module in modules() if not settings.areas or _area(module) in ("", *settings.areas)]


def _area(module: ModuleType) -> str:
    return str(getattr(module, "AREA", area_of(module.__name__)))
