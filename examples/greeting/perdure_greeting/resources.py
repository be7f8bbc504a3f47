"""The custom resource. Its definition for the API server is generated from this model."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from pydantic import Field

from domain.identity import Kind
from domain.resource import AGE, CustomResource, KubeModel, PrinterColumn
from domain.schema import DateTime
from perdure_greeting import GREETING


class GreetingSpec(KubeModel):
    """The desired state. Every field has a default, because an object may lack it."""

    text: str = Field("", description="The text.")
    until: DateTime[datetime | None] = Field(None, description="When the ConfigMap is removed; never, if absent.")


class GreetingStatus(KubeModel):
    """The state that was reached."""

    phase: str = Field("", description="Waiting, Shown or Over.")
    message: str = Field("", description="Why, in a sentence.")


class Greeting(CustomResource):
    """A text, kept in a ConfigMap of the same name."""

    kind_of: ClassVar[Kind] = GREETING
    printer_columns: ClassVar[tuple[PrinterColumn, ...]] = (
        PrinterColumn(name="Phase", type="string", json_path=".status.phase"),
        AGE,
    )

    spec: GreetingSpec = GreetingSpec()
    status: GreetingStatus = GreetingStatus()
