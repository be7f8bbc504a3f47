"""The calls for an application.

    find plan and application ─► create it, or delete it if it is of another product ─► change plan, state, names

The response to a change of plan contains only the plan, so the application is read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from domain.schema import Json
from domain.threescale.calls import Read, Resource, SecretKey, Write
from domain.threescale.digests import OTHERS
from domain.threescale.gateway_configuration import backend_version
from domain.threescale.product_sync import Sync
from domain.threescale.provider_account import known_at
from domain.threescale.remote_ids import remembered_id
from domain.threescale.remote_object import One, differing
from domain.threescale.remote_state import FoundApplication, FoundPlan
from domain.threescale.resources import Application, Product

LIVE, SUSPENDED = "live", "suspended"

# 3scale's parameters and the Secret's keys, by the product's authentication.
CREDENTIALS = {
    "1": {"user_key": "UserKey"},
    "2": {"application_id": "ApplicationID", "application_key": "ApplicationKey"},
    "oidc": {"application_id": "ClientID", "application_key": "ClientSecret"},
}


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


def known_id_of(application: Application, url: str) -> int:
    return known_at(url, application.status.provider_account_host if url else None, remembered_id(application))


def sync_application(
    application: Application,
    product: Product,
    account_id: int,
    found: One[FoundApplication],
    plans: tuple[FoundPlan, ...] | None,
    claimed: Iterable[int] = (),
    *,
    forgets: bool = False,
) -> Sync:
    """`claimed` contains the ids of applications that cannot be the result of a creation, because they existed before
    or belong to other objects. `forgets` is True if the remembered id belongs to another object.
    """
    known_id = 0 if forgets else known_id_of(application, product.status.provider_account_host or "")
    service_id, path = product.status.product_id or 0, f"accounts/{account_id}/applications"
    reads = []
    if plans is None:
        reads.append(Read(resource=Resource.PLAN, path=f"services/{service_id}/application_plans"))
    if not found.looked:
        by_id = known_id if not found.lost else 0
        where = f"{path}/{by_id}" if by_id else path
        reads.append(Read(resource=Resource.APPLICATION, path=where, of=by_id))
    if reads:
        return Sync(reads=tuple(reads))
    plan = next((each for each in plans or () if each.system_name == application.spec.application_plan_name), None)
    if plan is None:
        return Sync(missing=(application.spec.application_plan_name,))
    if found.item is None:
        creation = _creation(application, product, plan, path)
        return Sync(writes=(creation.model_copy(update={"others": tuple(claimed)}),))
    own = f"{path}/{found.item.id}"
    if found.item.service_id and found.item.service_id != service_id:
        about = f"{application.spec.name}, of another product"
        return Sync(
            writes=(Write(resource=Resource.APPLICATION, method="DELETE", path=own, id=found.item.id, about=about),)
        )
    return Sync(writes=tuple(_changes(application, found.item, plan, own)))


def credentials(application: Application, product: Product) -> dict[str, SecretKey]:
    reference = application.spec.auth_secret_ref
    if reference is None or not reference.name:
        return {}
    keys = CREDENTIALS[backend_version(product.spec.deployment) or "1"]
    namespace = application.metadata.namespace
    return {name: SecretKey(namespace=namespace, name=reference.name, key=key) for name, key in keys.items()}


def _creation(application: Application, product: Product, plan: FoundPlan, path: str) -> Write:
    spec = application.spec
    return Write(
        resource=Resource.APPLICATION,
        method="POST",
        path=path,
        fields={"plan_id": plan.id, "name": spec.name, "description": spec.description},
        secrets=credentials(application, product),
        key=natural_key(application, product),
        about=spec.name,
    )


def _changes(application: Application, found: FoundApplication, plan: FoundPlan, path: str) -> Iterable[Write]:
    spec = application.spec
    if found.plan_id != plan.id:
        yield _put(application, found, f"{path}/change_plan", {"plan_id": plan.id})
    if found.state == LIVE and spec.suspend:
        yield _put(application, found, f"{path}/suspend")
    if found.state == SUSPENDED and not spec.suspend:
        yield _put(application, found, f"{path}/resume")
    fields = differing({"name": spec.name, "description": spec.description}, found)
    if fields:
        yield _put(application, found, path, fields)


def _put(application: Application, found: FoundApplication, path: str, fields: dict[str, Json] | None = None) -> Write:
    about = application.spec.name
    return Write(resource=Resource.APPLICATION, method="PUT", path=path, id=found.id, fields=fields or {}, about=about)
