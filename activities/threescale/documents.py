"""ActiveDoc, OpenAPI and CustomPolicyDefinition in a pass: documents of an API, and policies of the tenant's own."""

from __future__ import annotations

from typing import ClassVar

from activities.threescale.known import View
from activities.threescale.secrets import Secrets
from activities.threescale.sources import Sources, as_sent
from activities.threescale.subjects import SingleSubject
from domain.threescale.active_doc import (
    ObservedDocument,
    Text,
    is_document,
    read_document,
    work_for_document,
    wrote_document,
)
from domain.threescale.calls import Read, Resource, Write
from domain.threescale.found import FoundDocument, FoundPolicy
from domain.threescale.policy import ObservedPolicy, is_policy, work_for_policy
from domain.threescale.providers import NoAccount
from domain.threescale.resources import ActiveDoc, CustomPolicyDefinition, Product

_REFERENCE = "spec.activeDocOpenAPIRef"


class DocumentSubject(SingleSubject[ActiveDoc, FoundDocument]):
    """An ActiveDoc."""

    decide = staticmethod(work_for_document)
    item = FoundDocument
    wrapper: ClassVar[Resource] = Resource.DOCUMENT

    def __init__(self, resource: ActiveDoc, view: View, secrets: Secrets, sources: Sources) -> None:
        super().__init__(resource, view, secrets)
        self._sources = sources
        self._products: tuple[Product, ...] = ()
        self._text = Text()

    async def gather(self) -> None:
        """Tenant, product, and the document itself, which one that goes needs no more."""
        spec = self.resource.spec
        await self.find_tenant()
        name = spec.product_system_name
        self._products = self.view.named(Product, f"Product/{self.namespace}/{name}") if name else ()
        if not self.resource.metadata.deleting:
            self._text = await as_sent(_REFERENCE, await self._document())

    async def _document(self) -> Text:
        where = self.resource.spec.active_doc_open_api_ref
        if where.secret_ref is not None:
            return await self._sources.in_secret(_REFERENCE, where.secret_ref, self.namespace, self.secrets)
        return await self._sources.at(where.url or "")

    def observed(self) -> ObservedDocument:
        """What its decision sees."""
        siblings = self.siblings()
        return ObservedDocument(
            document=self.resource,
            account=self.provider,
            text=self._text,
            products=self._products,
            siblings=tuple(each.metadata for each in siblings),
            holders=self.holders(siblings),
            found=self.found,
        )

    def is_it(self, found: FoundDocument) -> bool:
        """By its system name."""
        return is_document(found, self.resource)

    def read(self, read: Read, answer: object) -> None:
        """It, or all among which it may be."""
        before = self.found.item
        self.found = read_document(self.found, read, answer, self.resource)
        if before is not None and self.found.former == before.id and self._is_wanted(before.system_name):
            self.found = self.found.model_copy(update={"former": 0})  # left to the object that has that name now

    def wrote(self, write: Write, answer: object) -> None:
        """It, or its former one."""
        self.found = wrote_document(self.found, write, answer)

    def _is_wanted(self, name: str) -> bool:
        """Whether another ActiveDoc of the tenant, which stays, is called so now."""
        if isinstance(self.provider, NoAccount):
            return False
        url, spec = self.provider.url, self.resource.spec.model_copy(update={"system_name": name})
        alike = self.view.siblings(self.resource.model_copy(update={"spec": spec}))
        return any(not each.metadata.deleting and self._is_of_tenant(each, url) for each in alike)


class PolicySubject(SingleSubject[CustomPolicyDefinition, FoundPolicy]):
    """A CustomPolicyDefinition."""

    decide = staticmethod(work_for_policy)
    item = FoundPolicy
    wrapper: ClassVar[Resource] = Resource.POLICY

    async def gather(self) -> None:
        """Its tenant."""
        await self.find_tenant()

    def observed(self) -> ObservedPolicy:
        """What its decision sees."""
        siblings = self.siblings()
        return ObservedPolicy(
            policy=self.resource,
            account=self.provider,
            siblings=tuple(each.metadata for each in siblings),
            holders=self.holders(siblings),
            found=self.found,
        )

    def is_it(self, found: FoundPolicy) -> bool:
        """By name and version."""
        return is_policy(found, self.resource)
