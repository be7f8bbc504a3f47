"""Tenants: the master creates, changes and deletes them; a tenant reads and changes itself.

A tenant is an account of the master. A deleted tenant stays for fifteen days without access; a second deletion is
refused.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from http import HTTPStatus

from localcloud.threescale import answers, places, refusals, tables
from localcloud.threescale.answers import Answer
from localcloud.threescale.call import Call, Routes
from localcloud.threescale.contract import ALL_SCOPES, DOMAIN, JsonObject
from localcloud.threescale.refusals import Complaints
from localcloud.threescale.resources import access_tokens, accounts, fields_definitions, plans, sample, services, users
from localcloud.threescale.store import Record, Store

ROUTES = Routes()

MASTER = "master"
DELETED = "scheduled_for_deletion"
SUSPENDED = "suspended"

_PATH = "/master/api/providers"
_FIELDS = ("org_name", "from_email", "support_email", "finance_support_email", "site_access_code")
_EMAILS = ("from_email", "support_email", "finance_support_email")
_EMAIL = re.compile(r"\A[^@\s]+@[^@\s]+\.[^@\s]+\Z")
_GRACE = timedelta(days=15)


def establish(store: Store, master: Record, values: JsonObject) -> Record:
    name = free_name(store, str(values["org_name"]))
    tenant = store.insert(
        tables.ACCOUNTS,
        **{
            "state": accounts.APPROVED,
            "monthly_billing_enabled": True,
            "monthly_charging_enabled": True,
            "annotations": {},
            **values,
            "provider_id": master.id,
            "kind": "provider",
            "name": name,
            "host": f"{name}-admin.{DOMAIN}",
        },
    )
    fields_definitions.establish(store, tenant)
    plans.establish_default(store, tenant, plans.ACCOUNT)
    sample.establish(store, tenant, services.establish(store, tenant, "api", {"name": "API"}, default=True))
    return tenant


def establish_master(store: Store, token: str) -> Record:
    master = store.insert(
        tables.ACCOUNTS,
        kind="master",
        org_name="Master",
        state=accounts.APPROVED,
        name=MASTER,
        host=f"{MASTER}.{DOMAIN}",
    )
    fields_definitions.establish(store, master)
    establish_admin(store, master, {"username": "master", "email": f"master@{DOMAIN}"}, [*ALL_SCOPES], token)
    return master


def establish_admin(
    store: Store, tenant: Record, values: JsonObject, scopes: list[str], token: str = ""
) -> tuple[Record, Record]:
    state = users.ACTIVE if values.get("password") or token else users.PENDING
    user = users.establish(store, tenant, values, state=state, role=users.ADMIN)
    permission = access_tokens.READ_WRITE
    return user, access_tokens.establish(store, tenant, user, "Account Management API", scopes, permission, token)


def free_name(store: Store, org_name: str) -> str:
    wanted = re.sub(r"[^a-z0-9]+", "-", org_name.lower()).strip("-") or "tenant"
    name, number = wanted, 1
    while store.find(tables.ACCOUNTS, name=name):
        number += 1
        name = f"{wanted}-{number}"
    return name


@ROUTES.add("POST", _PATH)
def create(call: Call) -> Answer:
    sent = call.parameters.within("account", "provider", "signup")
    values = sent.texts(_FIELDS)
    user_values = sent.texts(("username", "email", "password"))
    complaints = _complaints(values)
    complaints.if_blank(values, "org_name")
    complaints.if_blank(user_values, "username", "email")
    users.check(call, 0, user_values, complaints)
    complaints.settle()
    tenant = establish(call.store, call.tenant, values | {"annotations": sent.annotations({})})
    tenant = places.settle(call.store, tenant, call.listening_on)
    _, token = establish_admin(call.store, tenant, user_values, [*call.config.tenant_token_scopes])
    signup: JsonObject = {
        "account": accounts.show(call, tenant),
        "access_token": access_tokens.show(token, with_value=True),
    }
    return Answer(HTTPStatus.CREATED, {"signup": signup}, location=f"{call.base_url}{_PATH}/{tenant.id}")


@ROUTES.add("GET", f"{_PATH}/{{provider}}")
def read(call: Call) -> Answer:
    return answers.item("signup", {"account": accounts.show(call, _of(call))})


@ROUTES.add("PUT PATCH", f"{_PATH}/{{provider}}")
def change(call: Call) -> Answer:
    return answers.item("signup", {"account": accounts.show(call, _changed(call, _of(call)))})


@ROUTES.add("DELETE", f"{_PATH}/{{provider}}")
def delete(call: Call) -> Answer:
    tenant = _of(call)
    if tenant["state"] == DELETED:
        raise refusals.transition("schedule_for_deletion", DELETED, {"account": accounts.show(call, tenant)})
    when = (datetime.now(UTC) + _GRACE).strftime("%Y-%m-%dT%H:%M:%SZ")
    call.store.update(tenant, state=DELETED, deletion_date=when)
    return answers.done()


@ROUTES.add("GET", "/admin/api/provider")
def read_own(call: Call) -> Answer:
    return answers.item("account", accounts.show(call, call.tenant))


@ROUTES.add("PUT PATCH", "/admin/api/provider")
def change_own(call: Call) -> Answer:
    return answers.item("account", accounts.show(call, _changed(call, call.tenant)))


def _of(call: Call) -> Record:
    return call.find(tables.ACCOUNTS, id=call.id("provider"), kind="provider")


def _changed(call: Call, tenant: Record) -> Record:
    sent = call.parameters.within("account", "provider")
    values = sent.texts(_FIELDS)
    complaints = _complaints(values)
    complaints.if_blank({"org_name": tenant["org_name"], **values}, "org_name")
    complaints.settle()
    annotations = sent.annotations(tenant.object("annotations"))
    return call.store.update(tenant, **values, annotations=annotations)


def _complaints(values: JsonObject) -> Complaints:
    complaints = Complaints()
    complaints.if_too_long(values, *_FIELDS)
    for name in _EMAILS:
        if values.get(name) and not _EMAIL.match(str(values[name])):
            complaints.add(name, refusals.INVALID)
    return complaints
