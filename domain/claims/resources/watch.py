"""ResourceWatch: shows which kinds of managed resources are watched, one object per kind and namespace.

Perdure writes it for people; no pass reads it. Poolboy 1.14 and later start a watch process for each object.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from domain.claims import RESOURCE_WATCH
from domain.claims.resources.shared import DEFINITION, Open, TakenOverStatus
from domain.identity import Kind
from domain.resource import CustomResource, Definition, PrinterColumn
from domain.schema import Marker, Preserved, Required


class ResourceWatchSpec(Open):
    """The kind that is watched."""

    api_version: Required[str] = Field("", description="The apiVersion of the watched kind.")
    kind: Required[str] = Field("", description="The watched kind.")
    namespace: str = Field("", description="The watched namespace, absent if the whole cluster is watched.")
    refresh_interval: Annotated[str, Marker(pattern=r"^\d+[ms]$")] = Field("", description="Accepted, without effect.")


class WatchPod(Open):
    """The replaced operator's process for this watch."""

    name: str = Field("", description="The pod's name.")


class ResourceWatchStatus(TakenOverStatus):
    """The status that the replaced operator has left."""

    pod: WatchPod | None = Field(None, description="Left by the replaced operator: its process for this watch.")


class ResourceWatch(CustomResource):
    """A watched kind of managed resources. Perdure writes this object for people to read."""

    kind_of: ClassVar[Kind] = RESOURCE_WATCH
    definition: ClassVar[Definition] = DEFINITION.model_copy(
        update={
            "name_pattern": "",
            "name_length": 0,
            "status_subresource": False,
            "selectable_fields": (".spec.apiVersion", ".spec.kind", ".spec.namespace"),
        }
    )
    printer_columns: ClassVar[tuple[PrinterColumn, ...]] = (
        PrinterColumn(name="Watch Namespace", type="string", json_path=".spec.namespace"),
        PrinterColumn(name="Api Version", type="string", json_path=".spec.apiVersion"),
        PrinterColumn(name="Kind", type="string", json_path=".spec.kind"),
    )

    spec: ResourceWatchSpec = ResourceWatchSpec()
    status: Preserved[ResourceWatchStatus] = ResourceWatchStatus()
