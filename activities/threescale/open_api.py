from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any

from activities.threescale.object_patch import patched
from activities.threescale.subjects import Subject
from domain.identity import all_kinds
from domain.threescale.actions import ClusterWrite
from domain.threescale.calls import Read
from domain.threescale.open_api import WATCHED_BY, LabelSource, ObservedOpenApi, SourceSecret, WriteChild
from domain.threescale.open_api_document import Unreadable, read_api
from domain.threescale.reference_names import made_by
from domain.threescale.resources import Backend, OpenApi, Product
from engine.errors import Absent, ApiError, Conflict

log = logging.getLogger(__name__)


class OpenApiSubject(Subject[OpenApi]):
    async def observed(self) -> ObservedOpenApi:
        """A document at a URL is not observed here, because the decision requests the fetch."""
        spec = self.resource.spec
        await self.find_account(spec.tenant_secret)
        where, text = spec.openapi_ref.secret_ref, None
        if where is not None:
            text = await self.secrets.document("spec.openapiRef", where, self.namespace)
            await _understood(text.body)
        return ObservedOpenApi(**await self.common(), text=text, source=await self._source(), **self._children())

    async def _source(self) -> SourceSecret | None:
        place = self._place()
        found = await self.secrets.content(*place) if place else None
        if found is None:
            return None
        return SourceSecret(uid=found.meta.uid, labelled=WATCHED_BY.items() <= found.meta.labels.items())

    def _place(self) -> tuple[str, str] | None:
        where = self.resource.spec.openapi_ref.secret_ref
        return (where.namespace or self.namespace, where.name) if where else None

    def _children(self) -> dict[str, Any]:
        meta, status = self.resource.metadata, self.resource.status
        name = made_by(self.namespace, meta.name)
        product = status.product_resource_name.name if status.product_resource_name else ""
        products = {each.metadata.uid: each for each in self.cache.named(Product, name)}
        backends = {each.metadata.uid: each for each in self.cache.named(Backend, name)}
        noted = self.cache.get(Product, self.namespace, product) if product else None
        if noted is not None:
            products[noted.metadata.uid] = noted
        for reference in status.backend_resource_names:
            found = self.cache.get(Backend, self.namespace, reference.name)
            if found is not None:
                backends[found.metadata.uid] = found
        return {"products": tuple(products.values()), "backends": tuple(backends.values())}

    async def fetch(self, read: Read) -> str:
        document = await self.downloads.fetched(read.path)
        await _understood(document)
        return document

    async def write(self, write: ClusterWrite) -> dict[str, Any]:
        match write:
            case WriteChild():
                await self._write_child(write)
                return self._children()
            case LabelSource():
                return await self._label_source()
        return await super().write(write)

    async def _label_source(self) -> dict[str, Any]:
        """A refusal is only logged, because Perdure does not need the label."""
        place, source = self._place(), await self._source()
        if place is None or source is None:
            return {"source": source}
        try:
            await self.secrets.label(*place, WATCHED_BY)
        except ApiError as error:
            log.info("%s: its Secret could not be labelled: %s", self.resource.key.path, error.message)
        return {"source": source.model_copy(update={"labelled": True})}

    async def _write_child(self, child: WriteChild) -> None:
        """If the API server answers that the child has changed or is gone, the child is read into the cache again."""
        kind = all_kinds()[child.kind]
        try:
            if child.delete:
                answer = await self.kube.delete(kind, self.namespace, child.name)
            elif child.body:
                answer = await self.kube.create(kind, child.body, self.namespace)
            else:
                answer = await patched(self.kube, kind, self.namespace, child.name, child.patch, child.resource_version)
        except (Conflict, Absent):
            await self.cache.fresh(kind, self.namespace, child.name)
            raise
        if answer is not None:
            self.cache.learn(kind, answer)


async def _understood(text: str) -> None:
    """Parse in a thread, so that a long document does not block other passes; `read_api` caches the result."""
    with suppress(Unreadable):
        await asyncio.to_thread(read_api, text)
