"""The resources of the Account Management and Master APIs, one module per family, each with its `ROUTES`."""

from __future__ import annotations

import importlib
import pkgutil

from localcloud.threescale.call import Route


def routes() -> tuple[Route, ...]:
    """All routes. Routes with fewer variables come first, so that fixed paths match before variables."""
    modules = [importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    found: list[Route] = [route for module in modules if hasattr(module, "ROUTES") for route in module.ROUTES.all]
    return tuple(sorted(found, key=lambda route: route.path.count("{")))
