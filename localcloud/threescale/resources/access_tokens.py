"""Access tokens of a tenant's users. Only the answer to the creation contains the value."""

from __future__ import annotations

import secrets
from http import HTTPStatus

from localcloud.threescale import answers, refusals, tables
from localcloud.threescale.answers import Answer
from localcloud.threescale.call import Call, Routes
from localcloud.threescale.contract import ALL_SCOPES, JsonObject
from localcloud.threescale.refusals import Complaints
from localcloud.threescale.store import Record, Store

ROUTES = Routes()

READ_ONLY = "ro"
READ_WRITE = "rw"

_PATH = "/admin/api/personal/access_tokens"


def establish(
    store: Store, tenant: Record, user: Record, name: str, scopes: list[str], permission: str, value: str = ""
) -> Record:
    return store.insert(
        tables.TOKENS,
        tenant_id=tenant.id,
        user_id=user.id,
        name=name,
        scopes=[*scopes],
        permission=permission,
        value=value or secrets.token_hex(32),
    )


def show(token: Record, *, with_value: bool = False) -> JsonObject:
    fields: JsonObject = {"id": token.id, **{name: token[name] for name in ("name", "scopes", "permission")}}
    return fields | ({"value": token["value"]} if with_value else {})


@ROUTES.add("GET", _PATH)
def index(call: Call) -> Answer:
    found = call.store.all(tables.TOKENS, user_id=call.token["user_id"])
    return answers.collection("access_tokens", "access_token", [show(each) for each in found])


@ROUTES.add("GET", f"{_PATH}/{{token}}")
def read(call: Call) -> Answer:
    return answers.item("access_token", show(_of(call)))


@ROUTES.add("POST", _PATH, "/admin/api/users/{user}/access_tokens")
def create(call: Call) -> Answer:
    sent = call.parameters.within("token", "access_token")
    scopes = _scopes(sent.get("scopes"))
    values = sent.texts(("name", "permission"))
    complaints = Complaints()
    complaints.if_blank(values, "name", "permission")
    complaints.if_too_long(values, "name")
    if values.get("permission"):
        complaints.if_unlisted(values, "permission", (READ_ONLY, READ_WRITE))
    if not scopes or not set(scopes) <= set(ALL_SCOPES):
        complaints.add("scopes", refusals.INVALID if scopes else refusals.BLANK)
    complaints.settle()
    user_id = call.id("user") if "user" in call.path else call.token["user_id"]
    user = call.find(tables.USERS, id=user_id, account_id=call.tenant.id)
    token = establish(call.store, call.tenant, user, str(values["name"]), scopes, str(values["permission"]))
    return Answer(HTTPStatus.CREATED, {"access_token": show(token, with_value=True)})


@ROUTES.add("DELETE", f"{_PATH}/{{token}}")
def delete(call: Call) -> Answer:
    call.store.delete(_of(call))
    return answers.done()


def _of(call: Call) -> Record:
    return call.find(tables.TOKENS, id=call.id("token"), user_id=call.token["user_id"])


def _scopes(sent: object) -> list[str]:
    if isinstance(sent, list):
        return [str(each) for each in sent]
    return [sent] if isinstance(sent, str) and sent else []
