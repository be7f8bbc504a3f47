"""What objects note of 3scale and of one another in their metadata.

Ids stand in annotations beside the status, so that an object restored from a backup, which has no status, knows what
is its own. Users and applications name their account as their owner: whoever notes one that is gone goes too, whether
a garbage collector runs or not.
"""

from __future__ import annotations

from domain.identity import Kind
from domain.resource import CustomResource, ObjectMeta, OwnerReference
from domain.writes import JsonPatch


def remembered_id(meta: ObjectMeta, status_id: int | None, annotation: str) -> int:
    """The id in 3scale: the status's, else the annotation's that outlives a restore from a backup; 0 if none."""
    noted = meta.annotations.get(annotation, "")
    return status_id or (int(noted) if noted.isdecimal() else 0)


def identified(patch: JsonPatch, meta: ObjectMeta, annotation: str, id_: object) -> JsonPatch:
    """The patch, which also notes the id in the annotation."""
    if not id_ or meta.annotations.get(annotation) == str(id_):
        return patch
    return combined(patch, {"metadata": {"annotations": {annotation: str(id_)}}})


def owned(meta: ObjectMeta, owner: CustomResource) -> JsonPatch:
    """The patch that makes the owner the controller of the object, or one beside another controller; empty if it is."""
    if any(reference.uid == owner.metadata.uid for reference in meta.owner_references):
        return {}
    others = [each for each in meta.owner_references if each.kind != owner.kind_of.name]
    reference = OwnerReference(
        api_version=owner.kind_of.api_version,
        kind=owner.kind_of.name,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=not any(each.controller for each in others),  # the API server takes one only
        block_owner_deletion=True,
    )
    return {"metadata": {"ownerReferences": [each.model_dump(mode="json") for each in (*others, reference)]}}


def bereft(meta: ObjectMeta, kind: Kind, name: str, owner: CustomResource | None) -> bool:
    """Whether the owner of that kind and name that the object notes is gone, also where another has its name now.

    One of another name is that of before the object was given to somebody else.
    """
    noted = {each.uid for each in meta.owner_references if (each.kind, each.name) == (kind.name, name)}
    return bool(noted) and (owner is None or owner.metadata.uid not in noted)


def combined(*patches: JsonPatch) -> JsonPatch:
    """One patch that does what all do."""
    result: JsonPatch = {}
    for patch in patches:
        for name, value in patch.items():
            before = result.get(name)
            both = isinstance(value, dict) and isinstance(before, dict)
            result[name] = combined(before, value) if both else value  # type: ignore[arg-type]
    return result
