"""Metrics and methods of products and backends.

A method is a metric under `hits`. System and friendly names are unique within the owner, over metrics and methods. A
backend's system names end in its id (`hits.42`), whatever was sent. `hits` cannot be deleted, nor a metric counted in
the gateway's latest configuration.
"""

from __future__ import annotations

from collections.abc import Callable

from localcloud.threescale import answers, names, refusals, tables
from localcloud.threescale.answers import Answer
from localcloud.threescale.call import Call, Routes, shown
from localcloud.threescale.contract import JsonObject
from localcloud.threescale.parameters import Parameters
from localcloud.threescale.refusals import Complaints
from localcloud.threescale.store import Record, Store

ROUTES = Routes()

HITS = "hits"

_OF_SERVICE = "/admin/api/services/{service}/metrics"
_OF_BACKEND = "/admin/api/backend_apis/{backend}/metrics"


def owner_of(call: Call) -> Record:
    table, name = (tables.SERVICES, "service") if "service" in call.path else (tables.BACKENDS, "backend")
    return call.find(table, id=call.id(name), tenant_id=call.tenant.id, deleted=None)


def owned_by(owner: Record) -> dict[str, int | None]:
    if owner.table == tables.SERVICES:
        return {"service_id": owner.id, "backend_id": None}
    return {"service_id": None, "backend_id": owner.id}


def path_of(owner: Record) -> str:
    return f"/admin/api/{'services' if owner.table == tables.SERVICES else 'backend_apis'}/{owner.id}"


def hits_of(store: Store, owner: Record) -> Record:
    found = store.find(tables.METRICS, **owned_by(owner), system_name=_suffixed(owner, HITS))
    assert found is not None, f"{owner.table} {owner.id} has no hits"
    return found


def establish_hits(store: Store, owner: Record) -> Record:
    return store.insert(
        tables.METRICS,
        **owned_by(owner),
        system_name=_suffixed(owner, HITS),
        friendly_name="Hits",
        unit="hit",
        description="Number of API hits",
    )


def show(call: Call, metric: Record, owner: Record) -> JsonObject:
    """A method in the format of metrics, too."""
    own = f"{path_of(owner)}/metrics/{metric.id}"
    fields: JsonObject = {"id": metric.id}
    if owner.table == tables.SERVICES:
        fields["name"] = metric["system_name"]
    fields |= {
        "system_name": metric["system_name"],
        "friendly_name": metric["friendly_name"],
        "description": metric["description"] or None,
        "unit": metric["unit"],
    }
    if metric["parent_id"] is not None:
        fields["parent_id"] = metric["parent_id"]
    return shown(call, metric, own, fields)


def show_method(call: Call, method: Record, owner: Record) -> JsonObject:
    fields: JsonObject = {"id": method.id}
    if owner.table == tables.SERVICES:
        fields["name"] = method["system_name"]
    fields |= {
        "system_name": method["system_name"],
        "friendly_name": method["friendly_name"],
        "description": method["description"] or None,
        "parent_id": method["parent_id"],
    }
    return shown(call, method, f"{path_of(owner)}/metrics/{method['parent_id']}/methods/{method.id}", fields)


@ROUTES.add("GET", _OF_SERVICE)
def index_of_service(call: Call) -> Answer:
    owner = owner_of(call)
    found = call.all(tables.METRICS, **owned_by(owner))
    return answers.collection("metrics", "metric", [show(call, each, owner) for each in found])


@ROUTES.add("GET", _OF_BACKEND, json_only=True)
def index_of_backend(call: Call) -> Answer:
    owner = owner_of(call)
    found, page = call.page(tables.METRICS, **owned_by(owner))
    return answers.collection("metrics", "metric", [show(call, each, owner) for each in found], page)


def create(call: Call) -> Answer:
    owner = owner_of(call)
    sent = call.parameters.within("metric")
    return answers.item("metric", show(call, _insert(call, owner, sent, None), owner), created=True)


def read(call: Call) -> Answer:
    owner = owner_of(call)
    return answers.item("metric", show(call, _of(call, owner), owner))


def change(call: Call) -> Answer:
    owner = owner_of(call)
    return answers.item("metric", show(call, _update(call, owner, _of(call, owner), "metric"), owner))


def delete(call: Call) -> Answer:
    """Deletes its rules, limits and prices, too."""
    owner = owner_of(call)
    return _delete(call, owner, _of(call, owner))


def index_methods(call: Call) -> Answer:
    owner = owner_of(call)
    parent = _of(call, owner)
    if owner.table == tables.SERVICES:
        found, page = call.all(tables.METRICS, **owned_by(owner), parent_id=parent.id), None
    else:
        found, page = call.page(tables.METRICS, **owned_by(owner), parent_id=parent.id)
    return answers.collection("methods", "method", [show_method(call, each, owner) for each in found], page)


def create_method(call: Call) -> Answer:
    """Works under `hits` only."""
    owner = owner_of(call)
    parent = _of(call, owner)
    if parent.id != hits_of(call.store, owner).id:
        raise refusals.invalid({"parent_id": [refusals.INVALID]})
    sent = call.parameters.within("method", "metric")
    return answers.item("method", show_method(call, _insert(call, owner, sent, parent), owner), created=True)


def read_method(call: Call) -> Answer:
    owner = owner_of(call)
    return answers.item("method", show_method(call, _method_of(call, owner), owner))


def change_method(call: Call) -> Answer:
    owner = owner_of(call)
    return answers.item("method", show_method(call, _update(call, owner, _method_of(call, owner), "method"), owner))


def delete_method(call: Call) -> Answer:
    """Deletes its rules, limits and prices, too."""
    owner = owner_of(call)
    return _delete(call, owner, _method_of(call, owner))


def _enter(methods: str, path: str, handler: Callable[[Call], Answer]) -> None:
    ROUTES.add(methods, f"{_OF_SERVICE}{path}")(handler)
    ROUTES.add(methods, f"{_OF_BACKEND}{path}", json_only=True)(handler)


_enter("POST", "", create)
_enter("GET", "/{metric}", read)
_enter("PUT PATCH", "/{metric}", change)
_enter("DELETE", "/{metric}", delete)
_enter("GET", "/{metric}/methods", index_methods)
_enter("POST", "/{metric}/methods", create_method)
_enter("GET", "/{metric}/methods/{method}", read_method)
_enter("PUT PATCH", "/{metric}/methods/{method}", change_method)
_enter("DELETE", "/{metric}/methods/{method}", delete_method)


def _of(call: Call, owner: Record) -> Record:
    return call.find(tables.METRICS, **owned_by(owner), id=call.id("metric"))


def _method_of(call: Call, owner: Record) -> Record:
    return call.find(tables.METRICS, **owned_by(owner), id=call.id("method"), parent_id=call.id("metric"))


def _insert(call: Call, owner: Record, sent: Parameters, parent: Record | None) -> Record:
    values = sent.texts(("friendly_name", "unit", "description"))
    if parent is not None:
        values["unit"] = parent["unit"]
    bare = names.system_name_of(sent, "friendly_name")
    system_name = _suffixed(owner, bare) if bare else ""
    complaints = Complaints()
    complaints.if_blank(values, "friendly_name", "unit")
    complaints.if_too_long(values, "friendly_name", "unit")
    names.if_malformed(complaints, bare)
    if call.store.find(tables.METRICS, **owned_by(owner), system_name=system_name):
        complaints.add("system_name", refusals.TAKEN)
    if call.store.find(tables.METRICS, **owned_by(owner), friendly_name=values.get("friendly_name") or ""):
        complaints.add("friendly_name", refusals.TAKEN)
    complaints.settle()
    return call.store.insert(
        tables.METRICS,
        **values,
        **owned_by(owner),
        parent_id=parent.id if parent is not None else None,
        system_name=system_name,
    )


def _update(call: Call, owner: Record, metric: Record, wrapper: str) -> Record:
    sent = call.parameters.within(wrapper, "metric")
    values = sent.texts(("friendly_name", "unit", "description"))
    if metric["parent_id"] is not None:
        values.pop("unit", None)
    complaints = Complaints()
    known = {"friendly_name": metric["friendly_name"], "unit": metric["unit"]}
    complaints.if_blank({**known, **values}, "friendly_name", "unit")
    complaints.if_too_long(values, "friendly_name", "unit")
    if "friendly_name" in values:
        other = call.store.find(tables.METRICS, **owned_by(owner), friendly_name=values["friendly_name"])
        if other is not None and other.id != metric.id:
            complaints.add("friendly_name", refusals.TAKEN)
    complaints.settle()
    return call.store.update(metric, **values)


def _delete(call: Call, owner: Record, metric: Record) -> Answer:
    kind = "Method" if metric["parent_id"] is not None else "Metric"
    if metric.id == hits_of(call.store, owner).id:
        raise refusals.undeletable("The Hits metric cannot be deleted")
    if _is_in_gateway(call.store, owner, metric):
        raise refusals.undeletable(f"{kind} is used by the latest gateway configuration and cannot be deleted")
    _close_gaps(call.store, owner, metric)
    call.store.delete(metric)
    return answers.done()


def _is_in_gateway(store: Store, owner: Record, metric: Record) -> bool:
    if owner.table == tables.SERVICES:
        services = [owner.id]
    else:
        services = [usage.number("service_id") for usage in store.all(tables.BACKEND_USAGES, backend_id=owner.id)]
    for service_id in services:
        for environment in ("sandbox", "production"):
            configs = store.all(tables.PROXY_CONFIGS, "version DESC", service_id=service_id, environment=environment)
            if configs and metric.id in configs[0].array("metric_ids"):
                return True
    return False


def _close_gaps(store: Store, owner: Record, metric: Record) -> None:
    """Call it before the rules are deleted."""
    for rule in reversed(store.all(tables.MAPPING_RULES, "position", **owned_by(owner), metric_id=metric.id)):
        store.delete(rule)
        store.shift(tables.MAPPING_RULES, owned_by(owner), rule.number("position") + 1, None, -1)


def _suffixed(owner: Record, system_name: str) -> str:
    if owner.table == tables.SERVICES:
        return system_name
    suffix = f".{owner.id}"
    return system_name if system_name.endswith(suffix) else f"{system_name}{suffix}"
