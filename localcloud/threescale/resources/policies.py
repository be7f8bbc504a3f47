"""Policies: a product's chain, and a tenant's registry of its own policies.

Changing the chain deploys to the sandbox. The registry needs a scope of its own. A policy that a chain uses can be
neither changed nor deleted.
"""

from __future__ import annotations

import json

from pydantic import JsonValue

from localcloud.threescale import answers, refusals, tables
from localcloud.threescale.answers import Answer
from localcloud.threescale.call import POLICY_REGISTRY, Call, Routes, shown
from localcloud.threescale.contract import JsonObject
from localcloud.threescale.refusals import Complaints
from localcloud.threescale.resources import proxies, proxy_configs
from localcloud.threescale.resources.proxy_configs import APICAST
from localcloud.threescale.store import Record

ROUTES = Routes()

_CHAIN = "/admin/api/services/{service}/proxy/policies"
_REGISTRY = "/admin/api/registry/policies"
# What a policy's meta schema requires.
_SCHEMA_TEXTS = ("name", "version", "summary", "$schema")
_IN_USE = "is used by at least one policy chain"


@ROUTES.add("GET", _CHAIN)
def read_chain(call: Call) -> Answer:
    return Answer(body={"policies_config": proxies.of(call)[1]["policies_config"]})


@ROUTES.add("PUT PATCH", _CHAIN)
def change_chain(call: Call) -> Answer:
    service, proxy = proxies.of(call)
    sent = call.parameters.within("proxy").get("policies_config")
    if sent is None:
        raise refusals.missing("policies_config")
    proxy = call.store.update(proxy, policies_config=_chain(sent))
    proxy_configs.deploy(call.store, service, proxy)
    return Answer(body={"policies_config": proxy["policies_config"]})


@ROUTES.add("GET", _REGISTRY, scope=POLICY_REGISTRY, json_only=True)
def index(call: Call) -> Answer:
    found = call.all(tables.POLICIES, tenant_id=call.tenant.id)
    return answers.collection("policies", "policy", [_show(call, each) for each in found])


@ROUTES.add("GET", f"{_REGISTRY}/{{policy}}", scope=POLICY_REGISTRY, json_only=True)
def read(call: Call) -> Answer:
    return answers.item("policy", _show(call, _of(call)))


@ROUTES.add("POST", _REGISTRY, scope=POLICY_REGISTRY, json_only=True)
def create(call: Call) -> Answer:
    values = _values(call, {})
    complaints = _complaints(values)
    if call.store.find(tables.POLICIES, tenant_id=call.tenant.id, name=values["name"], version=values["version"]):
        complaints.add("version", refusals.TAKEN)
    complaints.settle()
    policy = call.store.insert(tables.POLICIES, **values, tenant_id=call.tenant.id)
    return answers.item("policy", _show(call, policy), created=True)


@ROUTES.add("PUT PATCH", f"{_REGISTRY}/{{policy}}", scope=POLICY_REGISTRY, json_only=True)
def change(call: Call) -> Answer:
    policy = _of(call)
    values = _values(call, {name: policy[name] for name in ("name", "version", "schema")})
    complaints = _complaints(values)
    other = call.store.find(tables.POLICIES, tenant_id=call.tenant.id, name=values["name"], version=values["version"])
    if other is not None and other.id != policy.id:
        complaints.add("version", refusals.TAKEN)
    if _is_used(call, policy):
        complaints.add("base", _IN_USE)
    complaints.settle()
    return answers.item("policy", _show(call, call.store.update(policy, **values)))


@ROUTES.add("DELETE", f"{_REGISTRY}/{{policy}}", scope=POLICY_REGISTRY, json_only=True)
def delete(call: Call) -> Answer:
    policy = _of(call)
    if _is_used(call, policy):
        raise refusals.undeletable(_IN_USE)
    call.store.delete(policy)
    return answers.done()


def _of(call: Call) -> Record:
    return call.find(tables.POLICIES, id=call.id("policy"), tenant_id=call.tenant.id)


def _show(call: Call, policy: Record) -> JsonObject:
    fields: JsonObject = {
        "id": policy.id,
        "name": policy["name"],
        "version": policy["version"],
        "schema": policy["schema"],
    }
    return shown(call, policy, f"{_REGISTRY}/{policy.id}", fields)


def _values(call: Call, known: JsonObject) -> JsonObject:
    sent = call.parameters.within("policy")
    values: JsonObject = {"name": None, "version": None, "schema": None} | known
    values |= sent.texts(("name", "version"))
    if "schema" in sent:
        values["schema"] = _parsed(sent.get("schema"))
    return values


def _complaints(values: JsonObject) -> Complaints:
    complaints = Complaints()
    complaints.if_blank(values, "name", "version")
    complaints.if_too_long(values, "name", "version")
    if values["version"] == "builtin":
        complaints.add("version", refusals.INVALID)
    schema = values["schema"]
    if not isinstance(schema, dict):
        complaints.add("schema", refusals.BLANK if not schema else refusals.INVALID)
        return complaints
    for name in _SCHEMA_TEXTS:
        if not isinstance(schema.get(name), str) or not schema[name]:
            complaints.add("schema", f"The property '#/' did not contain a required property of '{name}'")
    if not isinstance(schema.get("configuration"), dict):
        complaints.add("schema", "The property '#/' did not contain a required property of 'configuration'")
    if schema.get("version") not in (None, values["version"]):
        complaints.add("version", "must match the version of the schema")
    return complaints


def _is_used(call: Call, policy: Record) -> bool:
    for service in call.store.all(tables.SERVICES, tenant_id=call.tenant.id, deleted=None):
        for entry in proxies.of_service(call.store, service).array("policies_config"):
            if isinstance(entry, dict) and all(entry.get(name) == policy[name] for name in ("name", "version")):
                return True
    return False


def _chain(sent: JsonValue) -> list[JsonValue]:
    entries = _parsed(sent)
    if not isinstance(entries, list):
        raise refusals.invalid({"policies_config": [refusals.INVALID]})
    chain: list[JsonValue] = []
    for entry in entries:
        complete = isinstance(entry, dict) and entry.get("name") and entry.get("version")
        if not isinstance(entry, dict) or not complete or not isinstance(entry.get("configuration", {}), dict):
            raise refusals.invalid({"policies_config": [refusals.INVALID]})
        chain.append(
            {
                "name": entry["name"],
                "version": entry["version"],
                "configuration": entry.get("configuration", {}),
                "enabled": bool(entry.get("enabled", True)),
            }
        )
    if not any(isinstance(entry, dict) and entry["name"] == APICAST["name"] for entry in chain):
        chain.append(APICAST)
    return chain


def _parsed(sent: JsonValue) -> JsonValue:
    if not isinstance(sent, str):
        return sent
    try:
        parsed: JsonValue = json.loads(sent)
    except ValueError:
        return sent
    return parsed
