"""ActiveDocs: API descriptions, stored as text.

The list has no pages and contains the whole documents. The text must be JSON. If `skip_swagger_validations` is not set,
it must also be a Swagger or OpenAPI document.
"""

from __future__ import annotations

import json

from localcloud.threescale import answers, names, refusals, tables
from localcloud.threescale.answers import Answer
from localcloud.threescale.call import Call, Routes, shown
from localcloud.threescale.contract import JsonObject
from localcloud.threescale.parameters import Parameters, as_integer
from localcloud.threescale.refusals import Complaints
from localcloud.threescale.store import Record

ROUTES = Routes()

_PATH = "/admin/api/active_docs"
_FLAGS = ("published", "skip_swagger_validations")
_REQUIRED = ("info", "paths")


@ROUTES.add("GET", _PATH, json_only=True)
def index(call: Call) -> Answer:
    found = call.all(tables.ACTIVE_DOCS, tenant_id=call.tenant.id)
    return answers.collection("api_docs", "api_doc", [_show(call, each) for each in found])


@ROUTES.add("GET", f"{_PATH}/{{document}}", json_only=True)
def read(call: Call) -> Answer:
    return answers.item("api_doc", _show(call, _of(call)))


@ROUTES.add("POST", _PATH, json_only=True)
def create(call: Call) -> Answer:
    sent = call.parameters.within("api_docs_service", "api_doc", "active_doc")
    values: JsonObject = {"published": False, "skip_swagger_validations": False, "description": None}
    values |= _values(call, sent)
    system_name = names.system_name_of(sent)
    complaints = _complaints(values)
    names.if_malformed(complaints, system_name)
    if call.store.find(tables.ACTIVE_DOCS, tenant_id=call.tenant.id, system_name=system_name):
        complaints.add("system_name", refusals.TAKEN)
    complaints.settle()
    document = call.store.insert(tables.ACTIVE_DOCS, **values, tenant_id=call.tenant.id, system_name=system_name)
    return answers.item("api_doc", _show(call, document), created=True)


@ROUTES.add("PUT PATCH", f"{_PATH}/{{document}}", json_only=True)
def change(call: Call) -> Answer:
    document = _of(call)
    values = _values(call, call.parameters.within("api_docs_service", "api_doc", "active_doc"))
    known = {name: document[name] for name in ("name", "body", *_FLAGS)}
    _complaints({**known, **values}).settle()
    return answers.item("api_doc", _show(call, call.store.update(document, **values)))


@ROUTES.add("DELETE", f"{_PATH}/{{document}}", json_only=True)
def delete(call: Call) -> Answer:
    call.store.delete(_of(call))
    return answers.done()


def _of(call: Call) -> Record:
    return call.find(tables.ACTIVE_DOCS, id=call.id("document"), tenant_id=call.tenant.id)


def _values(call: Call, sent: Parameters) -> JsonObject:
    values = sent.texts(("name", "description", "body")) | sent.flags(_FLAGS)
    if "service_id" in sent:
        given = sent.get("service_id")
        values["service_id"] = None
        if given not in (None, ""):
            found = call.store.find(tables.SERVICES, id=as_integer(given) or 0, tenant_id=call.tenant.id, deleted=None)
            if found is None:
                raise refusals.unprocessable("Service not found")
            values["service_id"] = found.id
    return values


def _complaints(values: JsonObject) -> Complaints:
    complaints = Complaints()
    complaints.if_blank(values, "name", "body")
    complaints.if_too_long(values, "name")
    body = values.get("body")
    if isinstance(body, str) and body:
        _check_body(body, complaints, skip=bool(values.get("skip_swagger_validations")))
    return complaints


def _check_body(body: str, complaints: Complaints, *, skip: bool) -> None:
    try:
        document = json.loads(body)
    except ValueError:
        complaints.add("body", "Invalid JSON")
        return
    if skip:
        return
    described = isinstance(document, dict) and ("swagger" in document or "openapi" in document)
    if not described:
        complaints.add("body", "JSON Spec is invalid")
        return
    for name in _REQUIRED:
        if name not in document:
            complaints.add("body", f"The property '#/' did not contain a required property of '{name}'")


def _show(call: Call, document: Record) -> JsonObject:
    shown_names = ("system_name", "name", "description", *_FLAGS, "body", "service_id")
    fields: JsonObject = {"id": document.id, **{name: document[name] for name in shown_names}}
    return shown(call, document, f"{_PATH}/{document.id}", fields)
