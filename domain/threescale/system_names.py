"""System names, which are unique in a tenant and cannot be changed in 3scale.

The younger of two objects with the same system name is Invalid, and so is a Product or Backend whose system name was
changed. The document of a renamed ActiveDoc is created again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from domain.resource import ObjectMeta
from domain.threescale.duplicate_owners import elder
from domain.threescale.faults import Fault
from domain.threescale.observed import Blocker, ObservedOwner, invalid
from domain.threescale.resources import ActiveDoc, Backend, Product

_FORBIDDEN = re.compile(r"[^a-zA-Z0-9]")


def system_name_from(name: str) -> str:
    """The default: the ASCII letters and digits of the name."""
    return _FORBIDDEN.sub("", name)


def taken_name(resource: Product | Backend | ActiveDoc, siblings: Iterable[ObjectMeta]) -> Blocker | None:
    name, older = resource.spec.system_name, elder(resource.metadata, siblings)
    if older is None:
        return None
    kind = resource.kind_of.name
    return invalid(f"{kind} {older.namespace}/{older.name} has the system name {name} already")


def changed_name(observed: ObservedOwner) -> Blocker | None:
    there, name = observed.found.entry, observed.resource.spec.system_name
    if there is None or there.system_name in ("", name):
        return None
    what = f"{observed.resource.kind_of.name.lower()} {there.id}"
    detail = f"SystemName is immutable: {what} is called {there.system_name} in 3scale."
    return invalid(str(Fault(path="spec.systemName", value=name, detail=detail)))
