"""Developer accounts, and what all accounts share.

Tenants are the master's accounts, so at the master's address these routes serve tenants. A tenant's fields definitions
add further fields to the tenant's accounts.
"""

from __future__ import annotations

from localcloud.threescale import answers, refusals, tables
from localcloud.threescale.answers import Answer
from localcloud.threescale.call import Call, Routes, shown
from localcloud.threescale.contract import JsonObject
from localcloud.threescale.parameters import Parameters
from localcloud.threescale.refusals import Complaints
from localcloud.threescale.resources import fields_definitions, plans
from localcloud.threescale.store import Record, Store

ROUTES = Routes()

APPROVED = "approved"
PENDING = "pending"
REJECTED = "rejected"
CREATED = "created"

_PATH = "/admin/api/accounts"
_BILLING = ("monthly_billing_enabled", "monthly_charging_enabled")
_EVENTS = {
    "approve": ((CREATED, PENDING, REJECTED), APPROVED),
    "reject": ((CREATED, PENDING, APPROVED), REJECTED),
    "make_pending": ((CREATED, APPROVED, REJECTED), PENDING),
}
_OF_PROVIDER = ("from_email", "support_email", "finance_support_email", "site_access_code")


def of(call: Call, name: str = "account") -> Record:
    return call.find(tables.ACCOUNTS, id=call.id(name), provider_id=call.tenant.id)


def show(call: Call, account: Record) -> JsonObject:
    fields: JsonObject = {
        "id": account.id,
        "state": account["state"],
        "org_name": account["org_name"],
        **fields_definitions.values_of(call.store, _provider_of(account), "Account", account),
        "credit_card_stored": False,
        **{name: account[name] for name in _BILLING},
        "annotations": account.object("annotations"),
    }
    if account["kind"] != "buyer":
        fields |= _of_provider(account)
    own = f"{_PATH}/{account.id}"
    return shown(call, account, own, fields, users=f"{own}/users")


def establish(store: Store, provider: Record, values: JsonObject) -> Record:
    default = plans.default_of(store, provider, plans.ACCOUNT)
    return store.insert(
        tables.ACCOUNTS,
        **{
            "monthly_billing_enabled": True,
            "monthly_charging_enabled": True,
            "annotations": {},
            "plan_id": default.id if default else None,
            **values,
            "provider_id": provider.id,
            "kind": "buyer",
        },
    )


def changes_in(call: Call, sent: Parameters, provider_id: int) -> JsonObject:
    defined = fields_definitions.names_of(call.store, provider_id, "Account")
    return sent.texts(("org_name", *defined)) | sent.flags(_BILLING)


@ROUTES.add("GET", _PATH)
def index(call: Call) -> Answer:
    where = {"state": call.parameters.text("state")} if call.parameters.text("state") else {}
    found, page = call.page(tables.ACCOUNTS, provider_id=call.tenant.id, kind=_kind(call), **where)
    return answers.collection("accounts", "account", [show(call, each) for each in found], page)


@ROUTES.add("GET", f"{_PATH}/find")
def find(call: Call) -> Answer:
    sent = call.parameters
    where: JsonObject = {name: sent.text(name) for name in ("username", "email") if sent.text(name)}
    identifier = sent.integer("user_id")
    if not where and identifier is None:
        raise refusals.not_found()
    if identifier is not None:
        where["id"] = identifier
    for user in call.store.all(tables.USERS, **where):
        account = call.store.get(tables.ACCOUNTS, user.number("account_id"))
        if account["provider_id"] == call.tenant.id:
            return answers.item("account", show(call, account))
    raise refusals.not_found()


@ROUTES.add("GET", f"{_PATH}/{{account}}")
def read(call: Call) -> Answer:
    return answers.item("account", show(call, of(call)))


@ROUTES.add("PUT PATCH", f"{_PATH}/{{account}}")
def change(call: Call) -> Answer:
    account = of(call)
    sent = call.parameters.within("account")
    changes = changes_in(call, sent, _provider_of(account))
    complaints = Complaints()
    complaints.if_blank({"org_name": account["org_name"], **changes}, "org_name")
    complaints.if_too_long(changes, "org_name")
    complaints.settle()
    annotations = sent.annotations(account.object("annotations"))
    return answers.item("account", show(call, call.store.update(account, **changes, annotations=annotations)))


@ROUTES.add("DELETE", f"{_PATH}/{{account}}")
def delete(call: Call) -> Answer:
    account = of(call)
    if account["kind"] != "buyer":
        raise refusals.forbidden()
    if account.id in call.config.unresolved_invoices:
        raise refusals.undeletable("Account has unresolved invoices")
    call.store.delete(account)
    return answers.done()


@ROUTES.add("GET", f"{_PATH}/{{account}}/plan")
def read_plan(call: Call) -> Answer:
    plan = call.find(tables.PLANS, id=of(call)["plan_id"], tenant_id=call.tenant.id)
    return answers.item("account_plan", plans.show(call, plan))


@ROUTES.add("PUT", f"{_PATH}/{{account}}/change_plan")
def change_plan(call: Call) -> Answer:
    account = of(call)
    identifier = call.parameters.within("account").integer("plan_id") or 0
    plan = call.find(tables.PLANS, id=identifier, tenant_id=call.tenant.id, kind=plans.ACCOUNT)
    call.store.update(account, plan_id=plan.id)
    return answers.item("account_plan", plans.show(call, plan))


def _transition(event: str) -> None:
    before, after = _EVENTS[event]

    @ROUTES.add("PUT", f"{_PATH}/{{account}}/{event}")
    def pass_over(call: Call) -> Answer:
        account = of(call)
        if account["state"] not in before:
            raise refusals.transition(event, account.text("state"), {"account": show(call, account)})
        return answers.item("account", show(call, call.store.update(account, state=after)))


for _event in _EVENTS:
    _transition(_event)


def _kind(call: Call) -> str:
    return "provider" if call.tenant["kind"] == "master" else "buyer"


def _provider_of(account: Record) -> int:
    return account.number("provider_id") or account.id


def _of_provider(account: Record) -> JsonObject:
    host = account.text("host")
    fields: JsonObject = {
        "admin_domain": host,
        "domain": host.replace("-admin.", ".", 1),
        "admin_base_url": account["url"],
        "base_url": account["url"],
        **{name: account[name] for name in _OF_PROVIDER},
    }
    if account["deletion_date"]:
        fields["deletion_date"] = account["deletion_date"]
    return fields
