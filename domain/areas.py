"""The installed areas, found by the entry points of the group `perdure.areas`.

An entry point names an area and the package with its kinds (`KINDS`) and custom resources (`.resources`). Perdure's own
areas have a package or module in each layer (`domain.<area>`, `workflows.<area>`, `activities.<area>.area`,
`starters.watch.<area>`); an external package holds all its layers itself (`.workflows`, `.activities`, `.watch`).

Modules are only named here, not imported, so that each process imports only what it runs.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import NamedTuple

GROUP = "perdure.areas"


class Area(NamedTuple):
    name: str
    package: str

    @property
    def own(self) -> bool:
        return self.package == f"domain.{self.name}"

    @property
    def resources(self) -> str:
        return f"{self.package}.resources"

    @property
    def workflows(self) -> str:
        return f"workflows.{self.name}" if self.own else f"{self.package}.workflows"

    @property
    def activities(self) -> str:
        return f"activities.{self.name}.area" if self.own else f"{self.package}.activities"


@cache
def installed() -> dict[str, Area]:
    found = sorted(entry_points(group=GROUP), key=lambda each: each.name)
    return {each.name: Area(each.name, each.value) for each in found}


def area_of(module: str) -> str:
    return next((area.name for area in installed().values() if f"{module}.".startswith(f"{area.package}.")), "")
