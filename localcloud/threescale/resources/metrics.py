"""Metrics and methods of products and backends.

A method is a metric under `hits`. System and friendly names are unique among the owner's metrics and methods. `hits`
cannot be deleted, nor can a metric that the gateway's latest configuration uses.
"""

from __future__ import annotations

from localcloud.threescale import answers, names, refusals, tables
from localcloud.threescale.answers import Answer
from localcloud.threescale.call import Call, shown
from localcloud.threescale.contract import JsonObject
from localcloud.threescale.parameters import Parameters
from localcloud.threescale.refusals import Complaints
from localcloud.threescale.resources.owners import OwnedRoutes, listed, owned_by, path_of
from localcloud.threescale.store import Record, Store

OWNED = OwnedRoutes("metrics", "metrics")
ROUTES = OWNED.routes

HITS = "hits"


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


@OWNED.add("GET")
def index(call: Call, owner: Record) -> Answer:
    found, page = listed(call, owner, tables.METRICS)
    return answers.collection("metrics", "metric", [show(call, each, owner) for each in found], page)


@OWNED.add("POST")
def create(call: Call, owner: Record) -> Answer:
    sent = call.parameters.within("metric")
    return answers.item("metric", show(call, _insert(call, owner, sent, None), owner), created=True)


@OWNED.add("GET", "/{metric}")
def read(call: Call, owner: Record) -> Answer:
    return answers.item("metric", show(call, _of(call, owner), owner))


@OWNED.add("PUT PATCH", "/{metric}")
def change(call: Call, owner: Record) -> Answer:
    return answers.item("metric", show(call, _update(call, owner, _of(call, owner), "metric"), owner))


@OWNED.add("DELETE", "/{metric}")
def delete(call: Call, owner: Record) -> Answer:
    return _delete(call, owner, _of(call, owner))


@OWNED.add("GET", "/{metric}/methods")
def index_methods(call: Call, owner: Record) -> Answer:
    parent = _of(call, owner)
    found, page = listed(call, owner, tables.METRICS, parent_id=parent.id)
    return answers.collection("methods", "method", [show_method(call, each, owner) for each in found], page)


@OWNED.add("POST", "/{metric}/methods")
def create_method(call: Call, owner: Record) -> Answer:
    parent = _of(call, owner)
    if parent.id != hits_of(call.store, owner).id:
        raise refusals.invalid({"parent_id": [refusals.INVALID]})
    sent = call.parameters.within("method", "metric")
    return answers.item("method", show_method(call, _insert(call, owner, sent, parent), owner), created=True)


@OWNED.add("GET", "/{metric}/methods/{method}")
def read_method(call: Call, owner: Record) -> Answer:
    return answers.item("method", show_method(call, _method_of(call, owner), owner))


@OWNED.add("PUT PATCH", "/{metric}/methods/{method}")
def change_method(call: Call, owner: Record) -> Answer:
    return answers.item("method", show_method(call, _update(call, owner, _method_of(call, owner), "method"), owner))


@OWNED.add("DELETE", "/{metric}/methods/{method}")
def delete_method(call: Call, owner: Record) -> Answer:
    return _delete(call, owner, _method_of(call, owner))


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
    """Delete the metric's rules, and close the gaps that they leave in the positions."""
    for rule in reversed(store.all(tables.MAPPING_RULES, "position", **owned_by(owner), metric_id=metric.id)):
        store.delete(rule)
        store.shift(tables.MAPPING_RULES, owned_by(owner), rule.number("position") + 1, None, -1)


def _suffixed(owner: Record, system_name: str) -> str:
    if owner.table == tables.SERVICES:
        return system_name
    suffix = f".{owner.id}"
    return system_name if system_name.endswith(suffix) else f"{system_name}{suffix}"
