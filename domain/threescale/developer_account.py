"""The lifecycle of a DeveloperAccount, which 3scale creates only together with its first admin.

    New ─► Waiting ─a DeveloperUser with the role admin waits for it─► signup ─► Ready ─new spec, drift─► Ready
        any ─deletion─► the account is deleted with its users and applications

Account and admin therefore wait for each other: the user is an Orphan that clients count as created (`conditions.py`),
the account signs it up, and the user then finds itself in the account. A signup whose answer was lost is found by the
admin's name. The id is also kept in an annotation, from which a restored object knows its account.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from domain.schema import Json
from domain.threescale import DEVELOPER_ACCOUNT
from domain.threescale.calls import Read, Resource, SecretKey, Write
from domain.threescale.conditions import ORPHAN, Standing
from domain.threescale.developer_credentials import password_of, valid_address
from domain.threescale.digests import created, digest, digests_of
from domain.threescale.found import MANAGED_BY, FoundAccount
from domain.threescale.holders import Holder, holder_of
from domain.threescale.notes import remembered_id
from domain.threescale.product_sync import Sync
from domain.threescale.providers import NoAccount, ProviderAccount, known_at, same_tenant
from domain.threescale.references import seniority
from domain.threescale.remote_object import One, differing
from domain.threescale.resources import DeveloperAccount, DeveloperUser
from domain.threescale.resources.developers import ADMIN
from domain.threescale.resources.shared import Digests
from domain.threescale.wakes import users_of_account
from domain.threescale.work import (
    Blocker,
    Leaving,
    Observed,
    Phase,
    Work,
    adopted,
    blocked,
    compared,
    deprovision,
    fine,
    is_true,
    lets_go,
    without_account,
)

NO_ADMIN = "valid admin developer user CR not found"


class ObservedAccount(Observed):
    """What one decision sees.

    Attributes:
        account: the object.
        provider: its tenant.
        users: DeveloperUsers of its namespace.
        holders: others of its organisation's name and tenant that have an account there, with its id.
        secrets: keys of Secrets that are there.
        found: what is known of 3scale.
    """

    account: DeveloperAccount
    provider: ProviderAccount | NoAccount
    users: tuple[DeveloperUser, ...] = ()
    holders: tuple[Holder, ...] = ()
    secrets: tuple[SecretKey, ...] = ()
    found: One[FoundAccount] = One()


def work_for_account(observed: ObservedAccount, now: datetime) -> Work:
    """What to do now for a DeveloperAccount that exists."""
    account, provider = observed.account, observed.provider
    if account.metadata.deleting:
        return deprovision(account, _leaving(observed), observed.refusals, now)
    patch = adopted(account.metadata, DEVELOPER_ACCOUNT, {})
    if patch:
        return Work(phase=Phase.NEW, why="set its finalizer", patch=patch)
    if isinstance(provider, NoAccount):
        return without_account(account, provider, now)
    fields: dict[str, object] = {"provider_account_host": provider.url}
    wished = Digests(synced=digest(provider.url, account.spec))
    known_id = _known_id(observed)
    settled = wished == digests_of(account) and account.status.account_id
    if settled and not observed.look and not observed.found.looked:
        return fine(account, now, fields)
    admin = admin_of(account, observed.users, provider.url)
    if not known_id or observed.found.lost:
        blocker = _blocker(account, admin, observed.secrets)
        if blocker is not None and observed.found.item is None:
            return blocked(account, blocker, now, fields)
    if taken := _taken(observed, known_id):
        return blocked(account, taken, now, fields)
    return _synced(observed, wished, known_id, admin, fields, now)


def _taken(observed: ObservedAccount, known_id: int) -> Blocker | None:
    """What was found by the admin's name is another object's already."""
    found = observed.found.item
    other = holder_of(found.id, observed.holders) if found is not None and found.id != known_id else None
    if found is None or other is None:
        return None
    message = f"DeveloperAccount {other.namespace}/{other.name} has account {found.id} with this admin already"
    waits_for = (f"DeveloperAccount/{other.namespace}/{other.name}",)
    return Blocker(standing=Standing.INVALID, message=message, waits_for=waits_for)


def admin_of(account: DeveloperAccount, users: Iterable[DeveloperUser], url: str) -> DeveloperUser | None:
    """The oldest user that refers to the account, is admin, and waits for it."""
    waiting = [
        user
        for user in users
        if user.metadata.namespace == account.metadata.namespace
        and user.spec.developer_account_ref.name == account.metadata.name
        and user.spec.role == ADMIN
        and valid_address(user.spec.email)
        and not user.metadata.deleting
        and _waits_there(user, account, url)
    ]
    return min(waiting, key=lambda each: seniority(each.metadata), default=None)


def _waits_there(user: DeveloperUser, account: DeveloperAccount, url: str) -> bool:
    """Whether it is to be a user of the account's tenant and is none, or is one of an account that is gone in 3scale.

    One that moves to the tenant with its account names the same Secret.
    """
    host, known_id = user.status.provider_account_host, user.status.developer_user_id
    if host and same_tenant(host, url):
        return not known_id or is_true(user.status.conditions, ORPHAN)
    return _secret_of(user) == _secret_of(account) and bool(host or not known_id)


def _secret_of(resource: DeveloperUser | DeveloperAccount) -> str:
    reference = resource.spec.provider_account_ref
    return reference.name if reference else ""


def _known_id(observed: ObservedAccount) -> int:
    """What its tenant has told, as status or annotation say; 0 if it has none there."""
    account, provider = observed.account, observed.provider
    return known_at(provider.url, account.status.provider_account_host, remembered_id(account))


def is_account(found: FoundAccount, account: DeveloperAccount) -> bool:
    """Whether what was found by the admin's name is this account: it bears our mark, and its organisation's name.

    Of a signup whose answer was lost it bears the name that was noted with that.
    """
    names = (account.spec.org_name, created(account.metadata).get("org_name"))
    return MANAGED_BY.items() <= found.annotations.items() and found.org_name in names


def _blocker(account: DeveloperAccount, admin: DeveloperUser | None, secrets: tuple[SecretKey, ...]) -> Blocker | None:
    if admin is None:
        waits_for = (users_of_account(account.metadata.namespace, account.metadata.name),)
        return Blocker(standing=Standing.WAITING, message=NO_ADMIN, waits_for=waits_for)
    password = password_of(admin)
    if password not in secrets:
        whose = f"with the password of {admin.metadata.name}"
        message = f"Secret {password.name} {whose} is missing, or lacks the key {password.key}"
        waits_for = (f"Secret/{password.namespace}/{password.name}",)
        return Blocker(standing=Standing.WAITING, message=message, waits_for=waits_for)
    return None


def _synced(
    observed: ObservedAccount,
    wished: Digests,
    known_id: int,
    admin: DeveloperUser | None,
    fields: dict[str, object],
    now: datetime,
) -> Work:
    account, found = observed.account, observed.found
    whole = sync_account(account, admin, found, known_id)
    if found.item is not None:
        there = found.item
        fields = {
            **fields,
            "account_id": there.id,
            "account_state": there.state or None,
            "credit_card_stored": there.credit_card_stored,
        }
    return compared(account, whole, observed.refusals, now, fields, wished)


def sync_account(
    account: DeveloperAccount, admin: DeveloperUser | None, found: One[FoundAccount], known_id: int
) -> Sync:
    """What to read or write now for an account; `admin` is there where it may have to be signed up."""
    spec = account.spec
    wanted: dict[str, Json] = {
        "org_name": spec.org_name,
        "monthly_billing_enabled": spec.monthly_billing_enabled is not False,
        "monthly_charging_enabled": spec.monthly_charging_enabled is not False,
    }
    if not found.looked:
        if known_id and not found.lost:
            return Sync(reads=(Read(resource=Resource.ACCOUNT, path=f"accounts/{known_id}", of=known_id),))
        assert admin is not None  # noqa: S101 - without one it waits
        return Sync(reads=(_look(admin.spec.username),))
    if found.item is None:
        return Sync(writes=(_signup(wanted, admin),) if admin else ())
    fields = differing(wanted, found.item)
    if not MANAGED_BY.items() <= found.item.annotations.items():
        fields["annotations"] = {**found.item.annotations, **MANAGED_BY}
    if not fields:
        return Sync()
    id_ = found.item.id
    write = Write(
        resource=Resource.ACCOUNT, method="PUT", path=f"accounts/{id_}", id=id_, fields=fields, about=spec.org_name
    )
    return Sync(writes=(write,))


def _look(username: str) -> Read:
    """By its admin's name."""
    return Read(resource=Resource.ACCOUNT, path="accounts/find", query={"username": username})


def _signup(wanted: dict[str, Json], admin: DeveloperUser) -> Write:
    fields: dict[str, Json] = {
        **wanted,
        "username": admin.spec.username,
        "email": admin.spec.email,
        "annotations": {**MANAGED_BY},
    }
    return Write(
        resource=Resource.ACCOUNT,
        method="POST",
        path="signup",
        fields=fields,
        secrets={"password": password_of(admin)},
        key={"username": admin.spec.username, "org_name": wanted["org_name"]},
        about=str(wanted["org_name"]),
    )


def _leaving(observed: ObservedAccount) -> Leaving:
    account, known_id = observed.account, _known_id(observed)
    leaving = Leaving(account=observed.provider, outside=account.outside, holders=observed.holders)
    username = str(created(account.metadata).get("username") or "")
    look = _look(username) if username else None
    return lets_go(leaving, observed.found, known_id, look, lambda id_: _deletion(id_, account.spec.org_name))


def _deletion(id_: int, name: str) -> Write:
    return Write(resource=Resource.ACCOUNT, method="DELETE", path=f"accounts/{id_}", id=id_, about=name)
