"""Users of developer accounts, and a tenant's own users.

A user created through the API is `pending` and a `member`, whatever was requested. Names and email addresses are unique
among a tenant's developers, and separately among the tenant's own users.
"""

from __future__ import annotations

import re

from localcloud.threescale import answers, refusals, tables
from localcloud.threescale.answers import Answer
from localcloud.threescale.call import Call, Routes, shown
from localcloud.threescale.contract import JsonObject
from localcloud.threescale.parameters import Parameters
from localcloud.threescale.refusals import Complaints
from localcloud.threescale.resources import accounts, fields_definitions
from localcloud.threescale.store import Record, Store

ROUTES = Routes()

ACTIVE = "active"
PENDING = "pending"
SUSPENDED = "suspended"
ADMIN = "admin"
MEMBER = "member"

_EMAIL = re.compile(r"\A[^@\s]+@[^@\s]+\.[^@\s]+\Z")
_USERNAME = re.compile(r"\A\w[\w.\-@]*\Z")
_SHORTEST_NAME, _LONGEST_NAME = 3, 40
_STATES = {
    "activate": (PENDING, ACTIVE),
    "suspend": (ACTIVE, SUSPENDED),
    "unsuspend": (SUSPENDED, ACTIVE),
}
_ROLES = {"admin": ADMIN, "member": MEMBER}


def realm_of(account: Record) -> int:
    return account.number("provider_id") if account["kind"] == "buyer" else -account.id


def show(call: Call, user: Record) -> JsonObject:
    account = call.store.get(tables.ACCOUNTS, user.number("account_id"))
    provider = account.number("provider_id") or account.id
    fields: JsonObject = {
        "id": user.id,
        "state": user["state"],
        "role": user["role"],
        "username": user["username"],
        "email": user["email"],
        "account_id": account.id,
        **fields_definitions.values_of(call.store, provider, "User", user),
    }
    return shown(call, user, f"/admin/api/accounts/{account.id}/users/{user.id}", fields)


def check(call: Call, realm: int, values: JsonObject, complaints: Complaints, known: Record | None = None) -> None:
    name, email = values.get("username"), values.get("email")
    if isinstance(name, str) and name:
        if len(name) < _SHORTEST_NAME:
            complaints.add("username", f"is too short (minimum is {_SHORTEST_NAME} characters)")
        elif not _USERNAME.match(name):
            complaints.add("username", "use only letters, numbers, and .-_@ please.")
    complaints.if_too_long(values, "username", longest=_LONGEST_NAME)
    complaints.if_too_long(values, "email")
    if isinstance(email, str) and email and not _EMAIL.match(email):
        complaints.add("email", "should look like an email address")
    for field, value in (("username", name), ("email", email)):
        other = call.store.find(tables.USERS, realm=realm, **{field: value}) if value else None
        if other is not None and (known is None or other.id != known.id):
            complaints.add(field, refusals.TAKEN)


def establish(store: Store, account: Record, values: JsonObject, *, state: str, role: str) -> Record:
    """The password is not stored, only whether the user has a password."""
    password = values.pop("password", None)
    return store.insert(
        tables.USERS,
        **{
            **values,
            "email": values.get("email") or None,
            "account_id": account.id,
            "realm": realm_of(account),
            "state": state,
            "role": role,
            "has_password": bool(password),
        },
    )


def values_in(call: Call, sent: Parameters, account: Record) -> JsonObject:
    provider = account.number("provider_id") or account.id
    return sent.texts(("username", "email", "password", *fields_definitions.names_of(call.store, provider, "User")))


class _Users:
    def __init__(self, path: str) -> None:
        ROUTES.add("GET", path)(self.index)
        ROUTES.add("POST", path)(self.create)
        ROUTES.add("GET", f"{path}/{{user}}")(self.read)
        ROUTES.add("PUT PATCH", f"{path}/{{user}}")(self.change)
        ROUTES.add("DELETE", f"{path}/{{user}}")(self.delete)
        for event in _STATES:
            self._state(path, event)
        for event in _ROLES:
            self._role(path, event)

    def index(self, call: Call) -> Answer:
        where = {name: call.parameters.text(name) for name in ("state", "role") if call.parameters.text(name)}
        found = call.all(tables.USERS, account_id=self._account(call).id, **where)
        return answers.collection("users", "user", [show(call, each) for each in found])

    def read(self, call: Call) -> Answer:
        return answers.item("user", show(call, self._of(call)))

    def create(self, call: Call) -> Answer:
        account = self._account(call)
        values = values_in(call, call.parameters.within("user"), account)
        complaints = Complaints()
        complaints.if_blank(values, "username", "email")
        check(call, realm_of(account), values, complaints)
        complaints.settle()
        user = establish(call.store, account, values, state=PENDING, role=MEMBER)
        return answers.item("user", show(call, user), created=True)

    def change(self, call: Call) -> Answer:
        account, user = self._account(call), self._of(call)
        values = values_in(call, call.parameters.within("user"), account)
        complaints = Complaints()
        complaints.if_blank({"username": user["username"], "email": user["email"], **values}, "username", "email")
        check(call, realm_of(account), values, complaints, user)
        complaints.settle()
        has_password = bool(values.pop("password", None)) or bool(user["has_password"])
        return answers.item("user", show(call, call.store.update(user, **values, has_password=has_password)))

    def delete(self, call: Call) -> Answer:
        user = self._of(call)
        admins = call.store.count(tables.USERS, account_id=user["account_id"], role=ADMIN)
        if user["role"] == ADMIN and admins == 1:
            raise refusals.undeletable("Can't delete last admin")
        call.store.delete(user)
        return answers.done()

    def _account(self, call: Call) -> Record:
        return accounts.of(call) if "account" in call.path else call.tenant

    def _of(self, call: Call) -> Record:
        return call.find(tables.USERS, id=call.id("user"), account_id=self._account(call).id)

    def _state(self, path: str, event: str) -> None:
        before, after = _STATES[event]

        @ROUTES.add("PUT", f"{path}/{{user}}/{event}")
        def pass_over(call: Call) -> Answer:
            user = self._of(call)
            if user["state"] != before:
                raise refusals.transition(event, user.text("state"), {"user": show(call, user)})
            return answers.item("user", show(call, call.store.update(user, state=after)))

    def _role(self, path: str, event: str) -> None:
        @ROUTES.add("PUT", f"{path}/{{user}}/{event}")
        def become(call: Call) -> Answer:
            return answers.item("user", show(call, call.store.update(self._of(call), role=_ROLES[event])))


_Users("/admin/api/accounts/{account}/users")
_Users("/admin/api/users")
