from __future__ import annotations

import asyncio
from typing import Any

from activities.threescale.subjects import Subject
from domain.threescale.active_doc import ObservedDocument
from domain.threescale.calls import Read
from domain.threescale.custom_policy import ObservedPolicy
from domain.threescale.document_sources import Text, as_sent
from domain.threescale.observed import Observed
from domain.threescale.resources import ActiveDoc, CustomPolicyDefinition, Product

_REFERENCE = "spec.activeDocOpenAPIRef"


class DocumentSubject(Subject[ActiveDoc]):
    async def observed(self) -> ObservedDocument:
        """The document is not fetched for a deletion, which does not need the document."""
        name = self.resource.spec.product_system_name
        await self.find_tenant()
        text = Text()
        if not self.resource.metadata.deleting:
            place = self.resource.spec.active_doc_open_api_ref.place
            text = await asyncio.to_thread(as_sent, _REFERENCE, place, await self._document())
        return ObservedDocument(
            **await self.common(),
            siblings=self.siblings(),
            text=text,
            products=self.cache.named(Product, f"Product/{self.namespace}/{name}") if name else (),
        )

    async def _document(self) -> Text:
        where = self.resource.spec.active_doc_open_api_ref
        if where.secret_ref is not None:
            return await self.secrets.document(_REFERENCE, where.secret_ref, self.namespace)
        return await self.downloads.at(where.url or "")

    async def noticed(self, read: Read, world: Observed) -> dict[str, Any]:
        """If 3scale's document still has a former name of this ActiveDoc, `wanted` says whether another ActiveDoc of
        the tenant now wants this name.
        """
        noticed, spec = await super().noticed(read, world), self.resource.spec
        item = world.found.item if read.of and isinstance(world, ObservedDocument) else None
        if item is None or item.system_name in ("", spec.system_name):
            return noticed
        renamed = self.resource.model_copy(update={"spec": spec.model_copy(update={"system_name": item.system_name})})
        named_so = self.cache.siblings(renamed)
        wanted = any(not each.metadata.deleting and self.is_of_tenant(each) for each in named_so)
        return {**noticed, "wanted": wanted}


class PolicySubject(Subject[CustomPolicyDefinition]):
    async def observed(self) -> ObservedPolicy:
        await self.find_tenant()
        return ObservedPolicy(**await self.common(), siblings=self.siblings())
