"""Mapping rules: which requests count for which metric, in which order.

Positions have no gaps: insertions and deletions move later rules, and a rule without a position becomes the last rule.
Position 0 is accepted and moves no rule. The rules of a product are listed by position, those of a backend by id.
"""

from __future__ import annotations

import re

from localcloud.threescale import answers, refusals, tables
from localcloud.threescale.answers import Answer
from localcloud.threescale.call import Call, shown
from localcloud.threescale.contract import JsonObject
from localcloud.threescale.parameters import Parameters, as_decimal
from localcloud.threescale.refusals import Complaints
from localcloud.threescale.resources.owners import OwnedRoutes, listed, owned_by, path_of
from localcloud.threescale.store import Record, Store

OWNED = OwnedRoutes("proxy/mapping_rules", "mapping_rules")
ROUTES = OWNED.routes

# The operator's custom resource also allows TRACE and CONNECT, which 3scale refuses.
METHODS = ("GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS")

# A path with at most one `$`, at its end, and an optional query with plain keys, whose values may be variables.
_PATTERN = re.compile(r"\A/[^?$\s]*\$?(\?[^={}&?\s]+=[^&=?\s]*(&[^={}&?\s]+=[^&=?\s]*)*)?\Z")
_BRACES = re.compile(r"[{}]")
_VARIABLE = re.compile(r"\{[\w\-]+\}")


def establish(store: Store, service: Record, hits: Record) -> Record:
    return store.insert(
        tables.MAPPING_RULES,
        **owned_by(service),
        metric_id=hits.id,
        http_method="GET",
        pattern="/",
        delta=1,
        position=1,
        last=False,
    )


def show(call: Call, rule: Record, owner: Record) -> JsonObject:
    of_service = owner.table == tables.SERVICES
    own = f"{path_of(owner)}{'/proxy' if of_service else ''}/mapping_rules/{rule.id}"
    fields: JsonObject = {
        "id": rule.id,
        "metric_id": rule["metric_id"],
        "pattern": rule["pattern"],
        "http_method": rule["http_method"],
        "delta": rule["delta"],
        "position": rule["position"],
        "last": rule["last"],
    }
    if rule["redirect_url"]:
        fields["redirect_url"] = rule["redirect_url"]
    return shown(call, rule, own, fields)


@OWNED.add("GET")
def index(call: Call, owner: Record) -> Answer:
    found, page = listed(call, owner, tables.MAPPING_RULES, "position, id")
    return answers.collection("mapping_rules", "mapping_rule", [show(call, each, owner) for each in found], page)


@OWNED.add("GET", "/{rule}")
def read(call: Call, owner: Record) -> Answer:
    return answers.item("mapping_rule", show(call, _of(call, owner), owner))


@OWNED.add("POST")
def create(call: Call, owner: Record) -> Answer:
    sent = call.parameters.within("mapping_rule", "proxy_rule")
    values = _values(sent)
    complaints = Complaints()
    complaints.if_blank(values, "http_method", "pattern", "delta", "metric_id")
    _validate(call, owner, values, complaints)
    end = call.store.count(tables.MAPPING_RULES, **owned_by(owner)) + 1
    position = _position(sent, end)
    if position > 0:
        call.store.shift(tables.MAPPING_RULES, owned_by(owner), position, None, 1)
    rule = call.store.insert(
        tables.MAPPING_RULES, **{"last": False, "redirect_url": None, **values, **owned_by(owner), "position": position}
    )
    return answers.item("mapping_rule", show(call, rule, owner), created=True)


@OWNED.add("PUT PATCH", "/{rule}")
def change(call: Call, owner: Record) -> Answer:
    rule = _of(call, owner)
    sent = call.parameters.within("mapping_rule", "proxy_rule")
    values = _values(sent)
    complaints = Complaints()
    known = {name: rule[name] for name in ("http_method", "pattern", "delta", "metric_id")}
    complaints.if_blank({**known, **values}, *known)
    _validate(call, owner, values, complaints)
    if "position" in sent:
        end = call.store.count(tables.MAPPING_RULES, **owned_by(owner))
        values["position"] = _move(call.store, owner, rule, _position(sent, end))
    return answers.item("mapping_rule", show(call, call.store.update(rule, **values), owner))


@OWNED.add("DELETE", "/{rule}")
def delete(call: Call, owner: Record) -> Answer:
    rule = _of(call, owner)
    call.store.delete(rule)
    call.store.shift(tables.MAPPING_RULES, owned_by(owner), rule.number("position") + 1, None, -1)
    return answers.done()


def _of(call: Call, owner: Record) -> Record:
    return call.find(tables.MAPPING_RULES, **owned_by(owner), id=call.id("rule"))


def _values(sent: Parameters) -> JsonObject:
    values = sent.texts(("http_method", "pattern", "redirect_url"))
    values |= sent.flags(("last",))
    return values | {name: sent.get(name) for name in ("delta", "metric_id") if name in sent}


def _validate(call: Call, owner: Record, values: JsonObject, complaints: Complaints) -> None:
    if values.get("http_method"):
        complaints.if_unlisted(values, "http_method", METHODS)
    pattern = values.get("pattern")
    if isinstance(pattern, str) and pattern and not is_pattern(pattern):
        complaints.add("pattern", refusals.INVALID)
    complaints.if_too_long(values, "pattern")
    if values.get("delta") not in (None, ""):
        delta = as_decimal(values["delta"])
        if delta is None:
            complaints.add("delta", refusals.NOT_A_NUMBER)
        elif delta <= 0:
            complaints.add("delta", refusals.NOT_POSITIVE)
        else:
            values["delta"] = int(delta)
    if values.get("metric_id") not in (None, ""):
        metric_id = as_decimal(values["metric_id"])
        found = metric_id is not None and call.store.find(tables.METRICS, **owned_by(owner), id=int(metric_id))
        if found:
            values["metric_id"] = found.id
        else:
            complaints.add("metric_id", refusals.INVALID)
    complaints.settle()


def is_pattern(pattern: str) -> bool:
    """Whether the pattern is valid: `$` stands only at the path's end, and a query's keys are no variables (`{id}`)."""
    return bool(_PATTERN.match(pattern)) and not _BRACES.search(_VARIABLE.sub("", pattern))


def _position(sent: Parameters, end: int) -> int:
    wanted = sent.integer("position")
    return end if wanted is None else max(0, min(wanted, end))


def _move(store: Store, owner: Record, rule: Record, position: int) -> int:
    before = rule.number("position")
    if position == before:
        return before
    store.shift(tables.MAPPING_RULES, owned_by(owner), before + 1, None, -1)
    if position > 0:
        store.shift(tables.MAPPING_RULES, owned_by(owner), position, None, 1)
    return position
