"""The lifecycle of a DeveloperUser.

    New ─► Orphan: its account is not ready ─► found in the account, or created ─► activated ─► Ready ─new spec─► Ready
        any ─deletion─► deleted; the last admin is deleted only with its account
        its account is gone ─► deleted too

The account's signup creates the first admin (`developer_account.py`), which is found by name and email. A user that
moves to another account is first deleted in the old account. The password is set only at the creation.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import ClassVar, Self

from domain.decision import Decision
from domain.threescale import DEVELOPER_ACCOUNT
from domain.threescale.calls import Read, Resource, SecretKey, Sync, Write, change, creation, deletion, read_entry
from domain.threescale.cascading_deletion import bereft, finalizer_removed, takes_its_own
from domain.threescale.conditions import FAILED, INVALID
from domain.threescale.deletion import Leaving, deprovision, leaving_of_one
from domain.threescale.digests import digest, digests_of
from domain.threescale.idempotent_creations import created, parent_of_creation
from domain.threescale.observed import Blocker, ObservedOne, Phase, acts, failed, invalid, is_true, waiting
from domain.threescale.owner_references import owned
from domain.threescale.provider_account import same_tenant
from domain.threescale.remote_object import One, differing
from domain.threescale.remote_state import FoundUser
from domain.threescale.resources import DeveloperAccount, DeveloperUser
from domain.threescale.resources.developers import MEMBER
from domain.threescale.resources.shared import Digests
from domain.threescale.spec_validation import fault_of_address
from domain.threescale.usable_referents import account_usable, id_of_account

PENDING, ACTIVE, SUSPENDED = "pending", "active", "suspended"

PASSWORD_KEY = "password"  # noqa: S105 - a name, no secret


class ObservedUser(ObservedOne):
    """`secrets` has the reference to the user's password; empty if the Secret or its key does not exist."""

    item: ClassVar[type[FoundUser]] = FoundUser
    wrapper: ClassVar[Resource] = Resource.USER

    resource: DeveloperUser
    account: DeveloperAccount | None = None
    # The account whose id the status or the recorded creation has, even if the spec names another account.
    former: DeveloperAccount | None = None
    secrets: tuple[SecretKey, ...] = ()
    found: One[FoundUser] = One()

    def decide(self, now: datetime) -> Decision:
        if not self.resource.metadata.deleting and self.is_bereft:
            return self.deleted("its account does not exist any more")
        return deprovision(self, _leaving, now) or self.begins(now) or _decided(self, now)

    @property
    def is_bereft(self) -> bool:
        user = self.resource
        return bereft(user.metadata, DEVELOPER_ACCOUNT, user.spec.developer_account_ref.name, self.account)

    def is_it(self, found: FoundUser) -> bool:
        return is_user(found, self.resource)

    @property
    def begun_in(self) -> int:
        return parent_of_creation(self.resource.metadata) if self.former else 0

    def read(self, read: Read, body: object) -> Self:
        world = super().read(read, body)
        moves = self.account and self.begun_in not in (0, self.account.status.account_id)
        if not moves or self.resource.metadata.deleting or read.path != _users(self.begun_in):
            return world
        found = world.found.item
        return world.beside({"found": One(former=found.id) if found else One(lost=True)})


def _decided(observed: ObservedUser, now: datetime) -> Decision:
    user, url, account = observed.resource, observed.provider.url, observed.account
    fields: dict[str, object] = {"provider_account_host": url}
    blocker = _blocker(observed, url)
    if blocker is not None or account is None:
        return observed.blocked(blocker or _orphan(user, "parent account resource not found"), now, fields)
    return observed.taken(now, fields) or _synced(observed, account, fields, now)


def _blocker(observed: ObservedUser, url: str) -> Blocker | None:
    user, account = observed.resource, observed.account
    if fault := fault_of_address(user.spec.email):
        return invalid(str(fault))
    if account is None:
        return _orphan(user, "parent account resource not found")
    host = account.status.provider_account_host
    if host and not same_tenant(host, url):
        return _orphan(user, "parent account resource does not belong to the same provider account")
    if is_true(account.status.conditions, INVALID):
        message = f"DeveloperAccount {account.metadata.name} is invalid"
        return invalid(message, f"DeveloperAccount/{user.metadata.namespace}/{account.metadata.name}")
    return None if account_usable(account) else _orphan(user, "parent account resource not ready")


def _orphan(user: DeveloperUser, why: str) -> Blocker:
    name = user.spec.developer_account_ref.name
    return waiting(why, f"DeveloperAccount/{user.metadata.namespace}/{name}")


def _synced(observed: ObservedUser, account: DeveloperAccount, fields: dict[str, object], now: datetime) -> Decision:
    user, found = observed.resource, observed.found
    patch = owned(user.metadata, account)
    if patch:
        return acts(Phase.SYNCING, "set its account as owner", *observed.patched(patch))
    account_id = account.status.account_id or 0
    fields = {**fields, "account_id": account_id}
    desired = Digests(synced=digest(account.status.provider_account_host, account_id, user.spec))
    if desired == digests_of(user) and user.status.developer_user_id and not observed.look and not found.looked:
        return observed.fine(now, fields)
    whole = sync_user(user, account_id, found, observed.known_id, observed.begun_in)
    if any(write.method == "DELETE" for write in whole.writes):  # the user is still in the former account
        fields = {name: value for name, value in fields.items() if name != "account_id"}
    # After the deletion, a moved user is created again.
    makes = any(write.method in ("POST", "DELETE") for write in whole.writes)
    if makes and password_of(user) not in observed.secrets:
        return _without_password(observed, fields, now)
    if found.item is not None:
        fields = {**fields, "developer_user_id": found.item.id, "developer_user_state": found.item.state or None}
    return observed.compared(whole, now, fields, desired)


def _without_password(observed: ObservedUser, fields: dict[str, object], now: datetime) -> Decision:
    # The status shows Failed, not Orphan, because clients treat an Orphan user as created.
    password = password_of(observed.resource)
    message = f"Secret {password.name} is missing, or lacks the key {password.key}"
    blocker = failed(message, f"Secret/{password.namespace}/{password.name}")
    return observed.blocked(blocker, now, fields, until=observed.observe_again_at(FAILED, now))


def password_of(user: DeveloperUser) -> SecretKey:
    reference = user.spec.password_credentials_ref
    return SecretKey(namespace=reference.namespace or user.metadata.namespace, name=reference.name, key=PASSWORD_KEY)


def is_user(found: FoundUser, user: DeveloperUser) -> bool:
    noted = created(user.metadata)
    names = ((user.spec.username, user.spec.email), (noted.get("username"), noted.get("email")))
    return (found.username, found.email) in names


def _users(account_id: int) -> str:
    return f"accounts/{account_id}/users"


def sync_user(
    user: DeveloperUser, account_id: int, found: One[FoundUser], known_id: int = 0, begun_in: int = 0
) -> Sync:
    before, path = user.status.account_id or account_id, _users(account_id)
    about = f"{user.spec.username} of its former account"
    if found.former:
        return Sync(writes=(deletion(Resource.USER, _users(begun_in), found.former, about),))
    if not found.looked:
        if known_id and before != account_id and not found.lost:
            return Sync(writes=(deletion(Resource.USER, _users(before), known_id, about),))
        if begun_in and begun_in != account_id and not (known_id or found.lost):
            return Sync(reads=(read_entry(Resource.USER, _users(begun_in), 0),))
        return Sync(reads=(read_entry(Resource.USER, path, 0 if found.lost else known_id),))
    if found.item is None:
        return Sync(writes=(_creation(user, account_id),))
    return Sync(writes=tuple(_changes(user, found.item, path)))


def _creation(user: DeveloperUser, account_id: int) -> Write:
    spec = user.spec
    key = {"username": spec.username, "email": spec.email}
    fields = {**key, "role": spec.role or MEMBER}
    secrets = {"password": password_of(user)}
    return creation(Resource.USER, _users(account_id), fields, key, spec.username, of=account_id, secrets=secrets)


def _changes(user: DeveloperUser, found: FoundUser, path: str) -> Iterable[Write]:
    spec, role = user.spec, user.spec.role or MEMBER
    fields = differing({"username": spec.username, "email": spec.email}, found)
    if fields:
        yield change(Resource.USER, path, found.id, fields, spec.username)
    events = {
        "activate": found.state == PENDING,
        "unsuspend": found.state == SUSPENDED and not spec.suspended,
        "suspend": found.state in (ACTIVE, PENDING) and spec.suspended,
        role: found.role and found.role != role,
    }
    for event, due in events.items():
        if due:
            yield change(Resource.USER, path, found.id, {}, spec.username, event=event)


def _leaving(observed: ObservedUser) -> Leaving:
    """If the account is being deleted, too, 3scale deletes the user with it (`cascading_deletion.py`)."""
    user, provider = observed.resource, observed.provider
    account = observed.account or (None if observed.is_bereft else observed.former)
    known_id = observed.known_id
    leaving = Leaving(holders=observed.holders)
    begun = bool(created(user.metadata))
    now_of = (id_of_account(account, provider.url) if account else 0) or user.status.account_id
    if account is None or finalizer_removed(account) or not now_of or not (known_id or begun):
        return leaving
    if takes_its_own(account):
        waits_for = f"DeveloperAccount/{account.metadata.namespace}/{account.metadata.name}"
        return leaving.model_copy(update={"blocker": waiting("deleted with its account", waits_for)})
    before, begun_in = user.status.account_id or now_of, observed.begun_in or now_of
    look = Read(resource=Resource.USER, path=_users(begun_in)) if begun else None

    def deletes(id_: int) -> Write:
        path = _users(before if id_ == known_id else begun_in)
        return deletion(Resource.USER, path, id_, user.spec.username)

    return leaving_of_one(leaving, observed.found, known_id, look, deletes)
