"""Which objects have what is in 3scale, where several say to have one and the same.

Two objects of one name of a tenant may have one thing: both were taken over with its id, or one was copied with its
annotation. It is the one's as much as the other's: who goes leaves it to who stays.
"""

from __future__ import annotations

from collections.abc import Iterable

from domain.model import Model
from domain.resource import CustomResource, ObjectMeta
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
from domain.threescale.notes import remembered_id

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


class Holder(Model):
    """Another object, and the id of what it has in the tenant."""

    metadata: ObjectMeta
    id: int


def id_of(resource: CustomResource) -> int:
    """The id that the object remembers, in whichever tenant; 0 if none."""
    kind = resource.kind_of.name
    in_status = getattr(getattr(resource, "status", None), OWN_IDS.get(kind, ""), None)
    return remembered_id(resource.metadata, in_status, ID_ANNOTATIONS.get(kind, ""))


def holder_of(id_: int, holders: Iterable[Holder]) -> ObjectMeta | None:
    """One that has it too, and stays."""
    return next((each.metadata for each in holders if each.id == id_ and not each.metadata.deleting), None)
