"""What objects note in their metadata: their ids in 3scale, and their owners.

Ids stand in annotations beside the status, so that an object restored from a backup without its status knows what it
manages. Users and applications name their account as their owner, and are deleted with it, also where no garbage
collector runs.
"""

from __future__ import annotations

from domain.identity import Kind
from domain.resource import CustomResource, ObjectMeta, OwnerReference
from domain.threescale import (
    ACTIVE_DOC,
    APPLICATION,
    BACKEND,
    CUSTOM_POLICY_DEFINITION,
    DEVELOPER_ACCOUNT,
    DEVELOPER_USER,
    PRODUCT,
    TENANT,
)
from domain.writes import JsonPatch

# The field of the status with the id in 3scale, and the annotation that notes it beside it.
OWN_IDS = {
    PRODUCT.name: "product_id",
    BACKEND.name: "backend_id",
    ACTIVE_DOC.name: "active_doc_id",
    DEVELOPER_ACCOUNT.name: "account_id",
    DEVELOPER_USER.name: "developer_user_id",
    APPLICATION.name: "application_id",
    CUSTOM_POLICY_DEFINITION.name: "policy_id",
    TENANT.name: "tenant_id",
}
ID_ANNOTATIONS = {
    DEVELOPER_ACCOUNT.name: "accountID",
    DEVELOPER_USER.name: "userID",
    APPLICATION.name: "applicationID",
    TENANT.name: "tenantID",
}


def remembered_id(resource: CustomResource) -> int:
    """The id in 3scale: the status's, else the annotation's that outlives a restore from a backup; 0 if none."""
    kind = resource.kind_of.name
    in_status = getattr(getattr(resource, "status", None), OWN_IDS.get(kind, ""), None)
    noted = resource.metadata.annotations.get(ID_ANNOTATIONS.get(kind, ""), "")
    return in_status or (int(noted) if noted.isdecimal() else 0)


def identified(resource: CustomResource, id_: object) -> JsonPatch:
    """The patch that notes the id in the kind's annotation; empty if it does, or if the kind has none."""
    annotation = ID_ANNOTATIONS.get(resource.kind_of.name)
    if not annotation or not id_ or resource.metadata.annotations.get(annotation) == str(id_):
        return {}
    return {"metadata": {"annotations": {annotation: str(id_)}}}


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

    An owner of another name is the one before the object moved.
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
