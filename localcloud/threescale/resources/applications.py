"""Applications: a developer account's access to a product, under one of its plans.

The product determines the credentials: a `user_key`, or an `application_id` with keys, which OIDC calls `client_id` and
`client_secret`. Missing credentials are generated. An account's first application of a product subscribes the account
to the product.
"""

from __future__ import annotations

from collections.abc import Sequence

from localcloud.threescale import answers, names, refusals, tables
from localcloud.threescale.answers import Answer
from localcloud.threescale.call import Call, Routes, shown
from localcloud.threescale.contract import JsonObject
from localcloud.threescale.parameters import Parameters
from localcloud.threescale.refusals import Complaints
from localcloud.threescale.resources import accounts, fields_definitions, plans, subscriptions
from localcloud.threescale.store import Record, Store

ROUTES = Routes()

LIVE = "live"
PENDING = "pending"
SUSPENDED = "suspended"

_PATH = "/admin/api/accounts/{account}/applications"
_EVENTS = {"suspend": (LIVE, SUSPENDED), "resume": (SUSPENDED, LIVE), "accept": (PENDING, LIVE)}


def of(call: Call) -> Record:
    account = accounts.of(call)
    return _live(call, call.find(tables.APPLICATIONS, id=call.id("application"), account_id=account.id))


def show(call: Call, application: Record) -> JsonObject:
    store = call.store
    service = store.get(tables.SERVICES, application.number("service_id"))
    plan = store.get(tables.PLANS, application.number("plan_id"))
    account = store.get(tables.ACCOUNTS, application.number("account_id"))
    fields: JsonObject = {
        "id": application.id,
        "state": application["state"],
        "enabled": application["state"] == LIVE,
        "first_traffic_at": None,
        "first_daily_traffic_at": None,
        "service_id": service.id,
        "service_name": service["name"],
        "plan_id": plan.id,
        "plan_name": plan["name"],
        "account_id": account.id,
        "org_name": account["org_name"],
        **_credentials(store, service, application),
        "name": application["name"],
        "description": application["description"],
        **fields_definitions.values_of(store, application.number("tenant_id"), "Cinstance", application),
    }
    return shown(call, application, f"/admin/api/accounts/{account.id}/applications/{application.id}", fields)


@ROUTES.add("GET", _PATH)
def index(call: Call) -> Answer:
    found = [each for each in call.all(tables.APPLICATIONS, account_id=accounts.of(call).id) if _is_live(call, each)]
    return answers.collection("applications", "application", [show(call, each) for each in found])


@ROUTES.add("GET", "/admin/api/applications")
def index_of_tenant(call: Call) -> Answer:
    where = {name: call.parameters.integer(name) for name in ("service_id", "plan_id") if call.parameters.text(name)}
    found, page = call.page(tables.APPLICATIONS, tenant_id=call.tenant.id, **where)
    shown_ones = [show(call, each) for each in found if _is_live(call, each)]
    return answers.collection("applications", "application", shown_ones, page)


@ROUTES.add("GET", "/admin/api/applications/find")
def find(call: Call) -> Answer:
    sent = call.parameters
    if sent.text("user_key"):
        found = call.find(tables.APPLICATIONS, tenant_id=call.tenant.id, user_key=sent.text("user_key"))
    elif sent.text("app_id"):
        found = call.find(tables.APPLICATIONS, tenant_id=call.tenant.id, application_id=sent.text("app_id"))
    else:
        found = call.find(tables.APPLICATIONS, tenant_id=call.tenant.id, id=sent.integer("application_id") or 0)
    return answers.item("application", show(call, _live(call, found)))


@ROUTES.add("GET", f"{_PATH}/{{application}}")
def read(call: Call) -> Answer:
    return answers.item("application", show(call, of(call)))


@ROUTES.add("POST", _PATH)
def create(call: Call) -> Answer:
    account = accounts.of(call)
    sent = call.parameters.within("application", "cinstance")
    plan = _plan(call, sent.integer("plan_id"))
    complaints = Complaints()
    values = _texts_in(call, sent)
    complaints.if_blank(values, "name")
    complaints.if_too_long(values, "name", "redirect_url")
    values |= _given_credentials(call, plan.number("service_id"), sent, complaints)
    keys = [sent.text("application_key")] if sent.text("application_key") else []
    for key in keys:
        names.if_malformed_key(complaints, key, "application_key")
    complaints.settle()
    application = establish(call.store, call.tenant, account, plan, values, keys)
    return answers.item("application", show(call, application), created=True)


@ROUTES.add("PUT PATCH", f"{_PATH}/{{application}}")
def change(call: Call) -> Answer:
    application = of(call)
    sent = call.parameters.within("application", "cinstance")
    values = _texts_in(call, sent)
    complaints = Complaints()
    complaints.if_blank({"name": application["name"], **values}, "name")
    complaints.if_too_long(values, "name", "redirect_url", "user_key")
    if sent.text("user_key") and sent.text("user_key") != application["user_key"]:
        values["user_key"] = sent.text("user_key")
        if call.store.find(tables.APPLICATIONS, service_id=application["service_id"], user_key=values["user_key"]):
            complaints.add("user_key", refusals.TAKEN)
    complaints.settle()
    return answers.item("application", show(call, call.store.update(application, **values)))


@ROUTES.add("DELETE", f"{_PATH}/{{application}}")
def delete(call: Call) -> Answer:
    call.store.delete(of(call))
    return answers.done()


@ROUTES.add("GET", f"{_PATH}/{{application}}/plan")
def read_plan(call: Call) -> Answer:
    plan = call.store.get(tables.PLANS, of(call).number("plan_id"))
    return answers.item("application_plan", plans.show(call, plan))


@ROUTES.add("PUT", f"{_PATH}/{{application}}/change_plan")
def change_plan(call: Call) -> Answer:
    application = of(call)
    plan = _plan(call, call.parameters.within("application").integer("plan_id"))
    if plan["service_id"] != application["service_id"]:
        raise refusals.invalid({"plan": ["must belong to the same product"]})
    call.store.update(application, plan_id=plan.id)
    return answers.item("application_plan", plans.show(call, plan))


def _transition(event: str) -> None:
    before, after = _EVENTS[event]

    @ROUTES.add("PUT", f"{_PATH}/{{application}}/{event}")
    def pass_over(call: Call) -> Answer:
        application = of(call)
        if application["state"] != before:
            state = application.text("state")
            raise refusals.transition(event, state, {"application": show(call, application)})
        return answers.item("application", show(call, call.store.update(application, state=after)))


for _event in _EVENTS:
    _transition(_event)


def establish(
    store: Store, tenant: Record, account: Record, plan: Record, values: JsonObject, keys: Sequence[str] = ()
) -> Record:
    service = store.get(tables.SERVICES, plan.number("service_id"))
    subscriptions.ensure(store, tenant, account, service)
    if service["backend_version"] == "1":
        values = {"user_key": names.random_key(), **values}
    else:
        values = {"application_id": names.random_key()[:8], **values}
        if not keys and service["mandatory_app_key"]:
            keys = [names.random_key()]
    application = store.insert(
        tables.APPLICATIONS,
        **{
            "description": None,
            "redirect_url": None,
            "provider_verification_key": names.random_key(),
            **values,
            "tenant_id": tenant.id,
            "account_id": account.id,
            "service_id": service.id,
            "plan_id": plan.id,
            "state": PENDING if plan["approval_required"] else LIVE,
        },
    )
    for key in keys:
        store.insert(tables.KEYS, application=application.id, value=key)
    return application


def _plan(call: Call, identifier: int | None) -> Record:
    plan = call.find(tables.PLANS, id=identifier or 0, tenant_id=call.tenant.id, kind=plans.APPLICATION)
    if call.store.get(tables.SERVICES, plan.number("service_id"))["deleted"] is not None:
        raise refusals.not_found()
    return plan


def _texts_in(call: Call, sent: Parameters) -> JsonObject:
    defined = fields_definitions.names_of(call.store, call.tenant.id, "Cinstance")
    return sent.texts(("name", "description", "redirect_url", *defined))


def _given_credentials(call: Call, service_id: int, sent: Parameters, complaints: Complaints) -> JsonObject:
    given = {name: sent.text(name) for name in ("user_key", "application_id") if sent.text(name)}
    if "application_id" in given and not 4 <= len(given["application_id"]) <= 255:
        complaints.add("application_id", refusals.INVALID)
    for name, value in given.items():
        if call.store.find(tables.APPLICATIONS, service_id=service_id, **{name: value}):
            complaints.add(name, refusals.TAKEN)
    return {**given}


def _credentials(store: Store, service: Record, application: Record) -> JsonObject:
    if service["backend_version"] == "1":
        return {name: application[name] for name in ("user_key", "provider_verification_key")}
    shown_ones: JsonObject = {"application_id": application["application_id"]}
    if service["backend_version"] in ("oidc", "oauth"):
        first = store.find(tables.KEYS, application=application.id)
        proxy = store.find(tables.PROXIES, service_id=service.id)
        assert proxy is not None
        flows = ("standard_flow_enabled", "implicit_flow_enabled", "service_accounts_enabled")
        shown_ones |= {
            "redirect_url": application["redirect_url"],
            "client_id": application["application_id"],
            "client_secret": first["value"] if first else None,
            "oidc_configuration": {
                "id": proxy.id,
                **{name: proxy[name] for name in (*flows, "direct_access_grants_enabled")},
            },
        }
    return shown_ones


def _is_live(call: Call, application: Record) -> bool:
    return call.store.get(tables.SERVICES, application.number("service_id"))["deleted"] is None


def _live(call: Call, application: Record) -> Record:
    if not _is_live(call, application):
        raise refusals.not_found()
    return application
