"""Signup: a developer account with its first user, the admin.

The user is active if it has a password and the account's plan needs no approval. The account gets the tenant's default
plan and is subscribed to each product's default service plan.
"""

from __future__ import annotations

from localcloud.threescale import answers, refusals, tables
from localcloud.threescale.answers import Answer
from localcloud.threescale.call import Call, Routes
from localcloud.threescale.contract import JsonObject
from localcloud.threescale.parameters import Parameters
from localcloud.threescale.refusals import Complaints
from localcloud.threescale.resources import accounts, applications, fields_definitions, plans, subscriptions, users
from localcloud.threescale.store import Record

ROUTES = Routes()


@ROUTES.add("POST", "/admin/api/signup")
def create(call: Call) -> Answer:
    sent = call.parameters.within("account", "user", "signup")
    values = accounts.changes_in(call, sent, call.tenant.id)
    user_names = ("username", "email", "password", *fields_definitions.names_of(call.store, call.tenant.id, "User"))
    user_values = sent.texts(user_names)
    complaints = Complaints()
    complaints.if_blank(values, *fields_definitions.required_of(call.store, call.tenant.id, "Account"))
    complaints.if_blank(user_values, *fields_definitions.required_of(call.store, call.tenant.id, "User"))
    complaints.if_too_long(values, "org_name")
    users.check(call, call.tenant.id, user_values, complaints)
    complaints.settle()
    plan = _account_plan(call, sent)
    approved = plan is None or not plan["approval_required"]
    account = accounts.establish(
        call.store,
        call.tenant,
        {
            **values,
            **({"plan_id": plan.id} if plan is not None else {}),
            "annotations": sent.annotations({}),
            "state": accounts.APPROVED if approved else accounts.PENDING,
        },
    )
    state = users.ACTIVE if approved and user_values.get("password") else users.PENDING
    users.establish(call.store, account, user_values, state=state, role=users.ADMIN)
    _subscribe(call, account, sent)
    return answers.item("account", accounts.show(call, account), created=True)


def _account_plan(call: Call, sent: Parameters) -> Record | None:
    if not sent.text("account_plan_id"):
        return plans.default_of(call.store, call.tenant, plans.ACCOUNT)
    return _plan(call, sent, "account_plan_id", plans.ACCOUNT)


def _subscribe(call: Call, account: Record, sent: Parameters) -> None:
    if sent.text("service_plan_id"):
        subscriptions.subscribe(call.store, account, _plan(call, sent, "service_plan_id", plans.SERVICE))
    for service in call.store.all(tables.SERVICES, tenant_id=call.tenant.id, deleted=None):
        subscriptions.ensure(call.store, call.tenant, account, service)
    if sent.text("application_plan_id"):
        plan = _plan(call, sent, "application_plan_id", plans.APPLICATION)
        name: JsonObject = {
            "name": f"{account['org_name']}'s App",
            "description": "Default application created on signup",
        }
        applications.establish(call.store, call.tenant, account, plan, name)


def _plan(call: Call, sent: Parameters, name: str, kind: str) -> Record:
    found = call.store.find(tables.PLANS, id=sent.integer(name) or 0, tenant_id=call.tenant.id, kind=kind)
    if found is None:
        raise refusals.not_found()
    return found
