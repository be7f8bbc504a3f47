"""Keys of applications. An application has at most five keys, with OIDC at most one. A key has 5 to 255 characters."""

from __future__ import annotations

from http import HTTPStatus

from localcloud.threescale import answers, names, refusals, tables
from localcloud.threescale.answers import Answer
from localcloud.threescale.call import Call, Routes
from localcloud.threescale.refusals import Complaints
from localcloud.threescale.resources import applications
from localcloud.threescale.store import Record

ROUTES = Routes()

_PATH = "/admin/api/accounts/{account}/applications/{application}/keys"
_MOST = 5
_MOST_WITH_OIDC = 1


@ROUTES.add("GET", _PATH)
def index(call: Call) -> Answer:
    found = call.store.all(tables.KEYS, application=applications.of(call).id)
    shown = [{name: key[name] for name in ("value", "created_at", "updated_at")} for key in found]
    return answers.collection("keys", "key", shown)


@ROUTES.add("POST", _PATH)
def create(call: Call) -> Answer:
    application = applications.of(call)
    key = call.parameters.within("application_key").required("key")
    if call.store.count(tables.KEYS, application=application.id) >= _most(call, application):
        raise refusals.invalid({"base": ["Limit reached"]})
    complaints = Complaints()
    names.if_malformed_key(complaints, key)
    if call.store.find(tables.KEYS, application=application.id, value=key):
        complaints.add("value", refusals.TAKEN)
    complaints.settle()
    call.store.insert(tables.KEYS, application=application.id, value=key)
    return Answer(HTTPStatus.CREATED, {"application": applications.show(call, application)})


@ROUTES.add("DELETE", f"{_PATH}/{{key:[^/]+?}}")
def delete(call: Call) -> Answer:
    application = applications.of(call)
    call.store.delete(call.find(tables.KEYS, application=application.id, value=call.path["key"]))
    return answers.done()


def _most(call: Call, application: Record) -> int:
    service = call.store.get(tables.SERVICES, application.number("service_id"))
    return _MOST_WITH_OIDC if service["backend_version"] in ("oidc", "oauth") else _MOST
