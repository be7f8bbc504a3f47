"""Finds drift by comparing a tenant's lists in 3scale with the objects.

Each list is read page by page. An object has drifted if its status says that it is in sync, but its entry in 3scale is
missing or differs. Entries with our mark (`managed_by.py`) but without an object are found, too.

The lists contain no metrics, rules or plans, so each sweep reads those of some Products and Backends, in turn. Users
and document bodies are not compared. Applications, documents and policies have no mark, so their entries without an
object are not found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from domain.model import Model
from domain.resource import CustomResource
from domain.threescale.active_doc import sync_document
from domain.threescale.application import LIVE, SUSPENDED
from domain.threescale.backend import changes_of_backend
from domain.threescale.calls import Read, Resource
from domain.threescale.custom_policy import sync_policy
from domain.threescale.developer_account import sync_account
from domain.threescale.digests import digests_of
from domain.threescale.managed_by import is_marked
from domain.threescale.product_sync import changes_of_service
from domain.threescale.remote_object import One, differing
from domain.threescale.remote_state import (
    FoundAccount,
    FoundApplication,
    FoundBackendApi,
    FoundDocument,
    FoundPolicy,
    FoundService,
    Identified,
    answers_of,
)
from domain.threescale.resources import (
    ActiveDoc,
    Application,
    Backend,
    CustomPolicyDefinition,
    DeveloperAccount,
    Product,
)
from domain.threescale.resources.shared import RemoteResource

F = TypeVar("F", bound=Identified)


class _List(NamedTuple):
    """The list of one kind's entries, and how an entry is compared with its object."""

    read: Read
    entry: type[Identified]
    differs: Callable[[Any, Any], bool]


def _one(found: F) -> One[F]:
    return One.model_construct(looked=True, item=found)


def _other_application(application: Application, found: FoundApplication) -> bool:
    # The plan is not compared, because the list contains only the plan's id.
    spec = application.spec
    state = SUSPENDED if spec.suspend else LIVE
    moved = found.state in (LIVE, SUSPENDED) and found.state != state
    return moved or bool(differing({"name": spec.name, "description": spec.description}, found))


def _other_document(document: ActiveDoc, found: FoundDocument) -> bool:
    # The body is not compared, because the object does not contain it.
    return not sync_document(document, found.body, found.service_id, _one(found)).done


_LISTS: Mapping[type[CustomResource], _List] = {
    Product: _List(
        Read(resource=Resource.SERVICE, path="services", paged=True),
        FoundService,
        lambda each, found: bool(tuple(changes_of_service(each.spec, found))),
    ),
    Backend: _List(
        Read(resource=Resource.BACKEND, path="backend_apis", paged=True),
        FoundBackendApi,
        lambda each, found: bool(tuple(changes_of_backend(each.spec, found))),
    ),
    DeveloperAccount: _List(
        Read(resource=Resource.ACCOUNT, path="accounts", paged=True),
        FoundAccount,
        lambda each, found: not sync_account(each, None, _one(found), 0).done,
    ),
    Application: _List(
        Read(resource=Resource.APPLICATION, path="applications", paged=True), FoundApplication, _other_application
    ),
    ActiveDoc: _List(Read(resource=Resource.DOCUMENT, path="active_docs"), FoundDocument, _other_document),
    CustomPolicyDefinition: _List(
        Read(resource=Resource.POLICY, path="registry/policies"),
        FoundPolicy,
        lambda each, found: not sync_policy(each, _one(found)).done,
    ),
}
COMPARED = tuple(_LISTS)
# Kinds whose entries have our mark, with the kind's name in messages and the field by which objects adopt entries.
MARKED: Mapping[type[CustomResource], tuple[str, str]] = {
    Product: ("product", "system_name"),
    Backend: ("backend", "system_name"),
    DeveloperAccount: ("account", "org_name"),
}
_WITH_PARTS = (Product, Backend)

# A tenant's entries by kind and id. A kind is absent if its list was not requested.
Lists = Mapping[type[CustomResource], Mapping[int, Any]]


class Difference(Model):
    resource: CustomResource
    problem: str


def lists_for(objects: Iterable[CustomResource]) -> tuple[Read, ...]:
    kinds = {type(each) for each in objects}
    return tuple(each.read for model, each in _LISTS.items() if model in kinds)


def with_list(lists: Lists, read: Read, answer: object) -> Lists:
    model = next(model for model, each in _LISTS.items() if each.read == read)
    found = [_LISTS[model].entry.model_validate(each) for each in answers_of(read.resource.value, answer)]
    return {**lists, model: {each.id: each for each in found}}


def differences(objects: Iterable[CustomResource], lists: Lists) -> tuple[Difference, ...]:
    found = ((each, _problem(each, lists)) for each in objects if in_step(each))
    return tuple(Difference(resource=each, problem=problem) for each, problem in found if problem)


def in_turn(objects: Iterable[CustomResource], sweep: int, most: int) -> tuple[CustomResource, ...]:
    waiting = sorted(
        (each for each in objects if isinstance(each, _WITH_PARTS) and in_step(each)),
        key=lambda each: each.metadata.uid,
    )
    if len(waiting) <= most:
        return tuple(waiting)
    start = sweep * most % len(waiting)
    return tuple([*waiting, *waiting][start : start + most])


def is_listed(each: CustomResource, lists: Lists) -> bool:
    return _id(each) in lists.get(type(each), {})


def listed(lists: Lists, read: Read) -> dict[str, object] | None:
    """The answer to a read of one Product's or Backend's entry; None if not listed."""
    model = next((each for each in _WITH_PARTS if _LISTS[each].read.resource is read.resource), None)
    found = lists.get(model, {}).get(read.of) if model else None
    return {read.resource.value: found.model_dump(mode="json")} if found is not None else None


def without_owner(objects: Sequence[CustomResource], lists: Lists) -> tuple[str, ...]:
    """Entries with our mark whose id no object has, and whose name no object may adopt."""
    lost = []
    for model, (what, field) in MARKED.items():
        own: list[Any] = [each for each in objects if isinstance(each, model)]
        ids, names = {_id(each) for each in own}, {getattr(each.spec, field) for each in own}
        for each in lists.get(model, {}).values():
            name = getattr(each, field)
            adopted = each.id in ids or (name and name in names)
            if not adopted and is_marked(each.annotations):
                lost.append(f"3scale {what} {each.id} ({name})")
    return tuple(lost)


def _problem(each: CustomResource, lists: Lists) -> str:
    there = lists.get(type(each))
    if there is None:
        return ""
    found = there.get(_id(each))
    if found is None:
        return f"entry {_id(each)} is not in 3scale any more"
    differs = _LISTS[type(each)].differs(each, found)
    return f"entry {_id(each)} differs in 3scale from the object" if differs else ""


def in_step(each: CustomResource) -> bool:
    return bool(_id(each)) and bool(digests_of(each).synced) and not each.metadata.deleting


def _id(each: CustomResource) -> int:
    return each.remote_id if isinstance(each, RemoteResource) else 0
