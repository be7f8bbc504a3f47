"""The lifecycle of an ActiveDoc: an API's documentation, which may belong to a product.

    New ─► Orphan: product or Secret is missing ─► found by its system name, or created ─► Ready ─deletion─► deleted

After a rename the document is created again under the new name, then the former document is deleted. An ActiveDoc that
names a product of another tenant is Invalid. Bodies are compared as JSON, because 3scale may reformat them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import ClassVar, Self

from domain.decision import Decision
from domain.schema import Json
from domain.threescale.calls import Read, Resource, Sync, Write, change, creation, deletion, read_entry
from domain.threescale.conditions import INVALID
from domain.threescale.deletion import Leaving, deprovision, leaving_of_one
from domain.threescale.digests import digest, digests_of
from domain.threescale.document_sources import Text, fetched_again
from domain.threescale.duplicate_owners import seniority
from domain.threescale.faults import message_of
from domain.threescale.idempotent_creations import created
from domain.threescale.normalize import same_json
from domain.threescale.observed import Blocker, ObservedOne, invalid, is_true, waiting
from domain.threescale.provider_account import same_tenant
from domain.threescale.remote_object import One, differing, read_one, wrote_one
from domain.threescale.remote_state import FoundDocument
from domain.threescale.resources import ActiveDoc, Product
from domain.threescale.resources.shared import Digests, LocalReference
from domain.threescale.spec_defaults import of_active_doc
from domain.threescale.spec_validation import fault_of_system_name
from domain.threescale.system_names import taken_name
from domain.threescale.usable_referents import usable

_PATH = "active_docs"


class ObservedDocument(ObservedOne):
    item: ClassVar[type[FoundDocument]] = FoundDocument
    wrapper: ClassVar[Resource] = Resource.DOCUMENT

    resource: ActiveDoc
    text: Text = Text()
    products: tuple[Product, ...] = ()
    found: One[FoundDocument] = One()
    wanted: bool = False  # True if, after a rename, another ActiveDoc has the former system name

    def decide(self, now: datetime) -> Decision:
        document = self.resource
        decision = deprovision(self, _leaving, now) or self.begins(now, of_active_doc(document)) or _decided(self, now)
        if document.metadata.deleting:
            return decision
        return fetched_again(decision, document.spec.active_doc_open_api_ref, now)

    def read(self, read: Read, body: object) -> Self:
        found = read_document(self.found, read, body, self.resource)
        # After a rename, the document with the former name is deleted, unless another ActiveDoc now has this name.
        return self.beside({"found": found.model_copy(update={"former": 0}) if self.wanted else found})

    def wrote(self, write: Write, body: object) -> Self:
        return self.beside({"found": wrote_document(self.found, write, body)})


def _decided(observed: ObservedDocument, now: datetime) -> Decision:
    document, url = observed.resource, observed.provider.url
    fields: dict[str, object] = {"provider_account_host": url}
    product = _product(document, observed.products, url)
    blocker = _blocker(observed, product, url)
    if blocker is not None:
        return observed.blocked(blocker, now, fields)
    fields["product_resource_name"] = LocalReference(name=product.metadata.name) if product else None
    service_id = product.status.product_id or 0 if product else 0
    return _synced(observed, service_id, fields, now)


def is_document(found: FoundDocument, document: ActiveDoc) -> bool:
    return found.system_name == document.spec.system_name


def read_document(found: One[FoundDocument], read: Read, answer: object, document: ActiveDoc) -> One[FoundDocument]:
    """A document that has the remembered id but another system name is the former document; its id is stored in
    `former`.
    """
    former = found.former or (found.item.id if found.item and _is_former(found.item, document) else 0)
    known = read_one(FoundDocument, read, answer, lambda each: is_document(each, document))
    return known.model_copy(update={"former": former})


def wrote_document(found: One[FoundDocument], write: Write, answer: object) -> One[FoundDocument]:
    if found.former and write.id == found.former:
        return found.model_copy(update={"former": 0})
    known = wrote_one(FoundDocument, Resource.DOCUMENT, found, write, answer)
    return known.model_copy(update={"former": found.former})


def _is_former(found: FoundDocument, document: ActiveDoc) -> bool:
    return bool(found.system_name) and not is_document(found, document)


def _product(document: ActiveDoc, products: Iterable[Product], url: str) -> Product | None:
    named = [each for each in products if each.spec.system_name == document.spec.product_system_name]
    return min(
        named,
        key=lambda each: (not same_tenant(each.status.provider_account_host, url), seniority(each.metadata)),
        default=None,
    )


def _blocker(observed: ObservedDocument, product: Product | None, url: str) -> Blocker | None:
    document = observed.resource
    if nameless := fault_of_system_name(document.spec.system_name):
        return invalid(message_of(nameless))
    if taken := taken_name(document, observed.siblings):
        return taken
    name = document.spec.product_system_name
    if not name:
        return observed.text.blocker
    called = product.metadata.name if product else name
    waits_for = (f"Product/{document.metadata.namespace}/{called}",)
    lost = f'spec.productSystemName: Invalid value: "{name}": not a valid reference'
    if product is None:
        return waiting(lost, *waits_for)
    host = product.status.provider_account_host
    if host and not same_tenant(host, url):
        return invalid(f"{lost}: Product {called} belongs to another tenant", *waits_for)
    if is_true(product.status.conditions, INVALID):
        return invalid(f"Product {called} is invalid", *waits_for)
    if not product.status.product_id or not usable(product.status.conditions) or product.metadata.deleting:
        return waiting(lost, *waits_for)
    return observed.text.blocker


def _synced(observed: ObservedDocument, service_id: int, fields: dict[str, object], now: datetime) -> Decision:
    document, found = observed.resource, observed.found
    desired = Digests(synced=digest(fields["provider_account_host"], document.spec, observed.text.version, service_id))
    settled = desired == digests_of(document) and document.status.active_doc_id
    if settled and not observed.look and found.untouched:
        return observed.fine(now, fields)
    whole = sync_document(document, observed.text.body, service_id, found, observed.known_id)
    if found.item is not None and not found.former:  # the status keeps the former document's id until its deletion
        fields = {**fields, "active_doc_id": found.item.id}
    return observed.compared(whole, now, fields, desired)


def sync_document(
    document: ActiveDoc, body: str, service_id: int, found: One[FoundDocument], known_id: int = 0
) -> Sync:
    spec = document.spec
    if not found.looked:
        return Sync(reads=(read_entry(Resource.DOCUMENT, _PATH, 0 if found.lost else known_id),))
    wanted: dict[str, Json] = {
        "name": spec.name,
        "description": spec.description,
        "published": spec.published,
        "skip_swagger_validations": spec.skip_swagger_validations,
    }
    if found.item is None:
        fields = {**wanted, "system_name": spec.system_name, "body": body, "service_id": service_id or None}
        key = {"system_name": spec.system_name}
        return Sync(writes=(creation(Resource.DOCUMENT, _PATH, fields, key, spec.system_name),))
    there = found.item
    if _is_former(there, document):
        return Sync(reads=(Read(resource=Resource.DOCUMENT, path=_PATH),))
    fields = differing(wanted, there)
    if not _same_document(body, there.body):
        fields["body"] = body
    if service_id != there.service_id:
        fields["service_id"] = service_id or None
    if fields:
        return Sync(writes=(change(Resource.DOCUMENT, _PATH, there.id, fields, spec.system_name),))
    return Sync(writes=(deletion(Resource.DOCUMENT, _PATH, found.former),) if found.former else ())


def _same_document(one: str, other: str) -> bool:
    if one == other:
        return True
    try:
        return same_json(json.loads(one), json.loads(other))
    except ValueError:
        return one.strip() == other.strip()


def _leaving(observed: ObservedDocument) -> Leaving:
    document = observed.resource
    alone = all(each.deleting for each in observed.siblings)
    look = Read(resource=Resource.DOCUMENT, path=_PATH) if alone and created(document.metadata) else None
    deletes = partial(deletion, Resource.DOCUMENT, _PATH, about=document.spec.system_name)
    return leaving_of_one(Leaving(holders=observed.holders), observed.found, observed.known_id, look, deletes)
