"""Who goes with whom, where a person wants that: with a Tenant the objects of the tenant that it has made, with a
Product its applications.

The replaced operator makes a Tenant the owner of every Product, Backend, DeveloperAccount and OpenAPI of its namespace
that is in its tenant, so that they all vanish with it. Here a Tenant says so by its annotation `perdure.dev/cascade`;
whoever does not know the operator's habit loses nothing. An object that has an owner already, as what an OpenAPI makes,
goes with that one.

A Product with the same annotation takes its Applications along, which go first; and those whose plan it offers no more,
as 3scale lets go of no plan that somebody is on. Without it they wait, as with the operator.
"""

from __future__ import annotations

from collections.abc import Iterable

from domain.resource import CustomResource, ObjectMeta
from domain.threescale.notes import owned
from domain.threescale.providers import NoAccount, ProviderAccount
from domain.threescale.resources import Backend, DeveloperAccount, OpenApi, Product, Tenant
from domain.threescale.work import Phase, Work

CASCADE = "perdure.dev/cascade"


def takes_along(meta: ObjectMeta) -> bool:
    """Whether the object takes along what depends on it."""
    return meta.annotations.get(CASCADE) == "true"


def belonging(resource: CustomResource, account: ProviderAccount | NoAccount, tenants: Iterable[Tenant]) -> Work | None:
    """That the object notes the Tenant whose Secret says which tenant it is in; None where nothing is to be noted.

    Args:
        resource: the object.
        account: its tenant.
        tenants: Tenants that name the Secret of the account.
    """
    meta = resource.metadata
    if not isinstance(resource, Product | Backend | DeveloperAccount | OpenApi) or isinstance(account, NoAccount):
        return None
    if meta.deleting or any(each.controller for each in meta.owner_references):
        return None
    if resource.kind_of.finalizer not in meta.finalizers:
        return None
    owner = next((each for each in tenants if _takes_along(each, resource, account)), None)
    patch = owned(meta, owner) if owner else {}
    return Work(phase=Phase.NEW, why="record its Tenant", patch=patch) if patch else None


def _takes_along(tenant: Tenant, resource: CustomResource, account: ProviderAccount) -> bool:
    reference, meta = tenant.spec.tenant_secret_ref, tenant.metadata
    same_secret = (reference.name, reference.namespace or meta.namespace) == (
        account.token.name,
        account.token.namespace,
    )
    near = meta.namespace == resource.metadata.namespace
    return near and same_secret and not meta.deleting and takes_along(meta)
