"""The lifecycle of a DeveloperAccount, which 3scale creates only together with its first admin.

    New ─► Waiting ─a DeveloperUser with the role admin waits for it─► signup ─► Ready ─new spec, drift─► Ready
        any ─deletion─► the account is deleted with its users and applications

The signup creates account and user together; then the lifecycle of the DeveloperUser finds the user. After a lost
response the account is found by its admin's name.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import ClassVar

from domain.decision import Decision
from domain.schema import Json
from domain.threescale.calls import Read, Resource, SecretKey, Sync, Write, change, creation, deletion, read_entry
from domain.threescale.conditions import ORPHAN
from domain.threescale.deletion import Leaving, deprovision, leaving_of_one
from domain.threescale.developer_user import password_of
from domain.threescale.digests import digest, digests_of
from domain.threescale.duplicate_owners import seniority
from domain.threescale.idempotent_creations import created
from domain.threescale.managed_by import MANAGED_BY, is_marked, missing_mark
from domain.threescale.observed import Blocker, ObservedOne, is_true, waiting
from domain.threescale.provider_account import same_tenant
from domain.threescale.reference_names import users_of_account
from domain.threescale.remote_object import One, differing
from domain.threescale.remote_state import FoundAccount
from domain.threescale.resources import DeveloperAccount, DeveloperUser
from domain.threescale.resources.developers import ADMIN
from domain.threescale.resources.shared import Digests
from domain.threescale.spec_validation import fault_of_address

NO_ADMIN = "valid admin developer user CR not found"


class ObservedAccount(ObservedOne):
    """`secrets` has the key of the admin's password; empty if that Secret or key does not exist."""

    item: ClassVar[type[FoundAccount]] = FoundAccount
    wrapper: ClassVar[Resource] = Resource.ACCOUNT

    resource: DeveloperAccount
    users: tuple[DeveloperUser, ...] = ()
    secrets: tuple[SecretKey, ...] = ()
    found: One[FoundAccount] = One()

    def decide(self, now: datetime) -> Decision:
        return deprovision(self, _leaving, now) or self.begins(now) or _decided(self, now)

    def is_it(self, found: FoundAccount) -> bool:
        return is_account(found, self.resource)


def _decided(observed: ObservedAccount, now: datetime) -> Decision:
    account, provider = observed.resource, observed.provider
    fields: dict[str, object] = {"provider_account_host": provider.url}
    desired = Digests(synced=digest(provider.url, account.spec))
    known_id = observed.known_id
    settled = desired == digests_of(account) and account.status.account_id
    if settled and not observed.look and not observed.found.looked:
        return observed.fine(now, fields)
    admin = admin_of(account, observed.users, provider.url)
    if not known_id or observed.found.lost:
        blocker = _blocker(account, admin, observed.secrets)
        if blocker is not None and observed.found.item is None:
            return observed.blocked(blocker, now, fields)
    return observed.taken(now, fields) or _synced(observed, desired, known_id, admin, fields, now)


def admin_of(account: DeveloperAccount, users: Iterable[DeveloperUser], url: str) -> DeveloperUser | None:
    """The oldest DeveloperUser with the role admin that waits for the account; None if no such user waits."""
    waiting = [
        user
        for user in users
        if user.metadata.namespace == account.metadata.namespace
        and user.spec.developer_account_ref.name == account.metadata.name
        and user.spec.role == ADMIN
        and not fault_of_address(user.spec.email)
        and not user.metadata.deleting
        and _waits_there(user, account, url)
    ]
    return min(waiting, key=lambda each: seniority(each.metadata), default=None)


def _waits_there(user: DeveloperUser, account: DeveloperAccount, url: str) -> bool:
    """Whether the user waits for the account: the user has no id in the account's tenant, or is an Orphan.

    A user whose status names no tenant, or another tenant, waits only if it references the account's tenant Secret.
    """
    host, known_id = user.status.provider_account_host, user.status.developer_user_id
    if host and same_tenant(host, url):
        return not known_id or is_true(user.status.conditions, ORPHAN)
    return user.spec.tenant_secret == account.spec.tenant_secret and bool(host or not known_id)


def is_account(found: FoundAccount, account: DeveloperAccount) -> bool:
    """Whether the found account has our mark, and the organisation name of the spec or of the recorded creation."""
    names = (account.spec.org_name, created(account.metadata).get("org_name"))
    return is_marked(found.annotations) and found.org_name in names


def _blocker(account: DeveloperAccount, admin: DeveloperUser | None, secrets: tuple[SecretKey, ...]) -> Blocker | None:
    if admin is None:
        return waiting(NO_ADMIN, users_of_account(account.metadata.namespace, account.metadata.name))
    password = password_of(admin)
    if password not in secrets:
        whose = f"with the password of {admin.metadata.name}"
        message = f"Secret {password.name} {whose} is missing, or lacks the key {password.key}"
        return waiting(message, f"Secret/{password.namespace}/{password.name}")
    return None


def _synced(
    observed: ObservedAccount,
    desired: Digests,
    known_id: int,
    admin: DeveloperUser | None,
    fields: dict[str, object],
    now: datetime,
) -> Decision:
    account, found = observed.resource, observed.found
    whole = sync_account(account, admin, found, known_id)
    if found.item is not None:
        there = found.item
        fields = {
            **fields,
            "account_id": there.id,
            "account_state": there.state or None,
            "credit_card_stored": there.credit_card_stored,
        }
    return observed.compared(whole, now, fields, desired)


def sync_account(
    account: DeveloperAccount, admin: DeveloperUser | None, found: One[FoundAccount], known_id: int
) -> Sync:
    spec = account.spec
    wanted: dict[str, Json] = {
        "org_name": spec.org_name,
        "monthly_billing_enabled": spec.monthly_billing_enabled is not False,
        "monthly_charging_enabled": spec.monthly_charging_enabled is not False,
    }
    if not found.looked:
        if known_id and not found.lost:
            return Sync(reads=(read_entry(Resource.ACCOUNT, "accounts", known_id),))
        assert admin is not None  # noqa: S101 - without an admin, the account waits
        return Sync(reads=(_look(admin.spec.username),))
    if found.item is None:
        return Sync(writes=(_signup(wanted, admin),) if admin else ())
    fields = differing(wanted, found.item) | missing_mark(found.item.annotations)
    if not fields:
        return Sync()
    return Sync(writes=(change(Resource.ACCOUNT, "accounts", found.item.id, fields, spec.org_name),))


def _look(username: str) -> Read:
    return Read(resource=Resource.ACCOUNT, path="accounts/find", query={"username": username})


def _signup(wanted: dict[str, Json], admin: DeveloperUser) -> Write:
    login = {"username": admin.spec.username, "email": admin.spec.email}
    fields = {**wanted, **login, "annotations": {**MANAGED_BY}}
    key = {"username": admin.spec.username, "org_name": wanted["org_name"]}
    secrets = {"password": password_of(admin)}
    return creation(Resource.ACCOUNT, "signup", fields, key, str(wanted["org_name"]), secrets=secrets)


def _leaving(observed: ObservedAccount) -> Leaving:
    account, known_id = observed.resource, observed.known_id
    leaving = Leaving(holders=observed.holders)
    username = str(created(account.metadata).get("username") or "")
    look = _look(username) if username else None
    deletes = partial(deletion, Resource.ACCOUNT, "accounts", about=account.spec.org_name)
    return leaving_of_one(leaving, observed.found, known_id, look, deletes)
