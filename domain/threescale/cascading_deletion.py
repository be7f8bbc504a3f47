"""Cascading deletion, which the annotation `perdure.dev/cascade` enables on a Tenant or a Product.

On a Tenant, it makes Kubernetes delete the tenant's objects with the Tenant, as the replaced operator always does. On a
Product, it deletes the Product's Applications with the Product; without it these Applications become Orphans.
"""

from __future__ import annotations

from collections.abc import Iterable

from domain.resource import CustomResource, ObjectMeta
from domain.threescale.provider_account import NoAccount, ProviderAccount
from domain.threescale.remote_ids import owned
from domain.threescale.resources import Backend, DeveloperAccount, OpenApi, Product, Tenant
from domain.writes import JsonPatch

CASCADE = "perdure.dev/cascade"


def takes_along(meta: ObjectMeta) -> bool:
    return meta.annotations.get(CASCADE) == "true"


def belonging(resource: CustomResource, account: ProviderAccount | NoAccount, tenants: Iterable[Tenant]) -> JsonPatch:
    """The patch that makes the object's Tenant its owner; empty if the Tenant does not cascade or is in another
    namespace, or if the object has a controller, with which it is deleted anyway.

    `tenants` are the Tenants that reference the account's Secret.
    """
    meta = resource.metadata
    if not isinstance(resource, Product | Backend | DeveloperAccount | OpenApi) or isinstance(account, NoAccount):
        return {}
    if meta.deleting or any(each.controller for each in meta.owner_references):
        return {}
    if resource.kind_of.finalizer not in meta.finalizers:
        return {}
    owner = next((each for each in tenants if _takes_along(each, resource, account)), None)
    return owned(meta, owner) if owner else {}


def _takes_along(tenant: Tenant, resource: CustomResource, account: ProviderAccount) -> bool:
    reference, meta = tenant.spec.tenant_secret_ref, tenant.metadata
    same_secret = (reference.name, reference.namespace or meta.namespace) == (
        account.token.name,
        account.token.namespace,
    )
    near = meta.namespace == resource.metadata.namespace
    return near and same_secret and not meta.deleting and takes_along(meta)
