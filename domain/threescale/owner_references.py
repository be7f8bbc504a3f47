"""Owner references to accounts, to OpenAPIs, and to Tenants with the annotation `perdure.dev/cascade`."""

from __future__ import annotations

from collections.abc import Iterable

from domain.identity import Kind
from domain.resource import CustomResource, ObjectMeta, OwnerReference
from domain.threescale.cascading_deletion import CASCADE, takes_along
from domain.threescale.provider_account import NoAccount, ProviderAccount
from domain.threescale.remote_ids import combined
from domain.threescale.resources import Backend, DeveloperAccount, OpenApi, Product, Tenant
from domain.writes import JsonPatch

# The names of an owner's annotations because of which Perdure has annotated the object, or made the Tenant its owner.
# Only this is taken back when they are removed, not what a person or the replaced operator has set.
HANDED = "perdure.dev/handed"


def owned(meta: ObjectMeta, owner: CustomResource) -> JsonPatch:
    """A patch that sets the owner reference, as controller if there is no other controller; empty if already set."""
    if any(reference.uid == owner.metadata.uid for reference in meta.owner_references):
        return {}
    others = [each for each in meta.owner_references if not is_of(owner.kind_of, each)]
    reference = OwnerReference(
        api_version=owner.kind_of.api_version,
        kind=owner.kind_of.name,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=not any(each.controller for each in others),  # the API server accepts only one
        block_owner_deletion=True,
    )
    return {"metadata": {"ownerReferences": [each.model_dump(mode="json") for each in (*others, reference)]}}


def is_of(kind: Kind, reference: OwnerReference) -> bool:
    """Whether the reference names an object of the kind; other groups have kinds of the same names."""
    return reference.kind == kind.name and reference.api_version.startswith(f"{kind.group}/")


def belonging(resource: CustomResource, account: ProviderAccount | NoAccount, tenants: Iterable[Tenant]) -> JsonPatch:
    """The patch that makes the object's Tenant its owner; empty if the Tenant does not cascade or is in another
    namespace, or if the object is deleted with its controller anyway.

    `tenants` are the Tenants that reference the provider account's Secret.
    """
    meta = resource.metadata
    if not isinstance(resource, Product | Backend | DeveloperAccount | OpenApi) or isinstance(account, NoAccount):
        return {}
    if not meta.deleting and meta.annotations.get(HANDED) == CASCADE and (patch := _disowned(meta, tenants)):
        return patch
    has_controller = any(each.controller for each in meta.owner_references)
    if meta.deleting or has_controller or resource.kind_of.finalizer not in meta.finalizers:
        return {}
    owner = next((each for each in tenants if _takes_along(each, resource, account)), None)
    patch = owned(meta, owner) if owner else {}
    return combined(patch, {"metadata": {"annotations": {HANDED: CASCADE}}}) if patch else {}


def _disowned(meta: ObjectMeta, tenants: Iterable[Tenant]) -> JsonPatch:
    former = {each.metadata.uid for each in tenants if not (each.metadata.deleting or takes_along(each.metadata))}
    others = [each.model_dump(mode="json") for each in meta.owner_references if each.uid not in former]
    if len(others) == len(meta.owner_references):
        return {}
    return {"metadata": {"ownerReferences": others or None, "annotations": {HANDED: None}}}


def _takes_along(tenant: Tenant, resource: CustomResource, account: ProviderAccount) -> bool:
    reference, meta, token = tenant.spec.tenant_secret_ref, tenant.metadata, account.token
    same_secret = (reference.name, reference.namespace or meta.namespace) == (token.name, token.namespace)
    near = meta.namespace == resource.metadata.namespace
    return near and same_secret and not meta.deleting and takes_along(meta)
