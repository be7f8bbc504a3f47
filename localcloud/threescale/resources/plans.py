"""Application and service plans of a product, and account plans of a tenant.

A new product has a default service plan and no application plan; a new tenant has a default account plan. New plans are
hidden; a `state_event` publishes or hides them. An application plan with applications cannot be deleted.
"""

from __future__ import annotations

from pydantic import JsonValue

from localcloud.threescale import answers, names, refusals, tables
from localcloud.threescale.answers import Answer
from localcloud.threescale.call import Call, Routes, shown
from localcloud.threescale.contract import JsonObject
from localcloud.threescale.parameters import Parameters, as_decimal
from localcloud.threescale.refusals import Complaints
from localcloud.threescale.store import Record, Store

ROUTES = Routes()

APPLICATION = "application"
SERVICE = "service"
ACCOUNT = "account"

HIDDEN = "hidden"
PUBLISHED = "published"

_DEFAULTS: JsonObject = {
    "setup_fee": 0.0,
    "cost_per_month": 0.0,
    "trial_period_days": 0,
    "cancellation_period": 0,
    "approval_required": False,
    "custom": False,
}
_EVENTS = {"publish": (HIDDEN, PUBLISHED), "hide": (PUBLISHED, HIDDEN)}
_IN_USE = "This application plan cannot be deleted! At least one application depends on it."


def establish_default(store: Store, tenant: Record, kind: str, service: Record | None = None) -> Record:
    """Create the published plan that is used if a request names no plan."""
    return establish(store, tenant, kind, service, "Default", default=True)


def establish(
    store: Store, tenant: Record, kind: str, service: Record | None, name: str, *, default: bool = False
) -> Record:
    return store.insert(
        tables.PLANS,
        **{
            **_DEFAULTS,
            "tenant_id": tenant.id,
            "service_id": service.id if service is not None else None,
            "kind": kind,
            "name": name,
            "system_name": name.lower(),
            "state": PUBLISHED,
            "is_default": int(default),
        },
    )


def default_of(store: Store, tenant: Record, kind: str, service: Record | None = None) -> Record | None:
    owner = service.id if service is not None else None
    return store.find(tables.PLANS, tenant_id=tenant.id, kind=kind, service_id=owner, is_default=1)


def application_plan_of(call: Call) -> Record:
    plan = call.find(tables.PLANS, id=call.id("plan"), tenant_id=call.tenant.id, kind=APPLICATION)
    if call.store.get(tables.SERVICES, plan.number("service_id"))["deleted"] is not None:
        raise refusals.not_found()
    return plan


def show(call: Call, plan: Record) -> JsonObject:
    fields: JsonObject = {
        "id": plan.id,
        "name": plan["name"],
        "state": plan["state"],
        **{name: plan[name] for name in _DEFAULTS},
        "default": bool(plan["is_default"]),
        "system_name": plan["system_name"],
    }
    kind = plan.text("kind")
    within = "" if kind == ACCOUNT else f"/services/{plan['service_id']}"
    return shown(call, plan, f"/admin/api{within}/{kind}_plans/{plan.id}", fields)


class _Plans:
    def __init__(self, kind: str, within: str) -> None:
        self.kind = kind
        self.wrapper = f"{kind}_plan"
        path = f"/admin/api{within}/{self.wrapper}s"
        ROUTES.add("GET", path)(self.index)
        ROUTES.add("POST", path)(self.create)
        ROUTES.add("GET", f"{path}/{{plan}}")(self.read)
        ROUTES.add("PUT PATCH", f"{path}/{{plan}}")(self.change)
        ROUTES.add("DELETE", f"{path}/{{plan}}")(self.delete)
        ROUTES.add("PUT", f"{path}/{{plan}}/default")(self.make_default)

    def index(self, call: Call) -> Answer:
        return _listed(call, self.wrapper, call.all(tables.PLANS, **self._owner(call)))

    def read(self, call: Call) -> Answer:
        return answers.item(self.wrapper, show(call, self._of(call)))

    def create(self, call: Call) -> Answer:
        owner = self._owner(call)
        sent = call.parameters.within(self.wrapper, "plan")
        system_name = names.system_name_of(sent)
        complaints = Complaints()
        values = _values(sent, complaints)
        complaints.if_blank(values, "name")
        complaints.if_too_long({"system_name": system_name}, "system_name")
        if system_name and call.store.find(tables.PLANS, **owner, system_name=system_name):
            complaints.add("system_name", refusals.TAKEN)
        complaints.settle()
        state = _state_after(HIDDEN, sent)
        plan = call.store.insert(
            tables.PLANS, **{**_DEFAULTS, **values, **owner, "system_name": system_name, "state": state}
        )
        return answers.item(self.wrapper, show(call, plan), created=True)

    def change(self, call: Call) -> Answer:
        plan = self._of(call)
        sent = call.parameters.within(self.wrapper, "plan")
        complaints = Complaints()
        values = _values(sent, complaints)
        complaints.if_blank({"name": plan["name"], **values}, "name")
        complaints.settle()
        state = _state_after(plan.text("state"), sent)
        return answers.item(self.wrapper, show(call, call.store.update(plan, **values, state=state)))

    def delete(self, call: Call) -> Answer:
        plan = self._of(call)
        if call.store.count(tables.APPLICATIONS, plan_id=plan.id):
            raise refusals.undeletable(_IN_USE)
        if call.store.count(tables.SUBSCRIPTIONS, plan_id=plan.id):
            raise refusals.undeletable("This service plan cannot be deleted! At least one subscription depends on it.")
        call.store.delete(plan)
        return answers.done()

    def make_default(self, call: Call) -> Answer:
        plan = self._of(call)
        for other in call.store.all(tables.PLANS, **self._owner(call), is_default=1):
            call.store.update(other, is_default=0)
        return answers.item(self.wrapper, show(call, call.store.update(plan, is_default=1)))

    def _owner(self, call: Call) -> dict[str, JsonValue]:
        service_id: JsonValue = None
        if "service" in call.path:
            found = call.find(tables.SERVICES, id=call.id("service"), tenant_id=call.tenant.id, deleted=None)
            service_id = found.id
        return {"tenant_id": call.tenant.id, "service_id": service_id, "kind": self.kind}

    def _of(self, call: Call) -> Record:
        return call.find(tables.PLANS, **self._owner(call), id=call.id("plan"))


_Plans(APPLICATION, "/services/{service}")
_Plans(SERVICE, "/services/{service}")
_Plans(ACCOUNT, "")


@ROUTES.add("GET", "/admin/api/application_plans")
def index_of_applications(call: Call) -> Answer:
    return _listed(call, "application_plan", _of_live_services(call, APPLICATION))


@ROUTES.add("GET", "/admin/api/service_plans")
def index_of_services(call: Call) -> Answer:
    return _listed(call, "service_plan", _of_live_services(call, SERVICE))


def _of_live_services(call: Call, kind: str) -> list[Record]:
    live = {service.id for service in call.store.all(tables.SERVICES, tenant_id=call.tenant.id, deleted=None)}
    found = call.all(tables.PLANS, tenant_id=call.tenant.id, kind=kind)
    return [plan for plan in found if plan["service_id"] in live]


def _listed(call: Call, wrapper: str, found: list[Record]) -> Answer:
    return answers.collection("plans", wrapper, [show(call, each) for each in found])


def _values(sent: Parameters, complaints: Complaints) -> JsonObject:
    values = sent.texts(("name",)) | sent.flags(("approval_required",))
    complaints.if_too_long(values, "name")
    for name in ("setup_fee", "cost_per_month", "trial_period_days", "cancellation_period"):
        if name not in sent:
            continue
        given = sent.get(name)
        number = as_decimal(given)
        if number is None and given not in (None, ""):
            complaints.add(name, refusals.NOT_A_NUMBER)
        elif number is not None and number < 0:
            complaints.add(name, refusals.NEGATIVE)
        else:
            whole = name in ("trial_period_days", "cancellation_period")
            values[name] = int(number or 0) if whole else float(number or 0)
    return values


def _state_after(state: str, sent: Parameters) -> str:
    event = sent.text("state_event")
    if not event:
        return state
    if event not in _EVENTS:
        raise refusals.invalid({"state_event": ["invalid"]})
    before, after = _EVENTS[event]
    if state != before:
        raise refusals.invalid({"state_event": [f"cannot transition when {state}"]})
    return after
