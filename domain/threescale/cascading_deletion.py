"""Cascading deletion: what is deleted with an account, a product or a tenant.

3scale deletes an account's users and applications; Perdure deletes their objects, even without a garbage collector.
With the annotation `perdure.dev/cascade`, a Product's Applications are deleted with the Product or with their plan;
otherwise they become Orphans. On a Tenant the annotation makes Kubernetes delete the tenant's objects
(`owner_references.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

from domain.identity import Kind
from domain.resource import CustomResource, ObjectMeta
from domain.threescale import DEVELOPER_ACCOUNT
from domain.threescale.conditions import FAILED
from domain.threescale.deletion import retained
from domain.threescale.digests import digests_of
from domain.threescale.observed import Blocker, is_true, waiting
from domain.threescale.resources import Application, DeveloperAccount, Product
from domain.threescale.resources.shared import Digests

CASCADE = "perdure.dev/cascade"


def takes_along(meta: ObjectMeta) -> bool:
    return meta.annotations.get(CASCADE) == "true"


def goes_with_product(application: Application, product: Product | None, desired: Digests | None) -> str:
    """Why the application is deleted; empty if it stays. It stays if its spec has changed since its last sync (its
    stored digests differ from `desired`): it may be moving to another plan.
    """
    if product is None or not takes_along(product.metadata) or retained(application.metadata):
        return ""
    if not application.status.application_id:
        return ""
    if product.metadata.deleting:
        return f"Product {product.metadata.name} is being deleted, and its applications with it"
    plan = application.spec.application_plan_name
    if plan in product.spec.application_plans or digests_of(application) != desired:
        return ""
    return f"Product {product.metadata.name} does not offer the plan {plan} any more"


def waits_for_applications(product: Product, applications: Iterable[Application]) -> Blocker | None:
    if not takes_along(product.metadata):
        return None
    going = (each for each in applications if each.status.application_id and not retained(each.metadata))
    names = sorted(f"Application/{each.metadata.namespace}/{each.metadata.name}" for each in going)
    return waiting(f"its Applications are deleted first: {', '.join(names)}", *tuple(names)) if names else None


def bereft(meta: ObjectMeta, kind: Kind, name: str, owner: CustomResource | None) -> bool:
    """Whether the owner to which `meta` has an owner reference is gone, even if a new object has the owner's name.

    False if `meta` has no owner reference to this kind and name: the object may have changed its owner.
    """
    noted = {each.uid for each in meta.owner_references if (each.kind, each.name) == (kind.name, name)}
    return bool(noted) and (owner is None or owner.metadata.uid not in noted)


def finalizer_removed(account: DeveloperAccount | None) -> bool:
    """Whether users and applications of the account are released without a call: the account is gone, or it is being
    deleted and has the annotation `retain` or no finalizer of ours.
    """
    if account is None:
        return True
    meta = account.metadata
    return meta.deleting and (retained(meta) or DEVELOPER_ACCOUNT.finalizer not in meta.finalizers)


def takes_its_own(account: DeveloperAccount) -> bool:
    """Whether 3scale deletes users and applications with the account: the account is being deleted, and 3scale has not
    refused the deletion.
    """
    return account.metadata.deleting and not is_true(account.status.conditions, FAILED)
