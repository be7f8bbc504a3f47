"""Objects in templates: the raw mapping plus Poolboy's derived attributes.

A derived attribute without a value is None, a missing mapping is empty, and an unknown attribute is undefined, as are
uid and creation time of a new object, because names made of them would change later. Templates cannot change views.
Poolboy's releases differ on a claim's `parameter_values`: here they are the accepted ones, overridden by its spec.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import ClassVar

from domain.claims.templates.datetimes import FORMAT


def _at(raw: object, *path: str) -> object:
    for key in path:
        if not isinstance(raw, Mapping):
            return None
        raw = raw.get(key)
    return raw


def _mapping(raw: object, *path: str) -> dict[str, object]:
    found = _at(raw, *path)
    return found if isinstance(found, dict) else {}


def _list(raw: object, *path: str) -> list[object]:
    found = _at(raw, *path)
    return found if isinstance(found, list) else []


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

    def __init__(self, raw: Mapping[str, object], *, now: datetime | None = None, domain: str = "") -> None:
        """`now` is for time differences; `domain` is the API group in annotations' keys, by default the object's."""
        self._raw = raw
        self._now = now
        self._domain = domain or str(raw.get("apiVersion", "")).partition("/")[0]

    def __str__(self) -> str:
        return f"{self._kind} {self.name} in {self.namespace}"

    def _from_its_making(self, field: str) -> object:
        if (found := self.metadata.get(field)) is None:
            raise AttributeError(field)  # undefined, for a template
        return found

    @property
    def api_version(self) -> object:
        return self._raw.get("apiVersion")

    @property
    def api_group(self) -> str:
        return self._domain

    @property
    def kind(self) -> object:
        return self._raw.get("kind", self._kind)

    @property
    def metadata(self) -> dict[str, object]:
        return _mapping(self._raw, "metadata")

    meta = metadata

    @property
    def spec(self) -> dict[str, object]:
        return _mapping(self._raw, "spec")

    @property
    def status(self) -> dict[str, object]:
        return _mapping(self._raw, "status")

    @property
    def name(self) -> object:
        return _at(self._raw, "metadata", "name")

    @property
    def namespace(self) -> object:
        return _at(self._raw, "metadata", "namespace")

    @property
    def uid(self) -> object:
        return self._from_its_making("uid")

    @property
    def annotations(self) -> dict[str, object]:
        return _mapping(self._raw, "metadata", "annotations")

    @property
    def labels(self) -> dict[str, object]:
        return _mapping(self._raw, "metadata", "labels")

    @property
    def creation_timestamp(self) -> object:
        return self._from_its_making("creationTimestamp")

    @property
    def deletion_timestamp(self) -> object:
        return _at(self._raw, "metadata", "deletionTimestamp")

    @property
    def vars(self) -> dict[str, object]:
        return _mapping(self._raw, "spec", "vars")

    @property
    def reference(self) -> dict[str, object]:
        return {"apiVersion": self.api_version, "kind": self.kind, "name": self.name, "namespace": self.namespace}

    def as_reference(self) -> dict[str, object]:
        return self.reference


class _WithLifespan(View):
    __slots__ = ()

    @property
    def resources(self) -> list[object]:
        return _list(self._raw, "spec", "resources")

    @property
    def status_resources(self) -> list[object]:
        return _list(self._raw, "status", "resources")


class ClaimView(_WithLifespan):
    __slots__ = ()
    _kind = "ResourceClaim"

    @property
    def parameter_values(self) -> dict[str, object]:
        accepted = _mapping(self._raw, "status", "provider", "parameterValues")
        return {**accepted, **_mapping(self._raw, "spec", "provider", "parameterValues")}

    @property
    def resource_handle_name(self) -> object:
        return _at(self._raw, "status", "resourceHandle", "name")

    @property
    def resource_handle_namespace(self) -> object:
        return _at(self._raw, "status", "resourceHandle", "namespace")

    @property
    def resource_pool_name(self) -> object:
        return self.annotations.get(f"{self._domain}/resource-pool-name")

    @property
    def resource_provider_name(self) -> object:
        return _at(self._raw, "status", "provider", "name") or _at(self._raw, "spec", "provider", "name")

    @property
    def approval_state(self) -> object:
        return _at(self._raw, "status", "approval", "state")

    @property
    def is_approved(self) -> bool:
        return self.has_resource_handle or self.approval_state == "approved"

    @property
    def is_detached(self) -> bool:
        return bool(_at(self._raw, "status", "resourceHandle", "detached"))

    @property
    def has_resource_handle(self) -> bool:
        return bool(_at(self._raw, "status", "resourceHandle"))

    @property
    def has_resource_provider(self) -> bool:
        return bool(_at(self._raw, "spec", "provider"))

    @property
    def validation_failed(self) -> bool:
        failed = [each for each in self.status_resources if _at(each, "validationError")]
        return bool(failed or _at(self._raw, "status", "provider", "validationErrors"))

    @property
    def lifespan_start_timestamp(self) -> object:
        started = _at(self._raw, "status", "lifespan", "start") or _at(self._raw, "spec", "lifespan", "start")
        return started or _at(self._raw, "metadata", "creationTimestamp")

    @property
    def lifespan_start_datetime(self) -> datetime | None:
        return _moment(self.lifespan_start_timestamp)

    @property
    def lifespan_end_timestamp(self) -> object:
        return _at(self._raw, "status", "lifespan", "end")

    @property
    def lifespan_end_datetime(self) -> datetime | None:
        return _moment(self.lifespan_end_timestamp)

    @property
    def lifespan_first_ready_timestamp(self) -> object:
        return _at(self._raw, "status", "lifespan", "firstReady")

    @property
    def lifespan_first_ready_datetime(self) -> datetime | None:
        return _moment(self.lifespan_first_ready_timestamp)

    @property
    def requested_lifespan_end_timestamp(self) -> object:
        return _at(self._raw, "spec", "lifespan", "end")

    @property
    def requested_lifespan_end_datetime(self) -> datetime | None:
        return _moment(self.requested_lifespan_end_timestamp)

    @property
    def lifespan_maximum(self) -> object:
        return _at(self._raw, "status", "lifespan", "maximum")

    @property
    def lifespan_relative_maximum(self) -> object:
        return _at(self._raw, "status", "lifespan", "relativeMaximum")

    @property
    def auto_delete_when(self) -> object:
        return _at(self._raw, "spec", "autoDelete", "when")

    @property
    def auto_detach_when(self) -> object:
        return _at(self._raw, "spec", "autoDetach", "when")


class HandleView(_WithLifespan):
    __slots__ = ()
    _kind = "ResourceHandle"

    @property
    def guid(self) -> str:
        name = str(self.name or "")
        prefix = str(_at(self._raw, "metadata", "generateName") or "")
        if prefix and name.startswith(prefix):
            return name[len(prefix) :]
        return name[5:] if name.startswith("guid-") else name[-5:]

    @property
    def parameter_values(self) -> dict[str, object]:
        return _mapping(self._raw, "spec", "provider", "parameterValues")

    @property
    def is_bound(self) -> bool:
        return bool(_at(self._raw, "spec", "resourceClaim"))

    @property
    def is_healthy(self) -> object:
        return _at(self._raw, "status", "healthy")

    @property
    def is_ready(self) -> object:
        return _at(self._raw, "status", "ready")

    @property
    def is_from_resource_pool(self) -> bool:
        return bool(_at(self._raw, "spec", "resourcePool"))

    @property
    def resource_claim_name(self) -> object:
        return _at(self._raw, "spec", "resourceClaim", "name")

    @property
    def resource_claim_namespace(self) -> object:
        return _at(self._raw, "spec", "resourceClaim", "namespace")

    @property
    def resource_pool_name(self) -> object:
        return _at(self._raw, "spec", "resourcePool", "name")

    @property
    def resource_pool_namespace(self) -> object:
        return _at(self._raw, "spec", "resourcePool", "namespace")

    @property
    def resource_provider_name(self) -> object:
        return _at(self._raw, "spec", "provider", "name")

    @property
    def lifespan_end_timestamp(self) -> object:
        return _at(self._raw, "spec", "lifespan", "end")

    @property
    def lifespan_end_datetime(self) -> datetime | None:
        return _moment(self.lifespan_end_timestamp)

    @property
    def timedelta_to_lifespan_end(self) -> timedelta | None:
        end = self.lifespan_end_datetime
        return None if end is None or self._now is None else end - self._now.astimezone(UTC)


class ProviderView(View):
    __slots__ = ()
    _kind = "ResourceProvider"

    @property
    def parameter_defaults(self) -> dict[str, object]:
        defaults: dict[str, object] = {}
        for each in _list(self._raw, "spec", "parameters"):
            schema = _mapping(each, "validation", "openAPIV3Schema")
            named = _mapping(each, "default")
            if "value" in named:
                defaults[str(_at(each, "name"))] = named["value"]
            elif "default" in schema:
                defaults[str(_at(each, "name"))] = schema["default"]
        return defaults

    @property
    def resource_name(self) -> object:
        return _at(self._raw, "spec", "resourceName") or self.name

    @property
    def match(self) -> dict[str, object]:
        return _mapping(self._raw, "spec", "match")

    @property
    def override(self) -> dict[str, object]:
        return _mapping(self._raw, "spec", "override")

    @property
    def approval_required(self) -> bool:
        return bool(_at(self._raw, "spec", "approval", "required"))

    @property
    def create_disabled(self) -> bool:
        return bool(_at(self._raw, "spec", "disableCreation"))


class PoolView(View):
    __slots__ = ()
    _kind = "ResourcePool"
