"""Service subscriptions: an account's permission to have applications in a product, under a service plan."""

from __future__ import annotations

from localcloud.threescale import answers, refusals, tables
from localcloud.threescale.answers import Answer
from localcloud.threescale.call import Call, Routes, shown
from localcloud.threescale.contract import JsonObject
from localcloud.threescale.resources import accounts, plans
from localcloud.threescale.store import Record, Store

ROUTES = Routes()

_PATH = "/admin/api/accounts/{account}/service_subscriptions"
_LIVE = "live"
_PENDING = "pending"


def ensure(store: Store, tenant: Record, account: Record, service: Record) -> None:
    if store.find(tables.SUBSCRIPTIONS, account_id=account.id, service_id=service.id):
        return
    plan = plans.default_of(store, tenant, plans.SERVICE, service)
    if plan is not None:
        subscribe(store, account, plan)


def subscribe(store: Store, account: Record, plan: Record) -> Record:
    return store.insert(
        tables.SUBSCRIPTIONS,
        account_id=account.id,
        service_id=plan["service_id"],
        plan_id=plan.id,
        state=_PENDING if plan["approval_required"] else _LIVE,
    )


@ROUTES.add("GET", _PATH)
def index(call: Call) -> Answer:
    found = call.all(tables.SUBSCRIPTIONS, account_id=accounts.of(call).id)
    shown_ones = [_show(call, each) for each in found]
    return answers.collection("service_subscriptions", "service_subscription", shown_ones)


@ROUTES.add("GET", f"{_PATH}/{{subscription}}")
def read(call: Call) -> Answer:
    return answers.item("service_subscription", _show(call, _of(call)))


@ROUTES.add("POST", _PATH)
def create(call: Call) -> Answer:
    account = accounts.of(call)
    plan = _plan(call)
    if call.store.find(tables.SUBSCRIPTIONS, account_id=account.id, service_id=plan["service_id"]):
        raise refusals.invalid({"plan_id": ["already subscribed to this service"]})
    return answers.item("service_subscription", _show(call, subscribe(call.store, account, plan)), created=True)


@ROUTES.add("DELETE", f"{_PATH}/{{subscription}}")
def delete(call: Call) -> Answer:
    subscription = _of(call)
    where = {name: subscription[name] for name in ("account_id", "service_id")}
    if call.store.count(tables.APPLICATIONS, **where):
        raise refusals.undeletable("This subscription has applications")
    call.store.delete(subscription)
    return answers.done()


@ROUTES.add("PUT", f"{_PATH}/{{subscription}}/approve")
def approve(call: Call) -> Answer:
    subscription = _of(call)
    if subscription["state"] != _PENDING:
        shown_one = {"service_subscription": _show(call, subscription)}
        raise refusals.transition("approve", subscription.text("state"), {**shown_one})
    return answers.item("service_subscription", _show(call, call.store.update(subscription, state=_LIVE)))


@ROUTES.add("PUT", f"{_PATH}/{{subscription}}/change_plan")
def change_plan(call: Call) -> Answer:
    subscription, plan = _of(call), _plan(call)
    if plan["service_id"] != subscription["service_id"]:
        raise refusals.invalid({"plan": ["must belong to the same product"]})
    return answers.item("service_subscription", _show(call, call.store.update(subscription, plan_id=plan.id)))


def _plan(call: Call) -> Record:
    identifier = call.parameters.within("service_subscription").integer("plan_id") or 0
    return call.find(tables.PLANS, id=identifier, tenant_id=call.tenant.id, kind=plans.SERVICE)


def _of(call: Call) -> Record:
    return call.find(tables.SUBSCRIPTIONS, id=call.id("subscription"), account_id=accounts.of(call).id)


def _show(call: Call, subscription: Record) -> JsonObject:
    names = ("plan_id", "service_id", "state")
    fields: JsonObject = {
        "id": subscription.id,
        "account_id": subscription["account_id"],
        **{name: subscription[name] for name in names},
    }
    own = f"/admin/api/accounts/{subscription['account_id']}/service_subscriptions/{subscription.id}"
    return shown(call, subscription, own, fields)
