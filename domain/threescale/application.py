"""The lifecycle of an Application: an account's use of a product, by a plan.

    New ─► waits for account, product, plan, credentials ─► created, once ─► Ready
        other plan ─► changed ─► Ready    other product ─► deleted and created again, with other credentials ─► Ready
        any ─deletion─► deleted    its account is gone ─► deleted too
        its product is gone, or no longer offers its plan ─► waits; deleted too where the product has `cascade`

It waits for objects of the cluster: the ids of account and product, a plan in the product's spec, a Secret. 3scale is
not called while one of them is missing. Before each creation the account's applications are listed and the creation is
noted: an application of the same name and product that was not in that list, and that no other Application has, comes
from an attempt whose answer was lost. If two Applications adopt the same one all the same, the younger creates its own.
A pending application is left to the person who approves it. Credentials are set once.
"""

from __future__ import annotations

from datetime import datetime

from domain.threescale import APPLICATION, DEVELOPER_ACCOUNT
from domain.threescale.application_sync import credentials, known_id_of, natural_key, sync_application
from domain.threescale.belonging import takes_along
from domain.threescale.calls import Read, Resource, SecretKey, Write
from domain.threescale.conditions import INVALID, Standing
from domain.threescale.digests import created, digest, digests_of, retained
from domain.threescale.found import FoundApplication, FoundPlan
from domain.threescale.holders import Holder
from domain.threescale.notes import bereft, combined, owned
from domain.threescale.product_sync import Sync
from domain.threescale.providers import NoAccount, ProviderAccount, known_at, same_tenant
from domain.threescale.references import elder, has_let_go, id_of_account, takes_its_own
from domain.threescale.remote_object import One, differing
from domain.threescale.resources import Application, DeveloperAccount, Product
from domain.threescale.resources.shared import Digests
from domain.threescale.work import (
    Blocker,
    Leaving,
    Observed,
    Phase,
    Work,
    adopted,
    as_refused,
    attempted,
    blocked,
    deprovision,
    fine,
    is_true,
    lets_go,
    without_account,
)


class ObservedApplication(Observed):
    """What one decision sees.

    Attributes:
        application: the object.
        provider: the tenant of its account.
        account: its DeveloperAccount, if there is one of that name.
        product: its Product, likewise.
        holders: other Applications of the account that have an application there, with its id.
        secrets: keys of Secrets that are there.
        found: what is known of 3scale.
        listed: the account's applications, as far as they were looked through for it.
        plans: those of the product, None if not read.
    """

    application: Application
    provider: ProviderAccount | NoAccount
    account: DeveloperAccount | None = None
    product: Product | None = None
    holders: tuple[Holder, ...] = ()
    secrets: tuple[SecretKey, ...] = ()
    found: One[FoundApplication] = One()
    listed: tuple[FoundApplication, ...] = ()
    plans: tuple[FoundPlan, ...] | None = None


def work_for_application(observed: ObservedApplication, now: datetime) -> Work:
    """What to do now for an Application that exists."""
    application, account, product = observed.application, observed.account, observed.product
    if application.metadata.deleting:
        return deprovision(application, _leaving(observed), observed.refusals, now)
    if bereft(application.metadata, DEVELOPER_ACCOUNT, application.spec.account_cr.name, account):
        return Work(phase=Phase.DELETING, why="its account does not exist any more", delete=True)
    if why := _goes_with_product(observed):
        return Work(phase=Phase.DELETING, why=why, delete=True)
    owner = owned(application.metadata, account) if account else {}
    patch = combined(adopted(application.metadata, APPLICATION, {}), owner)
    if patch:
        return Work(phase=Phase.NEW, why="set its finalizer and record its account", patch=patch)
    if account is None or product is None:
        return blocked(application, _absent(observed), now, {})
    if isinstance(observed.provider, NoAccount):
        return without_account(application, observed.provider, now)
    fields: dict[str, object] = {"provider_account_host": observed.provider.url}
    blocker = _blocker(application, account, product, observed.provider.url)
    if blocker is not None:
        return blocked(application, blocker, now, fields)
    return _synced(observed, account, product, fields, now)


def _goes_with_product(observed: ObservedApplication) -> str:
    """Why it goes with its product or its plan; empty if it stays.

    The product has to say that it takes its applications along, and the application to be in 3scale as it shall be:
    one whose plan is yet to come waits for it. One that is to be retained is held.
    """
    application, product = observed.application, observed.product
    if product is None or not takes_along(product.metadata) or retained(application.metadata):
        return ""
    if not application.status.application_id:
        return ""
    if product.metadata.deleting:
        return f"Product {product.metadata.name} is being deleted, and its applications with it"
    plan = application.spec.application_plan_name
    if plan in product.spec.application_plans or observed.account is None:
        return ""
    done = digests_of(application) == _wished(application, observed.account, product)
    return f"Product {product.metadata.name} does not offer the plan {plan} any more" if done else ""


def _wished(application: Application, account: DeveloperAccount, product: Product) -> Digests:
    ids = (account.status.account_id or 0, product.status.product_id or 0)
    return Digests(synced=digest(account.status.provider_account_host, ids, application.spec))


def _absent(observed: ObservedApplication) -> Blocker:
    spec, namespace = observed.application.spec, observed.application.metadata.namespace
    missing = []
    if observed.account is None:
        missing.append(("developeraccounts", "DeveloperAccount", spec.account_cr.name))
    if observed.product is None:
        missing.append(("products", "Product", spec.product_cr.name))
    return Blocker(
        standing=Standing.WAITING,
        message="; ".join(f'{plural}.capabilities.3scale.net "{name}" not found' for plural, _, name in missing),
        waits_for=tuple(f"{kind}/{namespace}/{name}" for _, kind, name in missing),
    )


def _blocker(application: Application, account: DeveloperAccount, product: Product, url: str) -> Blocker | None:
    """The first thing that stands in the way in account and product, which both exist; `url` is their tenant's."""
    namespace, plan = application.metadata.namespace, application.spec.application_plan_name
    of_account = (f"DeveloperAccount/{namespace}/{account.metadata.name}",)
    of_product = (f"Product/{namespace}/{product.metadata.name}",)
    account_host, host = account.status.provider_account_host, product.status.provider_account_host
    without_account_id = not known_at(url, account_host, account.status.account_id) or account.metadata.deleting
    without_product_id = not product.status.product_id or product.metadata.deleting
    checks = (
        (
            is_true(account.status.conditions, INVALID),
            Standing.INVALID,
            "account CR is in an invalid state",
            of_account,
        ),
        (
            is_true(product.status.conditions, INVALID),
            Standing.INVALID,
            "product CR is in an invalid state",
            of_product,
        ),
        (without_account_id, Standing.WAITING, "accountCR name doesnt have a valid account reference", of_account),
        (without_product_id, Standing.WAITING, "productCR name doesnt have a valid product reference", of_product),
        (
            not same_tenant(account_host, host),
            Standing.INVALID,
            "product and account providerAccounts dont match",
            (*of_account, *of_product),
        ),
        (
            plan not in product.spec.application_plans,
            Standing.WAITING,
            f"Product {product.metadata.name} has no plan {plan}",
            of_product,
        ),
    )
    for holds, standing, message, waits_for in checks:
        if holds:
            return Blocker(standing=standing, message=message, waits_for=waits_for)
    return None


def _is_invalid(referent: DeveloperAccount | Product) -> bool:
    return is_true(referent.status.conditions, INVALID)


def _synced(
    observed: ObservedApplication,
    account: DeveloperAccount,
    product: Product,
    fields: dict[str, object],
    now: datetime,
) -> Work:
    application = observed.application
    found, forgets = _own(observed)
    wished = _wished(application, account, product)
    settled = wished == digests_of(application) and application.status.application_id and not forgets
    if settled and not observed.look and found.untouched:
        return fine(application, now, fields)
    account_id = account.status.account_id or 0
    key = natural_key(application, product)
    siblings = (each.id for each in observed.listed if not differing(key, each))
    listed = {each.id for each in observed.listed}
    claimed = (*siblings, *(each.id for each in observed.holders if each.id not in listed))
    whole = sync_application(application, product, account_id, found, observed.plans, claimed, forgets=forgets)
    lacking = _lacking(observed, product, whole)
    if lacking is not None:
        return blocked(application, lacking, now, fields)
    if not whole.done or observed.plans is None:
        work, blocking = attempted(whole, observed.refusals, now, application.metadata)
        if work is not None:
            return work
        if blocking:
            return as_refused(application, blocking, now, {**fields, **_of(found)})
    if whole.missing:
        return blocked(application, _without_plan(application, product), now, fields)
    fields = {**fields, **_of(found)}
    return fine(application, now, fields, digests=wished)


def _own(observed: ObservedApplication) -> tuple[One[FoundApplication], bool]:
    """What is known of its own one, and whether the one that it remembers is another's.

    Two that look at the same moment find the same one: it is that one's who has noted it, of two the elder's.
    """
    application, found = observed.application, observed.found
    known_id = known_id_of(application, observed.provider.url)
    rivals = [each.metadata for each in observed.holders if each.id == known_id]
    forgets = bool(known_id) and elder(application.metadata, rivals) is not None
    noted = 0 if forgets else known_id
    taken = found.item is not None and found.item.id != noted and found.item.id in {h.id for h in observed.holders}
    return (One() if taken else found), forgets


def _of(found: One[FoundApplication]) -> dict[str, object]:
    return {"application_id": found.item.id, "state": found.item.state or None} if found.item else {}


def _without_plan(application: Application, product: Product) -> Blocker:
    """The product has the plan in its spec: it is being made."""
    return Blocker(
        standing=Standing.WAITING,
        message=f"3scale does not have the plan {application.spec.application_plan_name} (yet)",
        waits_for=(f"Product/{application.metadata.namespace}/{product.metadata.name}",),
    )


def _lacking(observed: ObservedApplication, product: Product, sync: Sync) -> Blocker | None:
    """Credentials that are to be set, now or when it is created again, and that no Secret has."""
    makes = any(write.method in ("POST", "DELETE") for write in sync.writes)  # one of another product is created again
    wanted = credentials(observed.application, product).values() if makes else ()
    missing = [key for key in wanted if key not in observed.secrets]
    if not missing:
        return None
    first = missing[0]
    return Blocker(
        standing=Standing.WAITING,
        message=f"Secret {first.name} with the key {', '.join(key.key for key in missing)} not found",
        waits_for=(f"Secret/{first.namespace}/{first.name}",),
    )


def _leaving(observed: ObservedApplication) -> Leaving:
    """With an account that is gone or goes there is nothing left to delete, once it is gone."""
    application, account, provider = observed.application, observed.account, observed.provider
    known_id = known_id_of(application, provider.url)
    leaving = Leaving(account=observed.provider, outside=application.outside, holders=observed.holders)
    begun = bool(created(application.metadata))
    if account is None or has_let_go(account) or not (known_id or begun):
        return leaving
    account_id = id_of_account(account, provider.url)
    if not account_id and bereft(application.metadata, DEVELOPER_ACCOUNT, account.metadata.name, account):
        return leaving
    if takes_its_own(account) or not account_id:
        message = "deleted with its account" if account.metadata.deleting else "the id of its account is not known yet"
        waits_for = (f"DeveloperAccount/{account.metadata.namespace}/{account.metadata.name}",)
        blocker = Blocker(standing=Standing.WAITING, message=message, waits_for=waits_for)
        return leaving.model_copy(update={"blocker": blocker})
    path = f"accounts/{account_id}/applications"
    look = Read(resource=Resource.APPLICATION, path=path) if begun else None
    return lets_go(leaving, observed.found, known_id, look, lambda id_: _deletion(path, id_, application.spec.name))


def _deletion(path: str, id_: int, name: str) -> Write:
    return Write(resource=Resource.APPLICATION, method="DELETE", path=f"{path}/{id_}", id=id_, about=name)
