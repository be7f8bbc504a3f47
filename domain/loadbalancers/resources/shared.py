"""Common parts of the area's kinds: selectors, counts, definitions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from domain.identity import Kind
from domain.resource import KubeModel, ObjectMeta, PrinterColumn
from domain.schema import Atomic, Marker, Required

Count = Annotated[int, Marker(minimum=0)]
Replicas = Annotated[int, Marker(minimum=0, default=1)]

AGE = PrinterColumn(name="AGE", type="date", json_path=".metadata.creationTimestamp")


class Expression(KubeModel):
    """A requirement of a selector. Stored but unused: as in yawol, only labels are compared."""

    key: Required[str] = Field("", description="The label.")
    operator: Required[str] = Field("", description="In, NotIn, Exists or DoesNotExist.")
    values: Atomic[tuple[str, ...]] = Field((), description="Values of the label.")


class Selector(KubeModel):
    """Labels by which sets and machines are found."""

    match_expressions: Atomic[tuple[Expression, ...]] = Field((), description="Stored, but without effect.")
    match_labels: dict[str, str] = Field({}, description="Labels that all sets and machines carry.")


def owner_path(meta: ObjectMeta, kind: Kind) -> str:
    """The owner as `Kind/namespace/name`; empty if there is none."""
    names = (each.name for each in meta.owner_references if each.kind == kind.name)
    return next((f"{kind.name}/{meta.namespace}/{name}" for name in names), "")


def condition_column(name: str) -> PrinterColumn:
    return PrinterColumn(name=name, type="string", json_path=f'.status.conditions[?(@.type=="{name}")].status')
