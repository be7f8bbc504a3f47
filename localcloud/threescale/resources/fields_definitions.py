"""Fields definitions: the fields of accounts, users and applications, and which of them a signup requires.

A new tenant has 3scale's default fields. A signup requires only the names of organisation and user, so a signup without
email address or password is accepted.
"""

from __future__ import annotations

from localcloud.threescale import answers, refusals, tables
from localcloud.threescale.answers import Answer
from localcloud.threescale.call import Call, Routes, shown
from localcloud.threescale.contract import JsonObject
from localcloud.threescale.parameters import Parameters, as_text
from localcloud.threescale.refusals import Complaints
from localcloud.threescale.store import Record, Store

ROUTES = Routes()

TARGETS = ("Account", "User", "Cinstance")

_PATH = "/admin/api/fields_definitions"
_FLAGS = ("required", "hidden", "read_only")
# Target, name, label, required.
_DEFAULTS = (
    ("Account", "org_name", "Organization/Group Name", True),
    ("User", "username", "Username", True),
    ("User", "email", "Email", False),
    ("Cinstance", "name", "Name", True),
    ("Cinstance", "description", "Description", False),
)
# The default fields cannot be deleted. Each resource's own `show` contains them, so `values_of` omits them.
_BUILT_IN = {(target, name) for target, name, _, _ in _DEFAULTS}


def establish(store: Store, tenant: Record) -> None:
    for position, (target, name, label, required) in enumerate(_DEFAULTS, 1):
        store.insert(
            tables.FIELDS_DEFINITIONS,
            tenant_id=tenant.id,
            target=target,
            name=name,
            label=label,
            required=required,
            hidden=False,
            read_only=False,
            position=position,
            choices=[],
        )


def names_of(store: Store, tenant_id: int, target: str) -> tuple[str, ...]:
    found = store.all(tables.FIELDS_DEFINITIONS, tenant_id=tenant_id, target=target)
    return tuple(each.text("name") for each in found if (target, each.text("name")) not in _BUILT_IN)


def values_of(store: Store, tenant_id: int, target: str, record: Record) -> JsonObject:
    return {name: record[name] for name in names_of(store, tenant_id, target) if record[name] is not None}


def required_of(store: Store, tenant_id: int, target: str) -> tuple[str, ...]:
    found = store.all(tables.FIELDS_DEFINITIONS, tenant_id=tenant_id, target=target)
    return tuple(each.text("name") for each in found if each["required"])


@ROUTES.add("GET", _PATH)
def index(call: Call) -> Answer:
    found = call.all(tables.FIELDS_DEFINITIONS, tenant_id=call.tenant.id)
    return answers.collection("fields_definitions", "fields_definition", [_show(call, each) for each in found])


@ROUTES.add("GET", f"{_PATH}/{{definition}}")
def read(call: Call) -> Answer:
    return answers.item("fields_definition", _show(call, _of(call)))


@ROUTES.add("POST", _PATH)
def create(call: Call) -> Answer:
    sent = call.parameters.within("fields_definition")
    values = sent.texts(("target", "name", "label")) | _choices_in(sent)
    complaints = Complaints()
    complaints.if_blank(values, "target", "name", "label")
    complaints.if_too_long(values, "name", "label")
    if values.get("target"):
        complaints.if_unlisted(values, "target", TARGETS)
    where = {name: values.get(name) or "" for name in ("target", "name")}
    if call.store.find(tables.FIELDS_DEFINITIONS, tenant_id=call.tenant.id, **where):
        complaints.add("name", refusals.TAKEN)
    complaints.settle()
    definition = call.store.insert(
        tables.FIELDS_DEFINITIONS,
        **{
            **dict.fromkeys(_FLAGS, False),
            "choices": [],
            **values,
            **sent.flags(_FLAGS),
            "tenant_id": call.tenant.id,
            "position": call.store.count(tables.FIELDS_DEFINITIONS, tenant_id=call.tenant.id) + 1,
        },
    )
    return answers.item("fields_definition", _show(call, definition), created=True)


@ROUTES.add("PUT PATCH", f"{_PATH}/{{definition}}")
def change(call: Call) -> Answer:
    sent = call.parameters.within("fields_definition")
    definition = _of(call)
    values = sent.texts(("label",)) | sent.flags(_FLAGS) | _choices_in(sent)
    complaints = Complaints()
    complaints.if_blank({"label": definition["label"], **values}, "label")
    complaints.if_too_long(values, "label")
    complaints.settle()
    return answers.item("fields_definition", _show(call, call.store.update(definition, **values)))


@ROUTES.add("DELETE", f"{_PATH}/{{definition}}")
def delete(call: Call) -> Answer:
    definition = _of(call)
    if (definition.text("target"), definition.text("name")) in _BUILT_IN:
        raise refusals.undeletable("This field cannot be deleted")
    call.store.delete(definition)
    return answers.done()


def _choices_in(sent: Parameters) -> JsonObject:
    choices = sent.get("choices")
    return {"choices": [as_text(each) for each in choices]} if isinstance(choices, list) else {}


def _of(call: Call) -> Record:
    return call.find(tables.FIELDS_DEFINITIONS, id=call.id("definition"), tenant_id=call.tenant.id)


def _show(call: Call, definition: Record) -> JsonObject:
    names = ("target", "name", "label", "required", "hidden", "read_only", "position", "choices")
    fields: JsonObject = {"id": definition.id, **{name: definition[name] for name in names}}
    return shown(call, definition, f"{_PATH}/{definition.id}", fields)
