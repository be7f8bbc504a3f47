"""Our mark in 3scale: the annotation `managed_by`, as the replaced operator sets it on products, backends, accounts and
tenants.
"""

from __future__ import annotations

from collections.abc import Mapping

from domain.schema import Json

MANAGED_BY = {"managed_by": "operator"}


def is_marked(annotations: Mapping[str, Json]) -> bool:
    return MANAGED_BY.items() <= annotations.items()


def missing_mark(annotations: Mapping[str, Json]) -> dict[str, Json]:
    """The field `annotations` with our mark added; empty if already marked."""
    return {} if is_marked(annotations) else {"annotations": {**annotations, **MANAGED_BY}}
