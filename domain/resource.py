"""The common parts of custom resources: metadata, conditions, secret references, and printer columns.

Objects are written by patches of changed fields, so that fields beyond these models are preserved.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, ClassVar

from pydantic import Field, SkipValidation, model_validator
from pydantic.alias_generators import to_camel

from domain.identity import Key, Kind
from domain.model import Model
from domain.schema import DateTime, Required

# The API server deletes Events after an hour (`--event-ttl`), some of them minutes later.
EVENTS_KEPT = timedelta(minutes=65)


class KubeModel(Model):
    """A model whose fields are in snake_case in Python and in camelCase in JSON.

    A field that Go spells differently has an alias.
    """

    model_config = {**Model.model_config, "alias_generator": to_camel}

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: object) -> object:
        return without_nulls(value)


def without_nulls(value: object) -> object:
    if not isinstance(value, dict) or None not in value.values():
        return value
    return {name: item for name, item in value.items() if item is not None}


def newest_version(*versions: str) -> str:
    """The largest of the resourceVersions. Each is empty, or a decimal number without leading zeros."""
    return max(versions, key=lambda each: (len(each), each))


class OwnerReference(KubeModel):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(KubeModel):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    # A factory is faster: pydantic would deep-copy a literal default for each object.
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def deleting(self) -> bool:
        return self.deletion_timestamp is not None

    def finalizers_without(self, finalizer: str) -> list[str]:
        return [each for each in self.finalizers if each != finalizer]


class KubeObject(KubeModel):
    """Any object: its metadata, and the complete document for users' templates, which may read any field."""

    metadata: ObjectMeta = ObjectMeta()
    document: Annotated[dict[str, Any], SkipValidation] = {}

    @model_validator(mode="before")
    @classmethod
    def _keep(cls, value: dict[str, Any]) -> dict[str, Any]:
        return {**value, "document": value}


class PrinterColumn(Model):
    name: str
    type: str
    json_path: str


AGE = PrinterColumn(name="Age", type="date", json_path=".metadata.creationTimestamp")


class Definition(Model):
    # The annotations of the CRD; the default is controller-gen's, because tools compare it.
    annotations: dict[str, str] = {"controller-gen.kubebuilder.io/version": "v0.16.4"}
    required: tuple[str, ...] = ()
    name_pattern: str = ""  # a regular expression for `metadata.name`; empty for the API server's own rule
    name_length: int = 0  # the longest `metadata.name`; 0 for the API server's own rule
    short_names: tuple[str, ...] = ()
    cluster_scoped: bool = False
    status_subresource: bool = True  # whether the status is written separately
    scale_subresource: bool = False  # `kubectl scale` sets `spec.replicas` and reads `status.replicas`
    selectable_fields: tuple[str, ...] = ()  # the fields that lists and watches can select by (Kubernetes 1.30 on)


class CustomResource(KubeModel):
    """An object of a kind with a lifecycle. Subclasses add `spec` and, where the kind has one, `status`."""

    kind_of: ClassVar[Kind]
    definition: ClassVar[Definition] = Definition()
    printer_columns: ClassVar[tuple[PrinterColumn, ...]] = ()

    metadata: ObjectMeta = ObjectMeta()

    @property
    def key(self) -> Key:
        meta = self.metadata
        return Key(kind=self.kind_of.name, namespace=meta.namespace, name=meta.name, uid=meta.uid)

    @property
    def delegate(self) -> str:
        """The object (`Kind/namespace/name`) whose workflow works for this object; empty if this object has its own."""
        return ""

    @property
    def owner(self) -> str:
        """The object (`Kind/namespace/name`) that this object exists for; empty if there is none."""
        return self.delegate

    @property
    def outside(self) -> tuple[str, ...]:
        """Descriptions of the external resources that `abandon` would leave behind."""
        return ()


class SecretReference(KubeModel):
    name: Required[str] = Field("", description="The Secret's name.")
    namespace: Required[str] = Field("", description="The Secret's namespace.")


def timestamp(moment: datetime) -> str:
    """The time in RFC 3339, in UTC and whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Condition(KubeModel):
    """A status condition as the replaced operators wrote it; times are RFC 3339 strings, unchanged."""

    type: str = Field("", description="The condition's type.")
    status: str = Field("", description="True, False or Unknown.")
    last_probe_time: DateTime[str | None] = Field(None, description="When the condition was last checked.")
    last_transition_time: DateTime[str | None] = Field(None, description="When the status last changed.")
    reason: str | None = Field(None, description="Why, in one word, for programs.")
    message: str | None = Field(None, description="Why, in a sentence, for people.")


def condition_of(conditions: Iterable[Condition], type_: str) -> Condition | None:
    return next((condition for condition in conditions if condition.type == type_), None)


def parse_timestamp(text: str | None) -> datetime | None:
    """The time; None if absent or invalid."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


# Durations are added to times and subtracted from them, so times too near the calendar's limits are invalid.
_YEARS = range(1970, 9001)


def reckonable(moment: datetime) -> bool:
    """Whether the time has a zone, and a year in which durations can be added and subtracted."""
    return moment.tzinfo is not None and moment.year in _YEARS


def reckonable_timestamp(text: str | None) -> datetime | None:
    moment = parse_timestamp(text)
    return moment if moment is not None and reckonable(moment) else None
