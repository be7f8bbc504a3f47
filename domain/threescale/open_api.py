"""The lifecycle of an OpenAPI: a document becomes a Product and a Backend.

    New ─► document read ─► Backend and Product written ─► Syncing: the Product is not synced yet ─► Ready
      ▲                                                                                            │
      └──────────────── new document, new spec, the generated objects were changed ◄───────────────┘
        any ─► Orphan: tenant or Secret is missing   any ─► Invalid: wrong document   any ─► Failed: an object failed
        any ─deletion─► Product gone ─► Backend gone ─► deleted

An OpenAPI itself makes no call to 3scale. The names of its Product and Backend never change, even if the title does,
because a new Product would have no applications. Because of the finalizer both objects are deleted even without a
garbage collector; `--cascade=orphan` keeps them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import ClassVar, Self, TypeVar

from domain.decision import Decision
from domain.identity import Kind
from domain.model import Model
from domain.resource import ObjectMeta
from domain.schema import JsonObject
from domain.threescale import BACKEND, OPEN_API, PRODUCT
from domain.threescale.actions import SECRET, ClusterWrite
from domain.threescale.auto_promotion import PROMOTE
from domain.threescale.calls import Read, Resource, Sync
from domain.threescale.conditions import FAILED, INVALID, SyncState
from domain.threescale.deletion import RETAIN, retained
from domain.threescale.document_sources import Text, fetched_again, text_at
from domain.threescale.duplicate_owners import seniority
from domain.threescale.faults import Fault, message_of
from domain.threescale.notices import left_aside
from domain.threescale.observed import Blocker, Observed, Phase, acts, failed, finalizer_set, invalid, is_true
from domain.threescale.open_api_document import Unreadable, read_api
from domain.threescale.open_api_generated import Generated, generate, name_of
from domain.threescale.owner_references import HANDED, owned
from domain.threescale.remote_ids import combined
from domain.threescale.resources import Backend, OpenApi, Product
from domain.threescale.resources.shared import LocalReference
from domain.threescale.spec_validation import faults_of_backend, faults_of_product
from domain.threescale.tls_verification import INSECURE
from domain.threescale.usable_referents import usable
from domain.writes import JsonPatch, difference

_ORPHAN_FINALIZER = "orphan"

C = TypeVar("C", Product, Backend)


# Labels that link an OpenAPI and its document's Secret, as the replaced operator sets them. People, tools, and the
# operator after a rollback use the labels. A Secret that the worker has no right to label stays unlabelled.
WATCHED_BY = {"apimanager.apps.3scale.net/watched-by": "openapi"}
SOURCE_UID = "apimanager.apps.3scale.net/oas-source-secret-uid"


class SourceSecret(Model):
    uid: str
    labelled: bool = False


def source_noted(meta: ObjectMeta, source: SourceSecret | None) -> JsonPatch:
    uid = source.uid if source else None
    return {} if meta.labels.get(SOURCE_UID) == uid else {"metadata": {"labels": {SOURCE_UID: uid}}}


class ObservedOpenApi(Observed):
    """An OpenAPI, with the Products and Backends that it owns or that its status names. `text` is None if the document
    is not fetched yet; `source` is None if no Secret with the document exists.
    """

    learnt: ClassVar[tuple[str, ...]] = ()

    resource: OpenApi
    text: Text | None = None
    source: SourceSecret | None = None
    products: tuple[Product, ...] = ()
    backends: tuple[Backend, ...] = ()

    def decide(self, now: datetime) -> Decision:
        if self.resource.metadata.deleting:
            return _leaving(self, now)
        patch = combined(finalizer_set(self.resource), source_noted(self.resource.metadata, self.source))
        if patch:
            return acts(Phase.NEW, "set its finalizer and record its Secret", *self.patched(patch))
        if self.source is not None and not self.source.labelled:
            return acts(Phase.SYNCING, "label its Secret", LabelSource())
        return self.without_account(now) or _decided(self, now)

    def read(self, read: Read, body: object) -> Self:
        return self.beside({"text": text_at(str(body))})

    def forget(self) -> Self:
        """Discard a document from a URL, so that it is fetched again."""
        return self if self.resource.spec.openapi_ref.secret_ref else self.beside({"text": None})


class WriteChild(ClusterWrite):
    """Create (`body`), patch (`patch`) or delete (`delete`) an object in the OpenAPI's namespace."""

    kind: str
    name: str
    body: JsonObject = {}
    patch: JsonPatch = {}
    resource_version: str = ""
    delete: bool = False

    @property
    def slot(self) -> str:
        return f"{self.kind}/{self.name}"

    @property
    def summary(self) -> str:
        return f"{'delete' if self.delete else 'create' if self.body else 'change'} {self.slot}"


class LabelSource(ClusterWrite):
    @property
    def slot(self) -> str:
        return SECRET

    @property
    def summary(self) -> str:
        return "label its Secret"


def _decided(observed: ObservedOpenApi, now: datetime) -> Decision:
    fields: dict[str, object] = {"provider_account_host": observed.provider.url}
    if observed.text is None:
        return _fetched(observed, fields, now)
    if observed.text.blocker is not None:
        return observed.blocked(observed.text.blocker, now, fields)
    decision = _made(observed, observed.text, fields, now)
    if any(isinstance(each, WriteChild) for each in decision.actions):
        return decision
    return fetched_again(decision, observed.resource.spec.openapi_ref, now)


def _fetched(observed: ObservedOpenApi, fields: dict[str, object], now: datetime) -> Decision:
    url = observed.resource.spec.openapi_ref.url
    reads = (Read(resource=Resource.TEXT, path=url),) if url else ()
    decision, refused = observed.attempted(Sync(reads=reads), now)
    if decision is not None:
        return decision
    if refused:
        return observed.as_refused(refused, now, fields)
    fault = Fault(path="spec.openapiRef", value=None, detail="needs secretRef or url")
    return observed.blocked(invalid(str(fault)), now, fields)


def _made(observed: ObservedOpenApi, text: Text, fields: dict[str, object], now: datetime) -> Decision:
    open_api, uid = observed.resource, observed.resource.metadata.uid
    try:
        api = read_api(text.body)
        name = name_of(api.info.title, uid)
        products, backends = _owned(open_api, observed.products), _owned(open_api, observed.backends)
        product = _named(products, *_noted_product(open_api), name)
        backend = _named(backends, *_noted_backends(open_api), name)
        known = backend or product
        product, backend = product or _oldest(products, known), backend or _oldest(backends, known)
        known = backend or product
        system_name = known.spec.system_name if known else ""
        generated = generate(open_api.spec, api, uid, system_name)
    except Unreadable as problem:
        fault = Fault(path="spec.openapiRef", value=open_api.spec.openapi_ref.place, detail=str(problem))
        return observed.blocked(invalid(str(fault)), now, fields)
    blocker = _blocker(open_api, generated, system_name, product, backend)
    if blocker is not None:
        decision = observed.blocked(blocker, now, fields)
    else:
        decision = _written(observed, generated, product, backend, fields, now)
    return decision.model_copy(update={"notices": tuple(map(left_aside, generated.warnings))})


def _written(
    observed: ObservedOpenApi,
    generated: Generated,
    product: Product | None,
    backend: Backend | None,
    fields: dict[str, object],
    now: datetime,
) -> Decision:
    open_api = observed.resource
    children = (
        *_child(open_api, backend or _sibling(generated.name, observed.backends), generated, generated.backend),
        *_child(open_api, product or _sibling(generated.name, observed.products), generated, generated.product),
    )
    fields = fields | {
        "product_resource_name": LocalReference(name=product.metadata.name) if product else None,
        "backend_resource_names": (LocalReference(name=backend.metadata.name),) if backend else (),
    }
    if children:
        return observed.writes_cluster(children, f"write {', '.join(each.slot for each in children)}", now, fields)
    assert product is not None  # noqa: S101 - there is nothing to write
    return _settled(observed, product, fields, now)


def _settled(observed: ObservedOpenApi, product: Product, fields: dict[str, object], now: datetime) -> Decision:
    meta, status = product.metadata, product.status
    current = (status.observed_generation or 0) >= meta.generation
    waits_for = (f"Product/{meta.namespace}/{meta.name}",)
    if current and usable(status.conditions) and not meta.deleting:
        return observed.fine(now, fields, why="its objects exist and are synced with 3scale")
    wrong = next((each for each in status.conditions if each.type in (INVALID, FAILED) and each.status == "True"), None)
    if current and wrong is not None and _is_final(product):
        return observed.blocked(failed(f"Product {meta.name}: {wrong.message or 'failed'}", *waits_for), now, fields)
    message = f"Product {meta.name} is not synced yet"
    return observed.blocked(Blocker(state=SyncState.SYNCING, message=message, waits_for=waits_for), now, fields)


def _is_final(product: Product) -> bool:
    return not is_true(product.status.conditions, "Orphan")


def _blocker(
    open_api: OpenApi, generated: Generated, system_name: str, product: Product | None, backend: Backend | None
) -> Blocker | None:
    wanted = open_api.spec.product_system_name
    if wanted and system_name and wanted != system_name:
        detail = f"its objects have the system name {system_name}, which cannot change: create another OpenAPI"
        fault = Fault(path="spec.productSystemName", value=wanted, detail=detail)
        return failed(str(fault))
    leaving = [each for each in (product, backend) if each is not None and each.metadata.deleting]
    if leaving:
        names = tuple(f"{each.kind_of.name}/{each.metadata.namespace}/{each.metadata.name}" for each in leaving)
        return Blocker(state=SyncState.SYNCING, message=f"{', '.join(names)} is being deleted", waits_for=names)
    faults = (*faults_of_product(generated.product), *faults_of_backend(generated.backend))
    return failed(message_of(faults)) if faults else None


def _owned(open_api: OpenApi, there: Sequence[C]) -> Sequence[C]:
    uid = open_api.metadata.uid
    return [each for each in there if any(owner.uid == uid for owner in each.metadata.owner_references)]


def _named(owned: Sequence[C], *names: str) -> C | None:
    # The objects in the status come first: after a change of the title, the replaced operator left the former objects.
    return next((each for name in names for each in owned if each.metadata.name == name), None)


def _oldest(owned: Sequence[C], counterpart: Product | Backend | None = None) -> C | None:
    # The Product and its Backend have the same system name.
    fitting = [each for each in owned if counterpart is None or each.spec.system_name == counterpart.spec.system_name]
    return min(fitting, key=lambda each: seniority(each.metadata), default=None)


def _noted_product(open_api: OpenApi) -> tuple[str, ...]:
    noted = open_api.status.product_resource_name
    return (noted.name,) if noted else ()


def _noted_backends(open_api: OpenApi) -> tuple[str, ...]:
    return tuple(each.name for each in open_api.status.backend_resource_names)


def _sibling(name: str, there: Sequence[C]) -> C | None:
    """The name contains the OpenAPI's uid, so an object with this name is ours even without an owner reference."""
    return next((each for each in there if each.metadata.name == name), None)


def _child(open_api: OpenApi, there: C | None, generated: Generated, spec: Model) -> tuple[WriteChild, ...]:
    kind = PRODUCT if spec is generated.product else BACKEND
    annotations = _annotations(open_api.metadata, kind, there.metadata.annotations if there else {})
    if there is None:
        meta = ObjectMeta(namespace=open_api.metadata.namespace, name=generated.name)
        metadata = {"name": meta.name, "namespace": meta.namespace, "annotations": annotations}
        owner = owned(meta, open_api)
        body: JsonObject = {
            "apiVersion": kind.api_version,
            "kind": kind.name,
            **combined({"metadata": metadata}, owner),
            "spec": spec.model_dump(mode="json", exclude_none=True),
        }
        return (WriteChild(kind=kind.name, name=generated.name, body=body),)
    changed = _without_nulls(difference(there.spec, spec), spec.model_dump(mode="json", exclude_none=True))
    noted = {name: value for name, value in annotations.items() if there.metadata.annotations.get(name) != value}
    patch = combined(
        {"spec": changed} if changed else {},
        {"metadata": {"annotations": noted}} if noted else {},
        owned(there.metadata, open_api),
    )
    version = there.metadata.resource_version
    return (
        (WriteChild(kind=kind.name, name=there.metadata.name, patch=patch, resource_version=version),) if patch else ()
    )


def _annotations(meta: ObjectMeta, kind: Kind, before: Mapping[str, str]) -> dict[str, str | None]:
    handed = [each for each in (RETAIN, PROMOTE) if each in meta.annotations and (each, kind) != (PROMOTE, BACKEND)]
    insecure = "true" if meta.annotations.get(INSECURE) == "true" else "false"
    former = before.get(HANDED, "").split(",")
    annotations: dict[str, str | None] = dict.fromkeys(each for each in (RETAIN, PROMOTE) if each in former)
    annotations |= {HANDED: None} if HANDED in before else {}
    annotations |= {HANDED: ",".join(handed)} if handed else {}
    return annotations | {INSECURE: insecure} | {name: meta.annotations[name] for name in handed}


def _without_nulls(patch: JsonPatch, whole: JsonObject) -> JsonPatch:
    """The patch, with each list replaced by the list of `whole`, which has no nulls. In a merge patch, a null removes a
    field, but not inside a list.
    """
    return {
        name: whole.get(name, value)
        if isinstance(value, list)
        else _without_nulls(value, inner)
        if isinstance(value, dict) and isinstance(inner := whole.get(name), dict)
        else value
        for name, value in patch.items()
    }


def _leaving(observed: ObservedOpenApi, now: datetime) -> Decision:
    """The Product is deleted before the Backend, because the Product uses the Backend."""
    open_api = observed.resource
    if OPEN_API.finalizer not in open_api.metadata.finalizers:
        return acts(Phase.GONE, "its finalizer is removed")
    product, backend = _oldest(_owned(open_api, observed.products)), _oldest(_owned(open_api, observed.backends))
    own = [each for each in (product, backend) if each is not None]
    has_finalizer = _ORPHAN_FINALIZER in open_api.metadata.finalizers
    if has_finalizer or not own:
        left = tuple(f"{each.kind_of.name} {each.metadata.name}" for each in own)
        why = (
            "the objects that it created stay because of --cascade=orphan"
            if has_finalizer and own
            else "all objects that it created are deleted"
        )
        return observed.released(why, left)
    going = WriteChild(kind=own[0].kind_of.name, name=own[0].metadata.name, delete=True)
    waits_for = (f"{going.kind}/{open_api.metadata.namespace}/{going.name}",)
    refused = observed.refusals.get(going.slot)
    if refused is not None and refused.retry_at > now:
        more = {"deadline": refused.retry_at, "blocked": (going.slot,)}
        return acts(Phase.DELETING, refused.message, waits_for=waits_for, **more)
    if retained(open_api.metadata) and not retained(own[0].metadata):
        # The objects lack the annotation if it is newer than their last write, or if the document is unusable.
        return acts(Phase.DELETING, f"retain {going.slot}", _retaining(own[0]), waits_for=waits_for)
    children = () if own[0].metadata.deleting else (going,)
    return acts(Phase.DELETING, f"waits until {going.slot} is deleted", *children, waits_for=waits_for)


def _retaining(child: Product | Backend) -> WriteChild:
    patch: JsonPatch = {"metadata": {"annotations": {RETAIN: "true"}}}
    meta = child.metadata
    return WriteChild(kind=child.kind_of.name, name=meta.name, patch=patch, resource_version=meta.resource_version)
