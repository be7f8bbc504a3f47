"""The lifecycle of an ActiveDoc: a document for readers of an API, which may belong to a product.

    New ─► Orphan: product or Secret is missing ─► found by its system name, or created ─► Ready ─deletion─► deleted

3scale never changes a system name. A document that gets another one is created again, and the former one is deleted
once the new one exists. The product is named by its system name: a product of another tenant makes the document
Invalid, a missing one makes it an Orphan. Bodies are compared as parsed documents, because 3scale may format them
differently.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timedelta

from domain.decision import earliest
from domain.model import Model
from domain.resource import ObjectMeta
from domain.schema import Json
from domain.threescale import ACTIVE_DOC
from domain.threescale.calls import Read, Resource, Write
from domain.threescale.conditions import INVALID, Standing
from domain.threescale.defaults import of_active_doc
from domain.threescale.digests import created, digest, digests_of
from domain.threescale.found import FoundDocument
from domain.threescale.holders import Holder
from domain.threescale.normalize import same_json
from domain.threescale.product_sync import Sync
from domain.threescale.providers import NoAccount, ProviderAccount, known_at, same_tenant
from domain.threescale.references import elder, seniority, usable
from domain.threescale.remote_object import One, differing, read_one, wrote_one
from domain.threescale.resources import ActiveDoc, Product
from domain.threescale.resources.shared import Digests, Document, LocalReference
from domain.threescale.validation import fault_of_system_name, message_of
from domain.threescale.work import (
    Blocker,
    Leaving,
    Observed,
    Phase,
    Work,
    adopted,
    blocked,
    compared,
    deprovision,
    fine,
    is_true,
    lets_go,
    without_account,
)

FETCH_EVERY = timedelta(minutes=5)
_PATH = "active_docs"


class Text(Model):
    """The document as it was read: from a Secret or an address, or why it could not be."""

    body: str = ""
    version: str = ""
    blocker: Blocker | None = None


class ObservedDocument(Observed):
    """What one decision sees.

    Attributes:
        document: the object.
        account: its tenant.
        text: the document.
        products: those of its namespace.
        siblings: other ActiveDocs with its system name and tenant.
        holders: those siblings that have something there, with its id.
        found: what is known of 3scale.
    """

    document: ActiveDoc
    account: ProviderAccount | NoAccount
    text: Text
    products: tuple[Product, ...] = ()
    siblings: tuple[ObjectMeta, ...] = ()
    holders: tuple[Holder, ...] = ()
    found: One[FoundDocument] = One()


def work_for_document(observed: ObservedDocument, now: datetime) -> Work:
    """What to do now for an ActiveDoc that exists."""
    document = observed.document
    if document.metadata.deleting:
        return deprovision(document, _leaving(observed), observed.refusals, now)
    return fetched_again(_kept(observed, now), document.spec.active_doc_open_api_ref, now)


def fetched_again(work: Work, document: Document, now: datetime) -> Work:
    """The work; a page does not tell of its changes, so a document at an address is fetched again."""
    if not document.url:
        return work
    return work.model_copy(update={"deadline": earliest([work.deadline, now + FETCH_EVERY])})


def _kept(observed: ObservedDocument, now: datetime) -> Work:
    document, account = observed.document, observed.account
    patch = adopted(document.metadata, ACTIVE_DOC, of_active_doc(document))
    if patch:
        return Work(phase=Phase.NEW, why="set its finalizer and defaults", patch=patch)
    if isinstance(account, NoAccount):
        return without_account(document, account, now)
    fields: dict[str, object] = {"provider_account_host": account.url}
    product = _product(document, observed.products, account.url)
    blocker = _blocker(observed, product, account.url)
    if blocker is not None:
        return blocked(document, blocker, now, fields)
    fields["product_resource_name"] = LocalReference(name=product.metadata.name) if product else None
    service_id = product.status.product_id or 0 if product else 0
    return _synced(observed, service_id, fields, now)


def is_document(found: FoundDocument, document: ActiveDoc) -> bool:
    """Whether one of the tenant's documents is this one."""
    return found.system_name == document.spec.system_name


def read_document(found: One[FoundDocument], read: Read, answer: object, document: ActiveDoc) -> One[FoundDocument]:
    """What is known after a read; where what has its id is called otherwise, that is its former one."""
    former = found.former or (found.item.id if found.item and _is_former(found.item, document) else 0)
    known = read_one(FoundDocument, read, answer, lambda each: is_document(each, document))
    return known.model_copy(update={"former": former})


def wrote_document(found: One[FoundDocument], write: Write, answer: object) -> One[FoundDocument]:
    """What is known after a write of it, or of its former one."""
    if found.former and write.id == found.former:
        return found.model_copy(update={"former": 0})
    known = wrote_one(FoundDocument, Resource.DOCUMENT, found, write, answer)
    return known.model_copy(update={"former": found.former})


def _is_former(found: FoundDocument, document: ActiveDoc) -> bool:
    return bool(found.system_name) and not is_document(found, document)


def _product(document: ActiveDoc, products: Iterable[Product], url: str) -> Product | None:
    """The product that it names, of its own tenant rather than another's, the oldest of several."""
    named = [each for each in products if each.spec.system_name == document.spec.product_system_name]
    return min(
        named,
        key=lambda each: (not same_tenant(each.status.provider_account_host, url), seniority(each.metadata)),
        default=None,
    )


def _blocker(observed: ObservedDocument, product: Product | None, url: str) -> Blocker | None:
    document = observed.document
    if nameless := fault_of_system_name(document.spec.system_name):
        return Blocker(standing=Standing.INVALID, message=message_of(nameless))
    older = elder(document.metadata, observed.siblings)
    if older is not None:
        message = f"ActiveDoc {older.namespace}/{older.name} has the system name {document.spec.system_name} already"
        return Blocker(standing=Standing.INVALID, message=message)
    name = document.spec.product_system_name
    if not name:
        return observed.text.blocker
    called = product.metadata.name if product else name
    waits_for = (f"Product/{document.metadata.namespace}/{called}",)
    lost = f'spec.productSystemName: Invalid value: "{name}": not a valid reference'
    if product is None:
        return Blocker(standing=Standing.WAITING, message=lost, waits_for=waits_for)
    host = product.status.provider_account_host
    if host and not same_tenant(host, url):
        message = f"{lost}: Product {called} belongs to another tenant"
        return Blocker(standing=Standing.INVALID, message=message, waits_for=waits_for)
    if is_true(product.status.conditions, INVALID):
        return Blocker(standing=Standing.INVALID, message=f"Product {called} is invalid", waits_for=waits_for)
    if not product.status.product_id or not usable(product.status.conditions) or product.metadata.deleting:
        return Blocker(standing=Standing.WAITING, message=lost, waits_for=waits_for)
    return observed.text.blocker


def _synced(observed: ObservedDocument, service_id: int, fields: dict[str, object], now: datetime) -> Work:
    document, found = observed.document, observed.found
    wished = Digests(synced=digest(fields["provider_account_host"], document.spec, observed.text.version, service_id))
    settled = wished == digests_of(document) and document.status.active_doc_id
    if settled and not observed.look and found.untouched:
        return fine(document, now, fields)
    known_id = known_at(str(fields["provider_account_host"]), _host(document), document.status.active_doc_id)
    whole = sync_document(document, observed.text.body, service_id, found, known_id)
    if found.item is not None and not found.former:  # by whose id it is found again until it is gone
        fields = {**fields, "active_doc_id": found.item.id}
    return compared(document, whole, observed.refusals, now, fields, wished)


def sync_document(
    document: ActiveDoc, body: str, service_id: int, found: One[FoundDocument], known_id: int = 0
) -> Sync:
    """What to read or write now; `service_id` is 0 for a document that belongs to no product."""
    spec = document.spec
    if not found.looked:
        by_id = known_id if not found.lost else 0
        path = f"{_PATH}/{by_id}" if by_id else _PATH
        return Sync(reads=(Read(resource=Resource.DOCUMENT, path=path, of=by_id),))
    wanted: dict[str, Json] = {
        "name": spec.name,
        "description": spec.description,
        "published": spec.published,
        "skip_swagger_validations": spec.skip_swagger_validations,
    }
    if found.item is None:
        fields = {**wanted, "system_name": spec.system_name, "body": body, "service_id": service_id or None}
        return Sync(writes=(_creation(spec.system_name, fields),))
    there = found.item
    if _is_former(there, document):
        return Sync(reads=(Read(resource=Resource.DOCUMENT, path=_PATH),))
    fields = differing(wanted, there)
    if not _same_document(body, there.body):
        fields["body"] = body
    if service_id != there.service_id:
        fields["service_id"] = service_id or None
    if fields:
        return Sync(writes=(_change(there.id, spec.system_name, fields),))
    return Sync(writes=(_deletion(found.former),) if found.former else ())


def _host(document: ActiveDoc) -> str | None:
    return document.status.provider_account_host


def _creation(system_name: str, fields: dict[str, Json]) -> Write:
    return Write(
        resource=Resource.DOCUMENT,
        method="POST",
        path=_PATH,
        fields={name: value for name, value in fields.items() if value is not None},
        key={"system_name": system_name},
        about=system_name,
    )


def _change(id_: int, system_name: str, fields: dict[str, Json]) -> Write:
    path = f"{_PATH}/{id_}"
    return Write(resource=Resource.DOCUMENT, method="PUT", path=path, id=id_, fields=fields, about=system_name)


def _same_document(one: str, other: str) -> bool:
    if one == other:
        return True
    try:
        return same_json(json.loads(one), json.loads(other))
    except ValueError:
        return one.strip() == other.strip()


def _leaving(observed: ObservedDocument) -> Leaving:
    document = observed.document
    account = observed.account
    known_id = known_at(account.url, _host(document), document.status.active_doc_id)
    leaving = Leaving(account=account, outside=document.outside, holders=observed.holders)
    alone = all(each.deleting for each in observed.siblings)
    look = Read(resource=Resource.DOCUMENT, path=_PATH) if alone and created(document.metadata) else None
    return lets_go(leaving, observed.found, known_id, look, lambda id_: _deletion(id_, document.spec.system_name))


def _deletion(id_: int, name: str = "") -> Write:
    return Write(resource=Resource.DOCUMENT, method="DELETE", path=f"{_PATH}/{id_}", id=id_, about=name)
