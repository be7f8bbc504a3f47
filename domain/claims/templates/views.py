"""Objects in templates: the raw mapping plus Poolboy's derived attributes.

A derived attribute without a value is None, a missing mapping is empty, and an unknown attribute is undefined. A new
object's uid and creation time are undefined, too: names made of them would change later. Templates cannot change views.
Poolboy's releases differ on a claim's `parameter_values`: here the values in its spec override the accepted values.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import ClassVar

from pydantic import JsonValue

from domain.claims.handle_names import guid_of
from domain.claims.json_objects import JsonObject, object_at, objects_at, text_at, value_at
from domain.claims.templates.datetimes import FORMAT


def _value(*path: str) -> property:
    return property(lambda view: value_at(view._raw, *path))


def _is_set(*path: str) -> property:
    return property(lambda view: bool(value_at(view._raw, *path)))


def _mapping(*path: str) -> property:
    return property(lambda view: object_at(view._raw, *path))


def _list(*path: str) -> property:
    """The list itself, not a copy: `RenderingContext` recognises inputs by identity, and forbids changes of them."""

    def of(view: View) -> list[JsonValue]:
        found = value_at(view._raw, *path)
        return found if isinstance(found, list) else []

    return property(of)


def _datetime(attribute: str) -> property:
    """Another attribute's text, parsed as a time; None if it is not a time."""
    return property(lambda view: _moment(getattr(view, attribute)))


def _from_its_making(field: str) -> property:
    def of(view: View) -> object:
        if (found := view.metadata.get(field)) is None:
            raise AttributeError(field)  # undefined, for a template
        return found

    return property(of)


def _moment(text: object) -> datetime | None:
    if not isinstance(text, str):
        return None
    try:
        return datetime.strptime(text, FORMAT)  # noqa: DTZ007 - the format has the offset
    except ValueError:
        return None


class View:
    __slots__ = ("_domain", "_now", "_raw")
    _kind: ClassVar[str]

    def __init__(self, raw: JsonObject, *, now: datetime | None = None, domain: str = "") -> None:
        """`now` is for time differences; `domain` is the API group in annotations' keys, by default the object's."""
        self._raw = raw
        self._now = now
        self._domain = domain or str(raw.get("apiVersion", "")).partition("/")[0]

    def __str__(self) -> str:
        return f"{self._kind} {self.name} in {self.namespace}"

    api_version = _value("apiVersion")
    metadata = _mapping("metadata")
    meta = metadata
    spec = _mapping("spec")
    status = _mapping("status")
    name = _value("metadata", "name")
    namespace = _value("metadata", "namespace")
    uid = _from_its_making("uid")
    annotations = _mapping("metadata", "annotations")
    labels = _mapping("metadata", "labels")
    creation_timestamp = _from_its_making("creationTimestamp")
    deletion_timestamp = _value("metadata", "deletionTimestamp")
    vars = _mapping("spec", "vars")

    @property
    def api_group(self) -> str:
        return self._domain

    @property
    def kind(self) -> object:
        return self._raw.get("kind", self._kind)

    @property
    def reference(self) -> dict[str, object]:
        return {"apiVersion": self.api_version, "kind": self.kind, "name": self.name, "namespace": self.namespace}

    def as_reference(self) -> dict[str, object]:
        return self.reference


class ClaimView(View):
    __slots__ = ()
    _kind = "ResourceClaim"

    resources = _list("spec", "resources")
    status_resources = _list("status", "resources")
    resource_handle_name = _value("status", "resourceHandle", "name")
    resource_handle_namespace = _value("status", "resourceHandle", "namespace")
    has_resource_handle = _is_set("status", "resourceHandle")
    is_detached = _is_set("status", "resourceHandle", "detached")
    has_resource_provider = _is_set("spec", "provider")
    approval_state = _value("status", "approval", "state")
    lifespan_start_datetime = _datetime("lifespan_start_timestamp")
    lifespan_end_timestamp = _value("status", "lifespan", "end")
    lifespan_end_datetime = _datetime("lifespan_end_timestamp")
    lifespan_first_ready_timestamp = _value("status", "lifespan", "firstReady")
    lifespan_first_ready_datetime = _datetime("lifespan_first_ready_timestamp")
    requested_lifespan_end_timestamp = _value("spec", "lifespan", "end")
    requested_lifespan_end_datetime = _datetime("requested_lifespan_end_timestamp")
    lifespan_maximum = _value("status", "lifespan", "maximum")
    lifespan_relative_maximum = _value("status", "lifespan", "relativeMaximum")
    auto_delete_when = _value("spec", "autoDelete", "when")
    auto_detach_when = _value("spec", "autoDetach", "when")

    @property
    def parameter_values(self) -> JsonObject:
        accepted = object_at(self._raw, "status", "provider", "parameterValues")
        return {**accepted, **object_at(self._raw, "spec", "provider", "parameterValues")}

    @property
    def resource_pool_name(self) -> object:
        return object_at(self._raw, "metadata", "annotations").get(f"{self._domain}/resource-pool-name")

    @property
    def resource_provider_name(self) -> object:
        return value_at(self._raw, "status", "provider", "name") or value_at(self._raw, "spec", "provider", "name")

    @property
    def is_approved(self) -> bool:
        return bool(self.has_resource_handle or self.approval_state == "approved")

    @property
    def validation_failed(self) -> bool:
        failed = [each for each in self.status_resources if value_at(each, "validationError")]
        return bool(failed or value_at(self._raw, "status", "provider", "validationErrors"))

    @property
    def lifespan_start_timestamp(self) -> object:
        started = value_at(self._raw, "status", "lifespan", "start") or value_at(self._raw, "spec", "lifespan", "start")
        return started or value_at(self._raw, "metadata", "creationTimestamp")


class HandleView(View):
    __slots__ = ()
    _kind = "ResourceHandle"

    resources = _list("spec", "resources")
    status_resources = _list("status", "resources")
    parameter_values = _mapping("spec", "provider", "parameterValues")
    is_bound = _is_set("spec", "resourceClaim")
    is_healthy = _value("status", "healthy")
    is_ready = _value("status", "ready")
    is_from_resource_pool = _is_set("spec", "resourcePool")
    resource_claim_name = _value("spec", "resourceClaim", "name")
    resource_claim_namespace = _value("spec", "resourceClaim", "namespace")
    resource_pool_name = _value("spec", "resourcePool", "name")
    resource_pool_namespace = _value("spec", "resourcePool", "namespace")
    resource_provider_name = _value("spec", "provider", "name")
    lifespan_end_timestamp = _value("spec", "lifespan", "end")
    lifespan_end_datetime = _datetime("lifespan_end_timestamp")

    @property
    def guid(self) -> str:
        return guid_of(text_at(self._raw, "metadata", "name"), text_at(self._raw, "metadata", "generateName"))

    @property
    def timedelta_to_lifespan_end(self) -> timedelta | None:
        end = _moment(self.lifespan_end_timestamp)
        return None if end is None or self._now is None else end - self._now.astimezone(UTC)


class ProviderView(View):
    __slots__ = ()
    _kind = "ResourceProvider"

    match = _mapping("spec", "match")
    override = _mapping("spec", "override")
    approval_required = _is_set("spec", "approval", "required")
    create_disabled = _is_set("spec", "disableCreation")

    @property
    def parameter_defaults(self) -> JsonObject:
        return parameter_defaults(self._raw)

    @property
    def resource_name(self) -> object:
        return value_at(self._raw, "spec", "resourceName") or self.name


def parameter_defaults(provider: JsonObject) -> JsonObject:
    """The parameters' default values. Default templates are left out, because a pool's handles never use them."""
    defaults: JsonObject = {}
    for parameter in objects_at(provider, "spec", "parameters"):
        given, value = default_value(parameter)
        if given:
            defaults[text_at(parameter, "name")] = value
    return defaults


def default_value(parameter: JsonObject) -> tuple[bool, JsonValue]:
    for holder, key in (
        (object_at(parameter, "default"), "value"),
        (object_at(parameter, "validation", "openAPIV3Schema"), "default"),
    ):
        if key in holder:
            return True, holder[key]
    return False, None
