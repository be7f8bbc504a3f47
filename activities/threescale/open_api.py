"""OpenAPI in a pass: a document of which a Product and a Backend are made, which have lifecycles of their own."""

from __future__ import annotations

import logging

from activities.threescale.known import Known, View
from activities.threescale.secrets import Secrets
from activities.threescale.sources import Sources, understood
from activities.threescale.subjects import Subject
from domain.identity import all_kinds
from domain.threescale.active_doc import Text
from domain.threescale.calls import Read, Write
from domain.threescale.open_api import Child, ObservedOpenApi, SourceLabel, work_for_open_api
from domain.threescale.resources import Backend, OpenApi, Product
from domain.threescale.source_labels import WATCHED_BY, SourceSecret
from domain.threescale.texts import text_at
from domain.threescale.wakes import made_by
from domain.threescale.work import Effect
from engine.errors import Absent, ApiError, Conflict
from engine.kube import KubeApi
from engine.kube.json import text

log = logging.getLogger(__name__)


class OpenApiSubject(Subject[OpenApi]):
    """An OpenAPI."""

    decide = staticmethod(work_for_open_api)

    def __init__(
        self, resource: OpenApi, view: View, secrets: Secrets, sources: Sources, kube: KubeApi, known: Known
    ) -> None:
        super().__init__(resource, view, secrets)
        self._sources = sources
        self._kube = kube
        self._known = known
        self._text: Text | None = None
        self._source: SourceSecret | None = None
        self._products: tuple[Product, ...] = ()
        self._backends: tuple[Backend, ...] = ()

    async def gather(self) -> None:
        """Tenant, the document of a Secret, and what it has made; one at an address is asked for by the decision."""
        spec = self.resource.spec
        self.provider = await self.secrets.account(self.resource, spec.provider_account_ref)
        where = spec.openapi_ref.secret_ref
        if where is not None:
            self._text = await self._sources.in_secret("spec.openapiRef", where, self.namespace, self.secrets)
            await understood(self._text.body)
        await self._look_for_source()
        self._look_for_children()

    async def _look_for_source(self) -> None:
        place = self._place()
        found = await self.secrets.content(*place) if place else None
        labelled = found is not None and WATCHED_BY.items() <= found.labels.items()
        self._source = SourceSecret(uid=found.uid, labelled=labelled) if found else None

    def _place(self) -> tuple[str, str] | None:
        """Namespace and name of the Secret with the document."""
        where = self.resource.spec.openapi_ref.secret_ref
        return (where.namespace or self.namespace, where.name) if where else None

    def _look_for_children(self) -> None:
        meta, status = self.resource.metadata, self.resource.status
        name = made_by(self.namespace, meta.name)
        product = status.product_resource_name.name if status.product_resource_name else ""
        products = {each.metadata.uid: each for each in self.view.named(Product, name)}
        backends = {each.metadata.uid: each for each in self.view.named(Backend, name)}
        noted = self.view.get(Product, self.namespace, product) if product else None
        if noted is not None:
            products[noted.metadata.uid] = noted
        for reference in status.backend_resource_names:
            found = self.view.get(Backend, self.namespace, reference.name)
            if found is not None:
                backends[found.metadata.uid] = found
        self._products, self._backends = tuple(products.values()), tuple(backends.values())

    def observed(self) -> ObservedOpenApi:
        """What its decision sees."""
        return ObservedOpenApi(
            open_api=self.resource,
            account=self.provider,
            text=self._text,
            source=self._source,
            products=self._products,
            backends=self._backends,
        )

    async def fetch(self, read: Read) -> object:
        """The document at an address."""
        document = await self._sources.fetched(read.path)
        await understood(document)
        return document

    async def carry_out(self, effect: Effect) -> None:
        """One of the objects that it makes, or the label of its Secret."""
        match effect:
            case Child():
                await self._write_child(effect)
            case SourceLabel():
                await self._label_source()

    async def _label_source(self) -> None:
        """Where that is refused the Secret stays without, and nothing else changes."""
        place = self._place()
        if place is None or self._source is None:
            return
        try:
            await self.secrets.label(*place, WATCHED_BY)
        except ApiError as error:
            log.info("%s: its Secret gets no label: %s", self.resource.key.path, error.message)
        self._source = self._source.model_copy(update={"labelled": True})

    def read(self, read: Read, answer: object) -> None:
        """The document."""
        self._text = text_at(str(answer))

    def wrote(self, write: Write, answer: object) -> None:
        """Nothing of 3scale is written here."""

    def forget(self) -> None:
        """The document is fetched again; that of a Secret has not changed."""
        if self.resource.spec.openapi_ref.secret_ref is None:
            self._text = None

    async def _write_child(self, child: Child) -> None:
        """One that meets a conflict has the newest known for the next look."""
        kind = all_kinds()[child.kind]
        try:
            if child.delete:
                answer = await self._kube.delete(kind, self.namespace, child.name)
            elif child.body:
                answer = await self._kube.create(kind, child.body, self.namespace)
            else:
                answer = await self._kube.patch(
                    kind, self.namespace, child.name, child.patch, resource_version=child.resource_version
                )
        except (Conflict, Absent):
            await self._known.fresh(kind, self.namespace, child.name)
            raise
        if text(answer, "kind") == child.kind:  # else a Status: it is gone
            self._known.learn(kind, answer)
        self._look_for_children()
