"""Ids and owners in an object's metadata.

Annotations store ids in addition to the status, so that an object restored without its status knows its counterpart.
Users and applications have their account as owner, and are deleted with it even without a garbage collector.
"""

from __future__ import annotations

from domain.identity import Kind
from domain.resource import CustomResource, ObjectMeta, OwnerReference
from domain.threescale.resources.shared import RemoteResource, ReportedStatus
from domain.writes import JsonPatch


def host_of(resource: CustomResource) -> str:
    """The tenant's address in the object's status; empty if it names none."""
    status: object = getattr(resource, "status", None)
    return (status.provider_account_host if isinstance(status, ReportedStatus) else None) or ""


def remembered_id(resource: RemoteResource) -> int:
    noted = resource.metadata.annotations.get(resource.id_annotation, "")
    return resource.remote_id or (int(noted) if noted.isdecimal() else 0)


def identified(resource: RemoteResource, id_: object) -> JsonPatch:
    """A patch that stores the id in the kind's annotation; empty if nothing changes."""
    annotation = resource.id_annotation
    if not annotation or not id_ or resource.metadata.annotations.get(annotation) == str(id_):
        return {}
    return {"metadata": {"annotations": {annotation: str(id_)}}}


def owned(meta: ObjectMeta, owner: CustomResource) -> JsonPatch:
    """A patch that sets the owner reference, as controller if the object has no other; empty if it is set already."""
    if any(reference.uid == owner.metadata.uid for reference in meta.owner_references):
        return {}
    others = [each for each in meta.owner_references if each.kind != owner.kind_of.name]
    reference = OwnerReference(
        api_version=owner.kind_of.api_version,
        kind=owner.kind_of.name,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=not any(each.controller for each in others),  # the API server accepts only one
        block_owner_deletion=True,
    )
    return {"metadata": {"ownerReferences": [each.model_dump(mode="json") for each in (*others, reference)]}}


def bereft(meta: ObjectMeta, kind: Kind, name: str, owner: CustomResource | None) -> bool:
    """Whether the recorded owner of this kind and name is gone, even if a new object has the owner's name.

    A recorded owner with another name is ignored, because the object has moved to a new owner since.
    """
    noted = {each.uid for each in meta.owner_references if (each.kind, each.name) == (kind.name, name)}
    return bool(noted) and (owner is None or owner.metadata.uid not in noted)


def combined(*patches: JsonPatch) -> JsonPatch:
    result: JsonPatch = {}
    for patch in patches:
        for name, value in patch.items():
            before = result.get(name)
            both = isinstance(value, dict) and isinstance(before, dict)
            result[name] = combined(before, value) if both else value  # type: ignore[arg-type]
    return result
