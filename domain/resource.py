"""What every custom resource shares: metadata, conditions, secret references, and the printer columns of its kind.

Models hold what decisions read and what Perdure writes. Objects are written by patches of the fields that change, never
as a whole, so whatever a client stored beyond these models stays as it is.
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

# The API server keeps Events for an hour, and some minutes until it gets round to it (`--event-ttl`).
EVENTS_KEPT = timedelta(minutes=65)


class KubeModel(Model):
    """Fields in Python's spelling, camelCase on the wire; names that Go spells otherwise carry their own alias."""

    model_config = {**Model.model_config, "alias_generator": to_camel}

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: object) -> object:
        """Clients write null where they mean absent."""
        return without_nulls(value)


def without_nulls(value: object) -> object:
    """A mapping without its empty entries; anything else as it is."""
    if not isinstance(value, dict) or None not in value.values():
        return value
    return {name: item for name, item in value.items() if item is not None}


class OwnerReference(KubeModel):
    """A metadata.ownerReferences entry."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(KubeModel):
    """The metadata that decisions read."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    # Made by a factory, as pydantic copies a literal one for each object.
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def deleting(self) -> bool:
        """True once deletion was asked for."""
        return self.deletion_timestamp is not None

    def finalizers_without(self, finalizer: str) -> list[str]:
        """All other finalizers, in their order."""
        return [each for each in self.finalizers if each != finalizer]


class KubeObject(KubeModel):
    """Any object: its metadata, and the whole as it came, of which users' templates may read any part."""

    metadata: ObjectMeta = ObjectMeta()
    document: Annotated[dict[str, Any], SkipValidation] = {}

    @model_validator(mode="before")
    @classmethod
    def _keep(cls, value: dict[str, Any]) -> dict[str, Any]:
        return {**value, "document": value}


class PrinterColumn(Model):
    """A column of `kubectl get`."""

    name: str
    type: str
    json_path: str


AGE = PrinterColumn(name="Age", type="date", json_path=".metadata.creationTimestamp")


class Definition(Model):
    """What a kind's CustomResourceDefinition says beyond the fields of its objects.

    Attributes:
        annotations: of the definition itself; controller-gen's, which made most of the replaced operators' definitions
            and which tools compare.
        required: the fields that every object must have at the top.
        name_pattern: a regular expression for `metadata.name`, empty for the API server's own rule.
        name_length: the longest `metadata.name`, 0 for the API server's own rule.
        short_names: by which people call it on kubectl's command line.
        cluster_scoped: whether its objects stand in no namespace.
        status_subresource: whether the status is written by itself.
        scale_subresource: whether `kubectl scale` works: on `spec.replicas`, shown by `status.replicas`.
        selectable_fields: paths that lists and watches may select by, on API servers that can (Kubernetes 1.30 on).
    """

    annotations: dict[str, str] = {"controller-gen.kubebuilder.io/version": "v0.16.4"}
    required: tuple[str, ...] = ()
    name_pattern: str = ""
    name_length: int = 0
    short_names: tuple[str, ...] = ()
    cluster_scoped: bool = False
    status_subresource: bool = True
    scale_subresource: bool = False
    selectable_fields: tuple[str, ...] = ()


class CustomResource(KubeModel):
    """An object of a kind with a lifecycle. Subclasses add `spec` and, where the kind has one, `status`."""

    kind_of: ClassVar[Kind]
    definition: ClassVar[Definition] = Definition()
    printer_columns: ClassVar[tuple[PrinterColumn, ...]] = ()

    metadata: ObjectMeta = ObjectMeta()

    @property
    def key(self) -> Key:
        """The key of its workflow."""
        meta = self.metadata
        return Key(kind=self.kind_of.name, namespace=meta.namespace, name=meta.name, uid=meta.uid)

    @property
    def carrier(self) -> str:
        """The object (`Kind/namespace/name`) whose workflow does this one's work; empty if its own does."""
        return ""

    @property
    def owner(self) -> str:
        """The object (`Kind/namespace/name`) that this one exists for, empty if for none; by default its carrier."""
        return self.carrier

    @property
    def outside(self) -> tuple[str, ...]:
        """What exists because of it beyond its own object, in words: what `abandon` would leave behind."""
        return ()


class SecretReference(KubeModel):
    """A Secret by name and namespace."""

    name: Required[str] = Field("", description="The Secret's name.")
    namespace: Required[str] = Field("", description="The Secret's namespace.")


def timestamp(moment: datetime) -> str:
    """A moment as Kubernetes writes it: RFC 3339, UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Condition(KubeModel):
    """A status condition as the replaced operators wrote it; times are RFC 3339 strings, kept as they were read."""

    type: str = Field("", description="The condition's type.")
    status: str = Field("", description="True, False or Unknown.")
    last_probe_time: DateTime[str | None] = Field(None, description="When the condition was last checked.")
    last_transition_time: DateTime[str | None] = Field(None, description="When the status last changed.")
    reason: str | None = Field(None, description="Why, in one word, for programs.")
    message: str | None = Field(None, description="Why, in a sentence, for people.")


def condition_of(conditions: Iterable[Condition], type_: str) -> Condition | None:
    """The condition of a type, if there is one."""
    return next((condition for condition in conditions if condition.type == type_), None)


def parse_timestamp(text: str | None) -> datetime | None:
    """A moment as Kubernetes writes it, None for what is absent or no moment (people write status by hand)."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
