"""Services, called products by users.

A new service is `incomplete` and has no application plan and no backend. A tenant's last or default service cannot be
deleted.
"""

from __future__ import annotations

import time

from localcloud.threescale import answers, names, refusals, tables
from localcloud.threescale.answers import Answer
from localcloud.threescale.call import Call, Routes, shown
from localcloud.threescale.contract import JsonObject
from localcloud.threescale.parameters import Parameters
from localcloud.threescale.refusals import Complaints
from localcloud.threescale.resources import mapping_rules, metrics, plans, proxies
from localcloud.threescale.store import Record, Store

ROUTES = Routes()

BACKEND_VERSIONS = ("1", "2", "oauth", "oidc")
DEPLOYMENT_OPTIONS = ("hosted", "self_managed", "service_mesh_istio")

_TEXTS = (
    "name",
    "description",
    "support_email",
    "deployment_option",
    "backend_version",
    "buyer_plan_change_permission",
    "tech_support_email",
    "admin_support_email",
)
_TEXTS_WITH_LIMIT = tuple(name for name in _TEXTS if name != "description")
_FLAGS: JsonObject = {
    "intentions_required": False,
    "buyers_manage_apps": True,
    "buyers_manage_keys": True,
    "referrer_filters_required": False,
    "custom_keys_enabled": True,
    "buyer_key_regenerate_enabled": True,
    "mandatory_app_key": True,
    "buyer_can_select_plan": False,
}
_DEFAULTS: JsonObject = {
    **_FLAGS,
    "description": None,
    "support_email": "",
    "deployment_option": "hosted",
    "backend_version": "1",
    "buyer_plan_change_permission": "request",
    "notification_settings": {"web_provider": [], "email_provider": [], "web_buyer": [], "email_buyer": []},
}


def of(call: Call, name: str = "service") -> Record:
    return call.find(tables.SERVICES, id=call.id(name), tenant_id=call.tenant.id, deleted=None)


def path_of(service: Record) -> str:
    return f"/admin/api/services/{service.id}"


def show(call: Call, service: Record) -> JsonObject:
    own = path_of(service)
    fields: JsonObject = {
        "id": service.id,
        "name": service["name"],
        "state": service["state"],
        "system_name": service["system_name"],
        "backend_version": service["backend_version"],
        "deployment_option": service["deployment_option"],
        "support_email": service["support_email"],
        "description": service["description"] or None,
        **{name: service[name] for name in _FLAGS},
        "buyer_plan_change_permission": service["buyer_plan_change_permission"],
        "notification_settings": service["notification_settings"],
        "annotations": service.object("annotations"),
    }
    return shown(call, service, own, fields, metrics=f"{own}/metrics", proxy=f"{own}/proxy")


@ROUTES.add("GET", "/admin/api/services")
def index(call: Call) -> Answer:
    found, page = call.page(tables.SERVICES, tenant_id=call.tenant.id, deleted=None)
    return answers.collection("services", "service", [show(call, each) for each in found], page)


@ROUTES.add("GET", "/admin/api/services/{service}")
def read(call: Call) -> Answer:
    return answers.item("service", show(call, of(call)))


@ROUTES.add("POST", "/admin/api/services")
def create(call: Call) -> Answer:
    limit = call.config.service_limit
    if call.tenant["kind"] == "master" or (limit is not None and _count(call) >= limit):
        raise refusals.forbidden_without_words()
    sent = call.parameters.within("service")
    system_name = names.system_name_of(sent)
    values = _DEFAULTS | _changes(sent)
    complaints = _complaints(values)
    names.if_malformed(complaints, system_name)
    if system_name and call.store.find(tables.SERVICES, tenant_id=call.tenant.id, system_name=system_name):
        complaints.add("system_name", refusals.TAKEN)
    complaints.settle()
    service = establish(call.store, call.tenant, system_name, values | {"annotations": sent.annotations({})})
    return answers.item("service", show(call, service), created=True)


@ROUTES.add("PUT PATCH", "/admin/api/services/{service}")
def change(call: Call) -> Answer:
    service = of(call)
    sent = call.parameters.within("service")
    changes = _changes(sent)
    _complaints({"name": service["name"], **changes}).settle()
    changed = call.store.update(service, **changes, annotations=sent.annotations(service.object("annotations")))
    if changed["deployment_option"] != service["deployment_option"]:
        proxies.readdress(call.store, call.tenant, changed)
    return answers.item("service", show(call, changed))


@ROUTES.add("DELETE", "/admin/api/services/{service}")
def delete(call: Call) -> Answer:
    service = of(call)
    if service["is_default"] or _count(call) == 1:
        raise refusals.transition("mark_as_deleted", service.text("state"), {"service": show(call, service)})
    call.store.update(service, state="deleted", deleted=time.time())
    return answers.done()


def establish(store: Store, tenant: Record, system_name: str, values: JsonObject, *, default: bool = False) -> Record:
    service = store.insert(
        tables.SERVICES,
        **{
            **_DEFAULTS,
            **values,
            "tenant_id": tenant.id,
            "system_name": system_name,
            "state": "incomplete",
            "is_default": int(default),
        },
    )
    hits = metrics.establish_hits(store, service)
    proxies.establish(store, tenant, service)
    mapping_rules.establish(store, service, hits)
    plans.establish_default(store, tenant, "service", service)
    return service


def _count(call: Call) -> int:
    return call.store.count(tables.SERVICES, tenant_id=call.tenant.id, deleted=None)


def _changes(sent: Parameters) -> JsonObject:
    changes = sent.texts(_TEXTS) | sent.flags(_FLAGS)
    settings = sent.get("notification_settings")
    return changes | ({"notification_settings": settings} if isinstance(settings, dict) else {})


def _complaints(values: JsonObject) -> Complaints:
    complaints = Complaints()
    complaints.if_blank(values, "name")
    complaints.if_too_long(values, *_TEXTS_WITH_LIMIT)
    complaints.if_unlisted(values, "backend_version", BACKEND_VERSIONS)
    complaints.if_unlisted(values, "deployment_option", DEPLOYMENT_OPTIONS)
    return complaints
