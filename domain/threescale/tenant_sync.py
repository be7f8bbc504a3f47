"""The calls for a tenant, through the master.

    find the tenant by id, or among the master's accounts ─► create it ─► read its users ─► change fields, first admin

Under `/master/api` the master creates, changes and deletes tenants; under `/admin/api` tenants are its accounts with
users. A deletion is only scheduled: the account stays for a while, but no longer counts as a tenant.
"""

from __future__ import annotations

from collections.abc import Iterable

from domain.model import Model
from domain.schema import Json
from domain.threescale.calls import Read, Resource, SecretKey, Write, change
from domain.threescale.developer_user import PENDING
from domain.threescale.product_sync import Sync
from domain.threescale.remote_object import One, differing
from domain.threescale.remote_state import MANAGED_BY, FoundUser, Identified, answer_of, answers_of, missing_mark
from domain.threescale.resources import Tenant
from domain.threescale.resources.developers import ADMIN

PASSWORD_KEY = "admin_password"  # noqa: S105 - its name
LEAVING = "scheduled_for_deletion"


class FoundTenant(Identified):
    org_name: str = ""
    state: str = ""
    admin_domain: str = ""
    admin_base_url: str = ""
    from_email: str = ""
    support_email: str = ""
    finance_support_email: str = ""
    site_access_code: str = ""
    annotations: dict[str, str] = {}

    @property
    def address(self) -> str:
        return self.admin_base_url or f"https://{self.admin_domain}"


class KnownTenant(Model):
    tenant: One[FoundTenant] = One()
    users: tuple[FoundUser, ...] | None = None


def tenant_in(answer: object) -> FoundTenant:
    """The tenant in `{"signup": {"account": {...}}}`, for creations, reads and changes. Raises ValidationError."""
    return FoundTenant.model_validate(answer_of("account", answer_of(Resource.TENANT.value, answer)))


def is_tenant(found: FoundTenant, tenant: Tenant) -> bool:
    ours = MANAGED_BY.items() <= found.annotations.items()
    return ours and found.org_name == tenant.spec.organization_name and found.state != LEAVING


def read_tenant(found: KnownTenant, read: Read, answer: object, tenant: Tenant) -> KnownTenant:
    """An answer of None means that the tenant does not exist. Of several matches the oldest counts."""
    if read.resource is Resource.USER:
        users = tuple(FoundUser.model_validate(each) for each in answers_of(read.resource.value, answer))
        return found.model_copy(update={"users": users})
    if read.of:
        item = None if answer is None else tenant_in(answer)
        return KnownTenant(tenant=One[FoundTenant](looked=item is not None, lost=item is None, item=item))
    listed = [FoundTenant.model_validate(each) for each in answers_of(read.resource.value, answer)]
    matching = sorted((each for each in listed if is_tenant(each, tenant)), key=lambda each: each.id)
    return KnownTenant(tenant=One[FoundTenant](looked=True, item=matching[0] if matching else None))


def wrote_tenant(found: KnownTenant, write: Write, answer: object) -> KnownTenant:
    """After a change of one user, all users are read again."""
    if write.resource is Resource.USER:
        return found.model_copy(update={"users": None})
    if write.method == "DELETE":
        return KnownTenant(tenant=One[FoundTenant](lost=True))
    item = tenant_in(answer)
    return found.model_copy(update={"tenant": One[FoundTenant](looked=True, item=item)})


def look_for_tenant(known_id: int) -> Read:
    if known_id:
        return Read(resource=Resource.TENANT, path=f"providers/{known_id}", of=known_id)
    return Read(resource=Resource.ACCOUNT, path="accounts", paged=True)


def sync_tenant(tenant: Tenant, found: KnownTenant, known_id: int) -> Sync:
    one = found.tenant
    if not one.looked:
        return Sync(reads=(look_for_tenant(0 if one.lost else known_id),))
    if one.item is None:
        return Sync(writes=(_creation(tenant),))
    if found.users is None:
        return Sync(reads=(Read(resource=Resource.USER, path=f"accounts/{one.item.id}/users"),))
    return Sync(writes=(*_changes(tenant, one.item), *_changes_of_admin(tenant, one.item, found.users)))


def admin_of(tenant: Tenant, users: Iterable[FoundUser]) -> FoundUser | None:
    spec, listed = tenant.spec, sorted(users, key=lambda each: each.id)
    known = (each for each in listed if each.id == tenant.status.admin_id)
    named = (each for each in listed if each.username == spec.username)
    addressed = (each for each in listed if each.email == spec.email)
    return next(known, None) or next(named, None) or next(addressed, None)


def password_of_admin(tenant: Tenant) -> SecretKey:
    reference = tenant.spec.password_credentials_ref
    return SecretKey(namespace=reference.namespace or tenant.metadata.namespace, name=reference.name, key=PASSWORD_KEY)


def deletion_of_tenant(found: FoundTenant) -> Write | None:
    if found.state == LEAVING:
        return None
    return Write(
        resource=Resource.TENANT,
        method="DELETE",
        path=f"providers/{found.id}",
        id=found.id,
        about=found.org_name,
    )


def _creation(tenant: Tenant) -> Write:
    spec = tenant.spec
    fields: dict[str, Json] = {
        "org_name": spec.organization_name,
        "username": spec.username,
        "email": spec.email,
        "annotations": {**MANAGED_BY},
    }
    return Write(
        resource=Resource.TENANT,
        method="POST",
        path="providers",
        fields=fields,
        secrets={"password": password_of_admin(tenant)},
        key={"org_name": spec.organization_name},
        about=spec.organization_name,
    )


def _changes(tenant: Tenant, found: FoundTenant) -> Iterable[Write]:
    spec = tenant.spec
    wanted: dict[str, Json] = {
        "from_email": spec.from_email,
        "support_email": spec.support_email,
        "finance_support_email": spec.finance_support_email,
        "site_access_code": spec.site_access_code,
    }
    fields = differing(wanted, found) | missing_mark(found.annotations)
    if fields:
        yield change(Resource.TENANT, "providers", found.id, fields, found.org_name)


def _changes_of_admin(tenant: Tenant, found: FoundTenant, users: Iterable[FoundUser]) -> Iterable[Write]:
    spec, path = tenant.spec, f"accounts/{found.id}/users"
    wanted: dict[str, Json] = {"username": spec.username, "email": spec.email}
    admin = admin_of(tenant, users)
    if admin is None:
        yield Write(
            resource=Resource.USER,
            method="POST",
            path=path,
            fields={**wanted, "role": ADMIN},
            secrets={"password": password_of_admin(tenant)},
            key={"username": spec.username},
            about=spec.username,
        )
        return
    own = f"{path}/{admin.id}"
    fields = differing(wanted, admin)
    if fields:
        yield _put(admin, own, fields)
    if admin.state == PENDING:
        yield _put(admin, f"{own}/activate")
    if admin.role and admin.role != ADMIN:
        yield _put(admin, f"{own}/{ADMIN}")


def _put(user: FoundUser, path: str, fields: dict[str, Json] | None = None) -> Write:
    return Write(resource=Resource.USER, method="PUT", path=path, id=user.id, fields=fields or {}, about=user.username)
