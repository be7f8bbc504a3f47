"""The lifecycle of a Tenant: a tenant of a 3scale installation, created through its master.

    New ─► created, its token stored in a Secret ─► admin active ─► Ready ─new spec─► Ready
        token lost ─► waits until a person puts a new token into the Secret
        any ─deletion─► scheduled for deletion, which 3scale carries out after fifteen days

Only the response to the creation contains the token, so the pass first writes the token to the Secret. If the process
crashes before that, the tenant is found by its organisation's name and our mark, and a person must add a token. Another
tenant's address in the Secret counts as a lost token. After a change of master, a tenant with the recorded id but
another organisation and address is neither changed nor deleted: the Tenant waits. Clients treat a Tenant with
`tenantId` and `adminId` as ready, so both are written together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Self

from domain.decision import Decision
from domain.model import Model
from domain.resource import ObjectMeta
from domain.schema import Json, JsonObject
from domain.threescale import TENANT
from domain.threescale.actions import WriteSecret
from domain.threescale.calls import Read, Resource, SecretKey, Sync, Write, change, creation, deletion, read_entry
from domain.threescale.conditions import FAILED
from domain.threescale.deletion import Leaving, deprovision
from domain.threescale.developer_user import PENDING
from domain.threescale.digests import digest, digests_of
from domain.threescale.duplicate_owners import elder
from domain.threescale.managed_by import MANAGED_BY, is_marked, missing_mark
from domain.threescale.observed import Blocker, Observed, Phase, acts, failed, invalid, waiting
from domain.threescale.owner_references import is_of, owned
from domain.threescale.provider_account import (
    ADDRESS_KEY,
    TOKEN_KEY,
    NoAccount,
    ProviderAccount,
    SecretView,
    same_tenant,
)
from domain.threescale.remote_ids import combined, identified
from domain.threescale.remote_object import One, differing
from domain.threescale.remote_state import LEAVING, FoundUser, Identified, answer_of, answers_of
from domain.threescale.resources import Tenant
from domain.threescale.resources.developers import ADMIN
from domain.threescale.resources.shared import Digests
from domain.threescale.spec_defaults import of_tenant
from domain.writes import JsonPatch

MASTER_KEY = "MASTER_ACCESS_TOKEN"
TOKEN_SECRET_LABELS: Mapping[str, str] = {"app": "3scale-operator"}
PASSWORD_KEY = "admin_password"  # noqa: S105 - a name, no secret


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


class ObservedTenant(Observed):
    """`provider` is the installation's master, from `master_of`."""

    resource: Tenant
    secret: SecretView | None = None  # the token's Secret, if it exists
    secrets: tuple[SecretKey, ...] = ()  # the key of the first admin's password, if it exists
    # `siblings` also has Tenants with the same token Secret.
    found: KnownTenant = KnownTenant()

    @property
    def found_id(self) -> int:
        return self.found.tenant.item.id if self.found.tenant.item else 0

    def decide(self, now: datetime) -> Decision:
        return deprovision(self, _leaving, now) or self.begins(now, of_tenant(self.resource)) or _decided(self, now)

    def read(self, read: Read, body: object) -> Self:
        return self.beside({"found": read_tenant(self.found, read, body, self.resource)})

    def wrote(self, write: Write, body: object) -> Self:
        return self.beside({"found": wrote_tenant(self.found, write, body)})


def _decided(observed: ObservedTenant, now: datetime) -> Decision:
    older = elder(observed.resource.metadata, observed.siblings)
    if older is not None:
        message = f"Tenant {older.namespace}/{older.name} already has this organisation or this token Secret"
        return observed.blocked(invalid(message), now)
    return observed.taken(now) or _synced(observed, now)


def master_of(tenant: Tenant, secret: SecretView | None) -> ProviderAccount | NoAccount:
    reference = tenant.spec.master_credentials_ref
    namespace = reference.namespace or tenant.metadata.namespace
    if secret is None or MASTER_KEY not in secret.keys:
        why = f"Secret {reference.name} is missing, or lacks the key {MASTER_KEY}"
        waits_for = f"Secret/{namespace}/{reference.name}"
        return NoAccount(why=why, waits_for=waits_for, incomplete=secret is not None)
    token = SecretKey(namespace=namespace, name=reference.name, key=MASTER_KEY)
    return ProviderAccount(url=tenant.spec.system_master_url, token=token, version=secret.version)


def token_place(tenant: Tenant) -> tuple[str, str]:
    """Namespace and name of the Secret with the token."""
    reference = tenant.spec.tenant_secret_ref
    return reference.namespace or tenant.metadata.namespace, reference.name


def foreign_token(tenant: Tenant, labels: Mapping[str, str]) -> str:
    """Why an existing Secret with a token is not overwritten; empty if a Tenant has written it."""
    if TOKEN_SECRET_LABELS.items() <= labels.items():
        return ""
    return (
        f"Secret {'/'.join(token_place(tenant))} has a token that no Tenant has written: it is not "
        "overwritten. Name another Secret in spec.tenantSecretRef, or delete this one."
    )


def secret_of(tenant: Tenant, answer: object, before: ObjectMeta | None = None) -> JsonObject:
    """The Secret with the token from a creation's response; empty if the response has no token. The caller
    itself writes the Secret, so that no history contains the token. `before` is the metadata of the existing Secret.
    """
    created = answer_of(Resource.TENANT.value, answer)
    token = str(answer_of("access_token", created).get("value") or "")
    return secret_with(tenant, {TOKEN_KEY: token, ADDRESS_KEY: tenant_in(answer).address}, before) if token else {}


def secret_with(tenant: Tenant, values: Mapping[str, str], before: ObjectMeta | None = None) -> JsonObject:
    reference, own = tenant.spec.tenant_secret_ref, tenant.metadata.namespace
    names: JsonObject = {"name": reference.name, "namespace": reference.namespace}
    patch: JsonPatch = {"metadata": {**names, "labels": dict(TOKEN_SECRET_LABELS)}}
    # A Secret that a person made stays when the Tenant goes.
    was_owned = before is None or any(is_of(TENANT, each) for each in before.owner_references)
    if reference.namespace == own and was_owned:
        # The garbage collector deletes objects whose owner is in another namespace.
        patch = combined(patch, owned(before or ObjectMeta(), tenant))
    return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", **patch, "stringData": dict(values)}


def _synced(observed: ObservedTenant, now: datetime) -> Decision:
    tenant, found, secret = observed.resource, observed.found, observed.secret
    status, item = tenant.status, found.tenant.item
    known = bool(status.tenant_id and status.admin_id)
    desired = Digests(synced=digest(observed.provider.url, tenant.spec, secret.admin_url if secret else ""))
    has_token = secret is not None and TOKEN_KEY in secret.keys
    untouched = found == KnownTenant()
    if known and untouched and not has_token:
        return observed.blocked(_lost(tenant, status.tenant_id), now)
    if known and untouched and desired == digests_of(tenant) and not observed.look:
        return observed.fine(now, {})
    known_id = observed.known_id
    noted = identified(tenant, item.id if item else 0)
    if noted:
        return acts(Phase.SYNCING, "record its id", *observed.patched(noted))
    whole = sync_tenant(tenant, found, known_id)
    blocker = _blocker(observed, item, whole)
    if blocker is not None:
        return observed.blocked(blocker, now, until=observed.observe_again_at(FAILED, now))
    decision, refused = observed.attempted(whole, now)
    if decision is not None:
        return decision
    admin = admin_of(tenant, found.users or ())
    fields: dict[str, object] = {}
    if item is not None and admin is not None:
        fields = {"tenant_id": item.id, "admin_id": admin.id}
    if refused:
        return observed.as_refused(refused, now, fields)
    return _existing(observed, desired, fields, now)


def _existing(observed: ObservedTenant, desired: Digests, fields: dict[str, object], now: datetime) -> Decision:
    tenant, secret, item = observed.resource, observed.secret, observed.found.tenant.item
    assert item is not None  # noqa: S101 - nothing is left to do
    if secret is None or TOKEN_KEY not in secret.keys:
        return observed.blocked(_lost(tenant, item.id, item.address), now, fields)
    if not secret.admin_url:
        write = WriteSecret(values={ADDRESS_KEY: item.address})
        return observed.writes_cluster((write,), "record its address", now, fields)
    if not same_tenant(secret.admin_url, item.address):
        return observed.blocked(_lost(tenant, item.id, item.address, secret.admin_url), now, fields)
    return observed.fine(now, fields, digests=desired)


def _blocker(observed: ObservedTenant, item: FoundTenant | None, sync: Sync) -> Blocker | None:
    tenant = observed.resource
    if item is not None and _is_strange(observed, item):
        return _strange(observed, item)
    if item is not None and item.state == LEAVING:
        return failed(f"3scale tenant {item.id} is scheduled for deletion: resume it in 3scale, or delete this Tenant")
    password = password_of_admin(tenant)
    if any(each.secrets for each in sync.writes) and password not in observed.secrets:
        message = f"Secret {password.name} is missing, or lacks the key {password.key}"
        return waiting(message, f"Secret/{password.namespace}/{password.name}")
    return None


def _lost(tenant: Tenant, id_: int, address: str = "", other: str = "") -> Blocker:
    namespace, name = token_place(tenant)
    why = f"has the address {other}, which belongs to another tenant" if other else f"has no {TOKEN_KEY}"
    where = f" at {address}" if address else ""
    return waiting(
        f"Secret {name} {why}, and 3scale does not show the token of tenant {id_} again. "
        f"Create an access token as the tenant's admin{where}, and put the token into that Secret under {TOKEN_KEY}"
        + (f". Put the tenant's address into the Secret under {ADDRESS_KEY}" if other else ""),
        f"Secret/{namespace}/{name}",
    )


def _is_strange(observed: ObservedTenant, item: FoundTenant) -> bool:
    address = observed.secret.admin_url if observed.secret else ""
    named = item.org_name == observed.resource.spec.organization_name
    return not named and not same_tenant(address, item.address)


def _strange(observed: ObservedTenant, item: FoundTenant) -> Blocker:
    tenant = observed.resource
    where = "/".join(token_place(tenant))
    return waiting(
        f"tenant {item.id} of {tenant.spec.system_master_url} is {item.org_name} at {item.address}, not "
        f"{tenant.spec.organization_name} at the address in Secret {where}. Either correct spec.systemMasterUrl or "
        f"spec.organizationName; or put the address of tenant {item.id} into that Secret; or set perdure.dev/retain "
        "and delete this Tenant",
        f"Secret/{where}",
    )


def _leaving(observed: ObservedTenant) -> Leaving:
    one, known_id = observed.found.tenant, observed.known_id
    leaving = Leaving(holders=observed.holders)
    if one.lost or (not known_id and any(not each.deleting for each in observed.siblings)):
        return leaving
    if not one.looked:
        return leaving.model_copy(update={"look": look_for_tenant(known_id)})
    if one.item is not None and _is_strange(observed, one.item):
        return leaving.model_copy(update={"blocker": _strange(observed, one.item)})
    return leaving.model_copy(update={"write": deletion_of_tenant(one.item) if one.item else None})


def tenant_in(answer: object) -> FoundTenant:
    """The tenant in `{"signup": {"account": {...}}}`, for creations, reads and changes. Raises ValidationError."""
    return FoundTenant.model_validate(answer_of("account", answer_of(Resource.TENANT.value, answer)))


def is_tenant(found: FoundTenant, tenant: Tenant) -> bool:
    ours = is_marked(found.annotations)
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
    if write.resource is Resource.USER:  # after a change of one user, all users are read again
        return found.model_copy(update={"users": None})
    if write.method == "DELETE":
        return KnownTenant(tenant=One[FoundTenant](lost=True))
    item = tenant_in(answer)
    return found.model_copy(update={"tenant": One[FoundTenant](looked=True, item=item)})


def look_for_tenant(known_id: int) -> Read:
    if known_id:
        return read_entry(Resource.TENANT, "providers", known_id)
    return Read(resource=Resource.ACCOUNT, path="accounts", paged=True)


def sync_tenant(tenant: Tenant, found: KnownTenant, known_id: int) -> Sync:
    """Find the tenant by id or in a list ─► create it ─► read its users ─► change the tenant and its first admin.

    Tenants are created, changed and deleted under `/master/api`. Under `/admin/api` they are the master's accounts,
    which have users.
    """
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
    return deletion(Resource.TENANT, "providers", found.id, found.org_name)


def _creation(tenant: Tenant) -> Write:
    spec = tenant.spec
    key = {"org_name": spec.organization_name}
    fields = {**key, "username": spec.username, "email": spec.email, "annotations": {**MANAGED_BY}}
    secrets = {"password": password_of_admin(tenant)}
    return creation(Resource.TENANT, "providers", fields, key, spec.organization_name, secrets=secrets)


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
        fields = {**wanted, "role": ADMIN}
        secrets = {"password": password_of_admin(tenant)}
        yield creation(Resource.USER, path, fields, {"username": spec.username}, spec.username, secrets=secrets)
        return
    fields = differing(wanted, admin)
    if fields:
        yield change(Resource.USER, path, admin.id, fields, admin.username)
    if admin.state == PENDING:
        yield change(Resource.USER, path, admin.id, {}, admin.username, event="activate")
    if admin.role and admin.role != ADMIN:
        yield change(Resource.USER, path, admin.id, {}, admin.username, event=ADMIN)
