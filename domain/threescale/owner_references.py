"""Owner references to accounts, to OpenAPIs, and to Tenants with the annotation `perdure.dev/cascade`."""

from __future__ import annotations

from collections.abc import Iterable

from domain.identity import Kind
from domain.resource import CustomResource, ObjectMeta, OwnerReference
from domain.threescale.cascading_deletion import takes_along
from domain.threescale.provider_account import NoAccount, ProviderAccount
from domain.threescale.resources import Backend, DeveloperAccount, OpenApi, Product, Tenant
from domain.writes import JsonPatch


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
    """Other groups have kinds with the same names."""
    return reference.kind == kind.name and reference.api_version.startswith(f"{kind.group}/")


def belonging(resource: CustomResource, account: ProviderAccount | NoAccount, tenants: Iterable[Tenant]) -> JsonPatch:
    """The patch that makes the object's Tenant its owner; empty if the Tenant does not cascade or is in another
    namespace, or if the object is deleted with its controller anyway.

    `tenants` are the Tenants that reference the provider account's Secret.
    """
    meta = resource.metadata
    if not isinstance(resource, Product | Backend | DeveloperAccount | OpenApi) or isinstance(account, NoAccount):
        return {}
    has_controller = any(each.controller for each in meta.owner_references)
    if meta.deleting or has_controller or resource.kind_of.finalizer not in meta.finalizers:
        return {}
    owner = next((each for each in tenants if _takes_along(each, resource, account)), None)
    return owned(meta, owner) if owner else {}


def _takes_along(tenant: Tenant, resource: CustomResource, account: ProviderAccount) -> bool:
    reference, meta, token = tenant.spec.tenant_secret_ref, tenant.metadata, account.token
    same_secret = (reference.name, reference.namespace or meta.namespace) == (token.name, token.namespace)
    near = meta.namespace == resource.metadata.namespace
    return near and same_secret and not meta.deleting and takes_along(meta)
