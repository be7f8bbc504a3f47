"""The lifecycle of an Application: an account's use of a product, by a plan.

    New ─► waits for account, product, plan, credentials ─► created once ─► Ready
        other plan ─► changed ─► Ready    other product ─► deleted and created again, with other credentials ─► Ready
        any ─deletion─► deleted    its account is gone ─► deleted too
        its product or its plan is removed ─► waits, or is deleted if the product has `cascade`

Before a creation, an annotation records the ids of existing applications with the same name and product. The result of
the creation is the application whose id is not in the annotation and belongs to no other Application object.
Credentials are set only at the creation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import ClassVar, Self

from domain.decision import Decision
from domain.schema import Json
from domain.threescale import DEVELOPER_ACCOUNT
from domain.threescale.application_credentials import credentials
from domain.threescale.calls import Read, Resource, SecretKey, Sync, Write, change, creation, deletion, read_entry
from domain.threescale.cascading_deletion import bereft, finalizer_removed, goes_with_product, takes_its_own
from domain.threescale.conditions import INVALID
from domain.threescale.deletion import Leaving, deprovision, leaving_of_one
from domain.threescale.digests import digest, digests_of
from domain.threescale.duplicate_owners import elder
from domain.threescale.idempotent_creations import OTHERS, created
from domain.threescale.observed import Blocker, ObservedOne, Phase, acts, finalizer_set, invalid, is_true, waiting
from domain.threescale.owner_references import owned
from domain.threescale.provider_account import known_at, same_tenant
from domain.threescale.remote_ids import combined
from domain.threescale.remote_object import One, differing
from domain.threescale.remote_state import FoundApplication, FoundPlan, answers_of
from domain.threescale.resources import Application, DeveloperAccount, Product
from domain.threescale.resources.shared import Digests
from domain.threescale.usable_referents import id_of_account

LIVE, SUSPENDED = "live", "suspended"


class ObservedApplication(ObservedOne):
    item: ClassVar[type[FoundApplication]] = FoundApplication
    wrapper: ClassVar[Resource] = Resource.APPLICATION
    learnt: ClassVar[tuple[str, ...]] = ("found", "listed", "plans")

    resource: Application
    account: DeveloperAccount | None = None
    product: Product | None = None
    # `holders` also has all other Applications of the account that have an id.
    secrets: tuple[SecretKey, ...] = ()  # the keys in its Secret that hold the application's credentials
    found: One[FoundApplication] = One()
    listed: tuple[FoundApplication, ...] = ()  # the account's applications, if they were listed
    plans: tuple[FoundPlan, ...] | None = None  # the product's plans; None if not read

    def decide(self, now: datetime) -> Decision:
        application = self.resource
        if leaves := deprovision(self, _leaving, now):
            return leaves
        if bereft(application.metadata, DEVELOPER_ACCOUNT, application.spec.account_cr.name, self.account):
            return self.deleted("its account does not exist any more")
        desired = _desired(application, self.account, self.product) if self.account and self.product else None
        if why := goes_with_product(application, self.product, desired):
            return self.deleted(why)
        return _decided(self, desired, now)

    def is_it(self, found: FoundApplication) -> bool:
        """Whether the application is the result of the recorded creation and belongs to no other object."""
        others = {each.id for each in self.holders}
        known = found.id == self.known_id and found.id not in others  # listed, although a read by id found nothing
        return known or is_application(found, created(self.resource.metadata), others)

    def read(self, read: Read, body: object) -> Self:
        listed = () if read.of else answers_of(read.resource.value, body)
        if read.resource is Resource.PLAN:
            return self.beside({"plans": tuple(FoundPlan.model_validate(each) for each in listed)})
        found = tuple(FoundApplication.model_validate(each) for each in listed)
        return super().read(read, body).beside({"listed": found})


def _decided(observed: ObservedApplication, desired: Digests | None, now: datetime) -> Decision:
    application, account, product = observed.resource, observed.account, observed.product
    owner = owned(application.metadata, account) if account else {}
    patch = combined(finalizer_set(application), owner)
    if patch:
        return acts(Phase.NEW, "set its finalizer, and its account as owner", *observed.patched(patch))
    if account is None or product is None or desired is None:
        return observed.blocked(_absent(observed), now)
    if (unknown := observed.without_account(now)) is not None:
        return unknown
    fields: dict[str, object] = {"provider_account_host": observed.provider.url}
    blocker = _blocker(application, account, product, observed.provider.url)
    if blocker is not None:
        return observed.blocked(blocker, now, fields)
    return _synced(observed, account, product, desired, fields, now)


def _desired(application: Application, account: DeveloperAccount, product: Product) -> Digests:
    ids = (account.status.account_id or 0, product.status.product_id or 0)
    return Digests(synced=digest(account.status.provider_account_host, ids, application.spec))


def _absent(observed: ObservedApplication) -> Blocker:
    spec, namespace = observed.resource.spec, observed.resource.metadata.namespace
    missing = []
    if observed.account is None:
        missing.append(("developeraccounts", "DeveloperAccount", spec.account_cr.name))
    if observed.product is None:
        missing.append(("products", "Product", spec.product_cr.name))
    return waiting(
        "; ".join(f'{plural}.capabilities.3scale.net "{name}" not found' for plural, _, name in missing),
        *tuple(f"{kind}/{namespace}/{name}" for _, kind, name in missing),
    )


def _blocker(application: Application, account: DeveloperAccount, product: Product, url: str) -> Blocker | None:
    namespace, plan = application.metadata.namespace, application.spec.application_plan_name
    of_account = f"DeveloperAccount/{namespace}/{account.metadata.name}"
    of_product = f"Product/{namespace}/{product.metadata.name}"
    account_host, host = account.status.provider_account_host, product.status.provider_account_host
    if is_true(account.status.conditions, INVALID):
        return invalid("account CR is in an invalid state", of_account)
    if is_true(product.status.conditions, INVALID):
        return invalid("product CR is in an invalid state", of_product)
    if not known_at(url, account_host, account.status.account_id) or account.metadata.deleting:
        return waiting("accountCR name doesnt have a valid account reference", of_account)
    if not product.status.product_id or product.metadata.deleting:
        return waiting("productCR name doesnt have a valid product reference", of_product)
    if not same_tenant(account_host, host):
        return invalid("product and account providerAccounts dont match", of_account, of_product)
    if plan not in product.spec.application_plans:
        return waiting(f"Product {product.metadata.name} has no plan {plan}", of_product)
    return None


def _synced(
    observed: ObservedApplication,
    account: DeveloperAccount,
    product: Product,
    desired: Digests,
    fields: dict[str, object],
    now: datetime,
) -> Decision:
    application = observed.resource
    known_id = _own_id(observed)
    found = _own(observed, known_id)
    forgets = observed.known_id != known_id
    settled = desired == digests_of(application) and application.status.application_id and not forgets
    if settled and not observed.look and found.untouched:
        return observed.fine(now, fields)
    account_id = account.status.account_id or 0
    key = natural_key(application, product)
    siblings = (each.id for each in observed.listed if not differing(key, each))
    listed = {each.id for each in observed.listed}
    claimed = (*siblings, *(each.id for each in observed.holders if each.id not in listed))
    whole = sync_application(application, product, account_id, found, observed.plans, known_id, claimed)
    lacking = _lacking(observed, product, whole)
    if lacking is not None:
        return observed.blocked(lacking, now, fields)
    if not whole.done or observed.plans is None:
        decision, refused = observed.attempted(whole, now, marked=False)
        if decision is not None:
            return decision
        if refused:
            return observed.as_refused(refused, now, {**fields, **_of(found)})
    if whole.missing:
        return observed.blocked(_without_plan(application, product), now, fields)
    fields = {**fields, **_of(found)}
    return observed.fine(now, fields, digests=desired)


def _own_id(observed: ObservedApplication) -> int:
    """The remembered id; 0 if there is none, or if an older object has recorded it, too."""
    known_id = observed.known_id
    rivals = [each.metadata for each in observed.holders if each.id == known_id]
    return 0 if elder(observed.resource.metadata, rivals) is not None else known_id


def _own(observed: ObservedApplication, known_id: int) -> One[FoundApplication]:
    found, ids = observed.found, {each.id for each in observed.holders}
    taken = found.item is not None and found.item.id != known_id and found.item.id in ids
    return One() if taken else found


def _of(found: One[FoundApplication]) -> dict[str, object]:
    return {"application_id": found.item.id, "state": found.item.state or None} if found.item else {}


def _without_plan(application: Application, product: Product) -> Blocker:
    return waiting(
        f"3scale does not have the plan {application.spec.application_plan_name} (yet)",
        f"Product/{application.metadata.namespace}/{product.metadata.name}",
    )


def _lacking(observed: ObservedApplication, product: Product, sync: Sync) -> Blocker | None:
    # After a deletion, the application is created again.
    makes = any(write.method in ("POST", "DELETE") for write in sync.writes)
    wanted = credentials(observed.resource, product).values() if makes else ()
    missing = [key for key in wanted if key not in observed.secrets]
    if not missing:
        return None
    first = missing[0]
    return waiting(
        f"Secret {first.name} with the key {', '.join(key.key for key in missing)} not found",
        f"Secret/{first.namespace}/{first.name}",
    )


def _leaving(observed: ObservedApplication) -> Leaving:
    """If the account is being deleted, too, 3scale deletes the application with it (`cascading_deletion.py`)."""
    application, account, provider = observed.resource, observed.account, observed.provider
    known_id = observed.known_id
    leaving = Leaving(holders=observed.holders)
    begun = bool(created(application.metadata))
    if account is None or finalizer_removed(account) or not (known_id or begun):
        return leaving
    account_id = id_of_account(account, provider.url)
    if not account_id and bereft(application.metadata, DEVELOPER_ACCOUNT, account.metadata.name, account):
        return leaving
    if takes_its_own(account) or not account_id:
        message = "deleted with its account" if account.metadata.deleting else "the id of its account is not known yet"
        blocker = waiting(message, f"DeveloperAccount/{account.metadata.namespace}/{account.metadata.name}")
        return leaving.model_copy(update={"blocker": blocker})
    path = f"accounts/{account_id}/applications"
    look = Read(resource=Resource.APPLICATION, path=path) if begun else None
    deletes = partial(deletion, Resource.APPLICATION, path, about=application.spec.name)
    return leaving_of_one(leaving, observed.found, known_id, look, deletes)


def is_application(found: FoundApplication, noted: Mapping[str, Json], claimed: Iterable[int] = ()) -> bool:
    """Whether the found application is the result of the creation that `noted` records. `claimed` contains the ids of
    applications that belong to other objects.
    """
    others = noted.get(OTHERS)
    before = others if isinstance(others, list) else []
    ours = bool(noted) and (found.name, found.service_id) == (noted.get("name"), noted.get("service_id"))
    return ours and found.id not in (*before, *claimed)


def natural_key(application: Application, product: Product) -> dict[str, Json]:
    return {"name": application.spec.name, "service_id": product.status.product_id}


def sync_application(
    application: Application,
    product: Product,
    account_id: int,
    found: One[FoundApplication],
    plans: tuple[FoundPlan, ...] | None,
    known_id: int = 0,
    claimed: Iterable[int] = (),
) -> Sync:
    """Find plan and application ─► create the application ─► change plan, state, names.

    An application of another product is deleted first. The response to a change of plan contains only the plan, so the
    application is read again.

    `claimed` has the ids of applications that existed before the creation or belong to other objects.
    """
    service_id, path = product.status.product_id or 0, f"accounts/{account_id}/applications"
    reads = []
    if plans is None:
        reads.append(Read(resource=Resource.PLAN, path=f"services/{service_id}/application_plans"))
    if not found.looked:
        reads.append(read_entry(Resource.APPLICATION, path, 0 if found.lost else known_id))
    if reads:
        return Sync(reads=tuple(reads))
    plan = next((each for each in plans or () if each.system_name == application.spec.application_plan_name), None)
    if plan is None:
        return Sync(missing=(application.spec.application_plan_name,))
    if found.item is None:
        made = _creation(application, product, plan, path)
        return Sync(writes=(made.model_copy(update={"others": tuple(claimed)}),))
    if found.item.service_id and found.item.service_id != service_id:
        about = f"{application.spec.name}, of another product"
        return Sync(writes=(deletion(Resource.APPLICATION, path, found.item.id, about),))
    return Sync(writes=tuple(_changes(application, found.item, plan, path)))


def _creation(application: Application, product: Product, plan: FoundPlan, path: str) -> Write:
    spec = application.spec
    fields = {"plan_id": plan.id, "name": spec.name, "description": spec.description}
    key, secrets = natural_key(application, product), credentials(application, product)
    return creation(Resource.APPLICATION, path, fields, key, spec.name, secrets=secrets)


def _changes(application: Application, found: FoundApplication, plan: FoundPlan, path: str) -> Iterable[Write]:
    spec = application.spec
    changing = partial(change, Resource.APPLICATION, path, found.id, about=spec.name)
    if found.plan_id != plan.id:
        yield changing({"plan_id": plan.id}, event="change_plan")
    if found.state == LIVE and spec.suspend:
        yield changing({}, event="suspend")
    if found.state == SUSPENDED and not spec.suspend:
        yield changing({}, event="resume")
    fields = differing({"name": spec.name, "description": spec.description}, found)
    if fields:
        yield changing(fields)
