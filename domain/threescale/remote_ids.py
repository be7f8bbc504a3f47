"""Ids of counterparts in 3scale. Annotations store them in addition to the status, so that an object restored without
its status knows its counterpart.
"""

from __future__ import annotations

from domain.resource import CustomResource
from domain.threescale.resources.shared import RemoteResource, ReportedStatus
from domain.writes import JsonPatch

_LONGEST_ID = len(str(2**63 - 1))  # the digits of an int64


def host_of(resource: CustomResource) -> str:
    """The tenant's address in the object's status; empty if absent."""
    status: object = getattr(resource, "status", None)
    return (status.provider_account_host if isinstance(status, ReportedStatus) else None) or ""


def remembered_id(resource: RemoteResource) -> int:
    noted = resource.metadata.annotations.get(resource.id_annotation, "")
    return resource.remote_id or (int(noted) if noted.isdecimal() and len(noted) <= _LONGEST_ID else 0)


def identified(resource: RemoteResource, id_: object) -> JsonPatch:
    """A patch that stores the id in the kind's annotation; empty if nothing changes."""
    annotation = resource.id_annotation
    if not annotation or not id_ or resource.metadata.annotations.get(annotation) == str(id_):
        return {}
    return {"metadata": {"annotations": {annotation: str(id_)}}}


def combined(*patches: JsonPatch) -> JsonPatch:
    result: JsonPatch = {}
    for patch in patches:
        for name, value in patch.items():
            before = result.get(name)
            both = isinstance(value, dict) and isinstance(before, dict)
            result[name] = combined(before, value) if both else value  # type: ignore[arg-type]
    return result
