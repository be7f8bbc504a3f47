"""Comparison of a tenant's lists with the objects: drift, and entries with our mark but without an object.

    one list of each kind, page by page ─► objects in sync ─► missing, or different
                                        └► marked entries ─► without an object
    some Products and Backends, in turn ─► all their parts

Objects in sync make no calls (`digests.py`), so only the sweep notices manual changes in 3scale. The lists contain no
metrics, rules or plans; each sweep compares some Products and Backends completely, in turn. Users and document bodies
are compared only after `perdure retry`, or when a pass reads them for another reason. Applications, documents and
policies have no mark, so their entries without an object are not found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from domain.model import Model
from domain.resource import CustomResource
from domain.threescale.active_doc import sync_document
from domain.threescale.application_sync import LIVE, SUSPENDED
from domain.threescale.backend_sync import changes_of_backend
from domain.threescale.calls import Read, Resource
from domain.threescale.custom_policy import sync_policy
from domain.threescale.developer_account import sync_account
from domain.threescale.digests import digests_of
from domain.threescale.product_sync import changes_of_service
from domain.threescale.remote_object import One, differing
from domain.threescale.remote_state import (
    MANAGED_BY,
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

F = TypeVar("F", bound=Identified)

_LISTS: Mapping[type[CustomResource], Read] = {
    Product: Read(resource=Resource.SERVICE, path="services", paged=True),
    Backend: Read(resource=Resource.BACKEND, path="backend_apis", paged=True),
    DeveloperAccount: Read(resource=Resource.ACCOUNT, path="accounts", paged=True),
    Application: Read(resource=Resource.APPLICATION, path="applications", paged=True),
    ActiveDoc: Read(resource=Resource.DOCUMENT, path="active_docs"),
    CustomPolicyDefinition: Read(resource=Resource.POLICY, path="registry/policies"),
}
COMPARED = tuple(_LISTS)
_WITH_PARTS = (Product, Backend)


class Lists(Model):
    """A tenant's entries by id. A field is None if its list was not requested."""

    services: dict[int, FoundService] | None = None
    backends: dict[int, FoundBackendApi] | None = None
    accounts: dict[int, FoundAccount] | None = None
    applications: dict[int, FoundApplication] | None = None
    documents: dict[int, FoundDocument] | None = None
    policies: dict[int, FoundPolicy] | None = None


class Difference(Model):
    resource: CustomResource
    problem: str


def lists_for(objects: Iterable[CustomResource]) -> tuple[Read, ...]:
    kinds = {type(each) for each in objects}
    return tuple(read for model, read in _LISTS.items() if model in kinds)


def with_list(lists: Lists, read: Read, answer: object) -> Lists:
    listed = answers_of(read.resource.value, answer)
    match read.resource:
        case Resource.SERVICE:
            return lists.model_copy(update={"services": _by_id(FoundService, listed)})
        case Resource.BACKEND:
            return lists.model_copy(update={"backends": _by_id(FoundBackendApi, listed)})
        case Resource.ACCOUNT:
            return lists.model_copy(update={"accounts": _by_id(FoundAccount, listed)})
        case Resource.APPLICATION:
            return lists.model_copy(update={"applications": _by_id(FoundApplication, listed)})
        case Resource.DOCUMENT:
            return lists.model_copy(update={"documents": _by_id(FoundDocument, listed)})
        case Resource.POLICY:
            return lists.model_copy(update={"policies": _by_id(FoundPolicy, listed)})
    raise ValueError(f"no list of {read.resource}")


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
    there = lists.services if isinstance(each, Product) else lists.backends
    return _id(each) in (there or {})


def listed(lists: Lists, read: Read) -> dict[str, object] | None:
    there: Mapping[Resource, Mapping[int, Identified] | None] = {
        Resource.SERVICE: lists.services,
        Resource.BACKEND: lists.backends,
    }
    found = (there.get(read.resource) or {}).get(read.of)
    return {read.resource.value: found.model_dump(mode="json")} if found is not None else None


def without_owner(objects: Sequence[CustomResource], lists: Lists) -> tuple[str, ...]:
    """Entries with our mark whose id no object has, and which no object may adopt by name."""
    known = {(type(each), id_) for each in objects if (id_ := _id(each))}
    names = {(type(each), name) for each in objects if (name := _name(each))}
    marked: list[tuple[type[CustomResource], str, int, str, Mapping[str, str]]] = [
        *((Product, "product", each.id, each.system_name, each.annotations) for each in _all(lists.services)),
        *((Backend, "backend", each.id, each.system_name, each.annotations) for each in _all(lists.backends)),
        *((DeveloperAccount, "account", each.id, each.org_name, each.annotations) for each in _all(lists.accounts)),
    ]
    return tuple(
        f"3scale {what} {id_} ({name})"
        for model, what, id_, name, annotations in marked
        if MANAGED_BY.items() <= annotations.items() and (model, id_) not in known and (model, name) not in names
    )


def _problem(each: CustomResource, lists: Lists) -> str:
    match each:
        case Product() if lists.services is not None:
            return _compared(each, lists.services, lambda found: bool(tuple(changes_of_service(each.spec, found))))
        case Backend() if lists.backends is not None:
            return _compared(each, lists.backends, lambda found: bool(tuple(changes_of_backend(each.spec, found))))
        case DeveloperAccount() if lists.accounts is not None:
            return _compared(each, lists.accounts, lambda found: not sync_account(each, None, _one(found), 0).done)
        case Application() if lists.applications is not None:
            return _compared(each, lists.applications, lambda found: _other_application(each, found))
        case ActiveDoc() if lists.documents is not None:
            return _compared(each, lists.documents, lambda found: _other_document(each, found))
        case CustomPolicyDefinition() if lists.policies is not None:
            return _compared(each, lists.policies, lambda found: not sync_policy(each, _one(found)).done)
    return ""


def _compared(each: CustomResource, there: Mapping[int, F], differs: Callable[[F], bool]) -> str:
    found = there.get(_id(each))
    if found is None:
        return f"entry {_id(each)} is not in 3scale any more"
    return f"entry {_id(each)} differs in 3scale from the object" if differs(found) else ""


def _other_application(application: Application, found: FoundApplication) -> bool:
    """The plan is not compared, because the list contains only the plan's id."""
    spec = application.spec
    state = SUSPENDED if spec.suspend else LIVE
    moved = found.state in (LIVE, SUSPENDED) and found.state != state
    return moved or bool(differing({"name": spec.name, "description": spec.description}, found))


def _other_document(document: ActiveDoc, found: FoundDocument) -> bool:
    """The body is not compared, because the object does not contain the body."""
    return not sync_document(document, found.body, found.service_id, _one(found)).done


def _one(found: F) -> One[F]:
    return One.model_construct(looked=True, item=found)


def in_step(each: CustomResource) -> bool:
    return bool(_id(each)) and bool(digests_of(each).synced) and not each.metadata.deleting


def _id(each: CustomResource) -> int:
    match each:
        case Product():
            return each.status.product_id or 0
        case Backend():
            return each.status.backend_id or 0
        case DeveloperAccount():
            return each.status.account_id or 0
        case Application():
            return each.status.application_id or 0
        case ActiveDoc():
            return each.status.active_doc_id or 0
        case CustomPolicyDefinition():
            return each.status.policy_id or 0
    return 0


def _name(each: CustomResource) -> str:
    match each:
        case Product() | Backend():
            return each.spec.system_name
        case DeveloperAccount():
            return each.spec.org_name
    return ""


def _all(there: Mapping[int, F] | None) -> Iterable[F]:
    return there.values() if there is not None else ()


def _by_id(model: type[F], listed: Iterable[Mapping[str, object]]) -> dict[int, F]:
    found = (model.model_validate(each) for each in listed)
    return {each.id: each for each in found}
