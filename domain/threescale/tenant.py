"""The lifecycle of a Tenant: a tenant of a 3scale installation, created through its master.

    New ─► created, its token kept in a Secret ─► admin active ─► Ready ─new spec─► Ready
        token lost ─► waits for a person who puts one into the Secret
        any ─deletion─► scheduled for deletion, which 3scale carries out after fifteen days

The token of a tenant is in the answer to its creation and nowhere else. The pass therefore writes the Secret that
`secret_of` the answer gives before it does anything else, until that succeeds. After a crash in between the tenant is
found by its organisation's name and our mark, and its Secret lacks the token: the status says what a person can do, and
no second tenant is created. An address of another tenant in the Secret counts as a lost token.

An id belongs to one master. After a change of master the tenant with that id has neither the organisation's name nor
the address in the Secret, and is neither changed nor deleted. Clients take a Tenant for ready when its status has both
ids: they are written together, and until then the status has only conditions, which say why the Tenant waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from domain.resource import ObjectMeta
from domain.schema import JsonObject
from domain.threescale import TENANT
from domain.threescale.calls import Resource, SecretKey
from domain.threescale.conditions import Standing
from domain.threescale.defaults import of_tenant
from domain.threescale.digests import digest, digests_of
from domain.threescale.found import answer_of
from domain.threescale.holders import Holder
from domain.threescale.notes import identified, owned, remembered_id
from domain.threescale.providers import ADDRESS_KEY, TOKEN_KEY, NoAccount, ProviderAccount, SecretView, same_tenant
from domain.threescale.references import elder
from domain.threescale.resources import Tenant
from domain.threescale.resources.shared import Digests
from domain.threescale.tenant_sync import (
    LEAVING,
    FoundTenant,
    KnownTenant,
    admin_of,
    deletion_of_tenant,
    look_for_tenant,
    password_of_admin,
    sync_tenant,
    tenant_in,
)
from domain.threescale.work import (
    Blocker,
    Leaving,
    Observed,
    Phase,
    SecretWrite,
    Work,
    adopted,
    as_refused,
    attempted,
    blocked,
    deprovision,
    fine,
    into_secret,
)

MASTER_KEY = "MASTER_ACCESS_TOKEN"
# Of the Secret with a tenant's token, as the replaced operator labels it.
TOKEN_SECRET_LABELS: Mapping[str, str] = {"app": "3scale-operator"}


class ObservedTenant(Observed):
    """What one decision sees.

    Attributes:
        tenant: the object.
        master: the installation's master, by `master_of`.
        secret: the Secret for the token, if it is there.
        secrets: keys of other Secrets that are there.
        siblings: other Tenants of the same organisation of the same master, or with the same Secret for the token.
        holders: those of the same organisation that have a tenant of the master, with its id.
        found: what is known of 3scale.
    """

    tenant: Tenant
    master: ProviderAccount | NoAccount
    secret: SecretView | None = None
    secrets: tuple[SecretKey, ...] = ()
    siblings: tuple[ObjectMeta, ...] = ()
    holders: tuple[Holder, ...] = ()
    found: KnownTenant = KnownTenant()


def work_for_tenant(observed: ObservedTenant, now: datetime) -> Work:
    """What to do now for a Tenant that exists."""
    tenant, master = observed.tenant, observed.master
    if tenant.metadata.deleting:
        return deprovision(tenant, _leaving(observed), observed.refusals, now)
    patch = adopted(tenant.metadata, TENANT, of_tenant(tenant))
    if patch:
        return Work(phase=Phase.NEW, why="set its finalizer and defaults", patch=patch)
    if isinstance(master, NoAccount):
        waits = Blocker(standing=Standing.WAITING, message=master.why, waits_for=(master.waits_for,))
        return _blocked(tenant, waits, now)
    older = elder(tenant.metadata, observed.siblings)
    if older is not None:
        message = f"Tenant {older.namespace}/{older.name} has this organisation, or this Secret for its token, already"
        return _blocked(tenant, Blocker(standing=Standing.INVALID, message=message), now)
    return _synced(observed, master, now)


def master_of(tenant: Tenant, secret: SecretView | None) -> ProviderAccount | NoAccount:
    """The master of the installation; `secret` is the one that the Tenant names for its token, if it is there."""
    reference = tenant.spec.master_credentials_ref
    namespace = reference.namespace or tenant.metadata.namespace
    if secret is None or MASTER_KEY not in secret.keys:
        why = f"Secret {reference.name} is missing, or lacks the key {MASTER_KEY}"
        waits_for = f"Secret/{namespace}/{reference.name}"
        return NoAccount(why=why, waits_for=waits_for, incomplete=secret is not None)
    token = SecretKey(namespace=namespace, name=reference.name, key=MASTER_KEY)
    return ProviderAccount(url=tenant.spec.system_master_url, token=token, version=secret.version)


def secret_of(tenant: Tenant, answer: object) -> JsonObject:
    """The Secret for the answer to a creation; empty where that shows no token. It never leaves who made the call."""
    created = answer_of(Resource.TENANT.value, answer)
    token = str(answer_of("access_token", created).get("value") or "")
    if not token:
        return {}
    reference, own = tenant.spec.tenant_secret_ref, tenant.metadata.namespace
    metadata: JsonObject = {
        "name": reference.name,
        "namespace": reference.namespace,
        "labels": dict(TOKEN_SECRET_LABELS),
    }
    if reference.namespace == own:
        # What has an owner in another namespace is taken away by the garbage collector.
        metadata["ownerReferences"] = _owners(tenant)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": "Opaque",
        "stringData": {TOKEN_KEY: token, ADDRESS_KEY: tenant_in(answer).address},
    }


def _owners(tenant: Tenant) -> object:
    metadata = owned(ObjectMeta(), tenant)["metadata"]
    return metadata["ownerReferences"] if isinstance(metadata, Mapping) else []


def _synced(observed: ObservedTenant, master: ProviderAccount, now: datetime) -> Work:
    tenant, found, secret = observed.tenant, observed.found, observed.secret
    status, item = tenant.status, found.tenant.item
    known = bool(status.tenant_id and status.admin_id)
    wished = Digests(synced=digest(master.url, tenant.spec, secret.admin_url if secret else ""))
    kept = secret is not None and TOKEN_KEY in secret.keys
    untouched = found == KnownTenant()
    if known and untouched and not kept:
        return _blocked(tenant, _lost(tenant, status.tenant_id), now)
    if known and untouched and wished == digests_of(tenant) and not observed.look:
        return fine(tenant, now, {})
    known_id = remembered_id(tenant)
    noted = identified(tenant, item.id if item else 0)
    if noted:
        return Work(phase=Phase.SYNCING, why="record its id", patch=noted)
    blocker = _blocker(observed, item)
    if blocker is not None:
        return _blocked(tenant, blocker, now)
    work, blocking = attempted(sync_tenant(tenant, found, known_id), observed.refusals, now)
    if work is not None:
        return work
    admin = admin_of(tenant, found.users or ())
    fields: dict[str, object] = {}
    if item is not None and admin is not None:
        fields = {"tenant_id": item.id, "admin_id": admin.id}
    if blocking:
        return as_refused(tenant, blocking, now, fields)
    return _kept(observed, wished, fields, now)


def _kept(observed: ObservedTenant, wished: Digests, fields: dict[str, object], now: datetime) -> Work:
    """All is in 3scale: is what opens it in the Secret?"""
    tenant, secret, item = observed.tenant, observed.secret, observed.found.tenant.item
    assert item is not None  # noqa: S101 - nothing is left to do
    if secret is None or TOKEN_KEY not in secret.keys:
        return _blocked(tenant, _lost(tenant, item.id, item.address), now, fields)
    if not secret.admin_url:
        write = SecretWrite(values={ADDRESS_KEY: item.address})
        return into_secret(tenant, write, "record its address", observed.refusals, now, fields)
    if not same_tenant(secret.admin_url, item.address):
        return _blocked(tenant, _lost(tenant, item.id, item.address, secret.admin_url), now, fields)
    return fine(tenant, now, fields, digests=wished)


def _blocker(observed: ObservedTenant, item: FoundTenant | None) -> Blocker | None:
    """What stands in the way of the next call."""
    tenant = observed.tenant
    if item is not None and _is_strange(observed, item):
        return _strange(observed, item)
    if item is not None and item.state == LEAVING:
        message = f"3scale tenant {item.id} is scheduled for deletion: resume it in 3scale, or delete this Tenant"
        return Blocker(standing=Standing.FAILED, message=message)
    password = password_of_admin(tenant)
    if observed.found.tenant.looked and item is None and password not in observed.secrets:
        message = f"Secret {password.name} is missing, or lacks the key {password.key}"
        waits_for = (f"Secret/{password.namespace}/{password.name}",)
        return Blocker(standing=Standing.WAITING, message=message, waits_for=waits_for)
    return None


def _lost(tenant: Tenant, id_: int, address: str = "", other: str = "") -> Blocker:
    """There is a tenant, and no way in: a person has to open it."""
    reference = tenant.spec.tenant_secret_ref
    why = f"has the address {other}, which belongs to another tenant" if other else f"has no {TOKEN_KEY}"
    where = f" at {address}" if address else ""
    return Blocker(
        standing=Standing.WAITING,
        message=(
            f"3scale does not show the token of tenant {id_} again, and Secret {reference.name} {why}: "
            f"create an access token as its admin{where} and put it there under {TOKEN_KEY}"
            + (f", with {ADDRESS_KEY}" if other else "")
        ),
        waits_for=(f"Secret/{reference.namespace or tenant.metadata.namespace}/{reference.name}",),
    )


def _is_strange(observed: ObservedTenant, item: FoundTenant) -> bool:
    """Whether a tenant that has the remembered id can only be another one."""
    address = observed.secret.admin_url if observed.secret else ""
    named = item.org_name == observed.tenant.spec.organization_name
    return not named and bool(address) and not same_tenant(address, item.address)


def _strange(observed: ObservedTenant, item: FoundTenant) -> Blocker:
    """A person has to say which tenant is meant."""
    tenant = observed.tenant
    reference = tenant.spec.tenant_secret_ref
    where = f"{reference.namespace or tenant.metadata.namespace}/{reference.name}"
    return Blocker(
        standing=Standing.WAITING,
        message=(
            f"at {tenant.spec.system_master_url} tenant {item.id} is {item.org_name} at {item.address}, not "
            f"{tenant.spec.organization_name} at the address in Secret {where}: give this Tenant its own master again, "
            f"or put the address of tenant {item.id} into that Secret, or retain what it has in 3scale and delete it"
        ),
        waits_for=(f"Secret/{where}",),
    )


def _blocked(tenant: Tenant, blocker: Blocker, now: datetime, fields: dict[str, object] | None = None) -> Work:
    """It waits, and says so in its conditions; the ids appear in the status only once 3scale has given both."""
    return blocked(tenant, blocker, now, fields or {})


def _leaving(observed: ObservedTenant) -> Leaving:
    tenant, one = observed.tenant, observed.found.tenant
    leaving = Leaving(account=observed.master, outside=tenant.outside, holders=observed.holders)
    known_id = remembered_id(tenant)
    if one.lost or (not known_id and any(not each.deleting for each in observed.siblings)):
        return leaving
    if not one.looked:
        return leaving.model_copy(update={"look": look_for_tenant(known_id)})
    if one.item is not None and _is_strange(observed, one.item):
        return leaving.model_copy(update={"blocker": _strange(observed, one.item)})
    return leaving.model_copy(update={"write": deletion_of_tenant(one.item) if one.item else None})
