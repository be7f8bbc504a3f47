"""The lifecycle of an OpenAPI: a document becomes a Product and a Backend.

    New ─► document read ─► Backend and Product written ─► Syncing: the Product is not synced yet ─► Ready
      ▲                                                                                            │
      └──────────────── new document, new spec, the generated objects were changed ◄───────────────┘
        any ─► Orphan: tenant or Secret is missing   any ─► Invalid: the document   any ─► Failed: the generated objects
        any ─deletion─► Product gone ─► Backend gone ─► deleted

No call of 3scale is made here: the two objects have lifecycles of their own. Their specs are generated as a whole, and
changes to them are reverted. A document at an address is fetched every five minutes, and after a failure with growing
pauses. Names and system name stay as they were generated first, also when the title changes: another Product would be
another service, without the first one's applications. A Backend's system name cannot change, so another one needs
another OpenAPI. Owner references let the garbage collector delete both objects; the finalizer does so where none runs,
and keeps the OpenAPI until both are gone in 3scale. `--cascade=orphan` keeps them, and `retain` is copied to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar

from domain.identity import Kind
from domain.model import Model
from domain.resource import ObjectMeta
from domain.schema import JsonObject
from domain.threescale import BACKEND, OPEN_API, PRODUCT
from domain.threescale.active_doc import Text, fetched_again
from domain.threescale.conditions import FAILED, INVALID, Standing
from domain.threescale.digests import RETAIN
from domain.threescale.notes import combined, owned
from domain.threescale.open_api_document import Unreadable, read_api
from domain.threescale.open_api_generated import Generated, generate
from domain.threescale.product_sync import Sync
from domain.threescale.production import PROMOTE
from domain.threescale.providers import INSECURE, NoAccount, ProviderAccount
from domain.threescale.references import seniority, usable
from domain.threescale.resources import Backend, OpenApi, Product
from domain.threescale.resources.shared import LocalReference
from domain.threescale.source_labels import SourceSecret, source_noted
from domain.threescale.texts import look_at
from domain.threescale.validation import Fault, faults_of_backend, faults_of_product, message_of
from domain.threescale.work import (
    SECRET,
    Blocker,
    Effect,
    Observed,
    Phase,
    Work,
    adopted,
    as_refused,
    attempted,
    blocked,
    fine,
    is_true,
    without_account,
)
from domain.writes import JsonPatch, difference

_ORPHAN_FINALIZER = "orphan"

C = TypeVar("C", Product, Backend)


class ObservedOpenApi(Observed):
    """What one decision sees.

    Attributes:
        open_api: the object.
        account: its tenant.
        text: the document, None as long as it was not fetched.
        source: the Secret that it names, if that is there.
        products: those of its namespace.
        backends: those of its namespace.
    """

    open_api: OpenApi
    account: ProviderAccount | NoAccount
    text: Text | None = None
    source: SourceSecret | None = None
    products: tuple[Product, ...] = ()
    backends: tuple[Backend, ...] = ()


class Child(Effect):
    """A Product or Backend that is to be written.

    Attributes:
        kind: its kind.
        name: its name, in the OpenAPI's namespace.
        body: the whole object, where there is none.
        patch: the merge patch of one that is there.
        resource_version: the version that the patch is for.
        delete: True to delete it instead.
    """

    kind: str
    name: str
    body: JsonObject = {}
    patch: JsonPatch = {}
    resource_version: str = ""
    delete: bool = False

    @property
    def slot(self) -> str:
        """By which its refusals are remembered."""
        return f"{self.kind}/{self.name}"

    @property
    def summary(self) -> str:
        """For `plan`."""
        return f"{'delete' if self.delete else 'create' if self.body else 'change'} {self.slot}"


class SourceLabel(Effect):
    """The Secret with the document gets the label that it lacks."""

    @property
    def slot(self) -> str:
        """That of the Secret."""
        return SECRET

    @property
    def summary(self) -> str:
        """For `plan`."""
        return "label its Secret"


def work_for_open_api(observed: ObservedOpenApi, now: datetime) -> Work:
    """What to do now for an OpenAPI that exists."""
    open_api, account = observed.open_api, observed.account
    if open_api.metadata.deleting:
        return _leaving(observed, now)
    patch = combined(adopted(open_api.metadata, OPEN_API, {}), source_noted(open_api.metadata, observed.source))
    if patch:
        return Work(phase=Phase.NEW, why="set its finalizer and record its Secret", patch=patch)
    if observed.source is not None and not observed.source.labelled:
        return Work(phase=Phase.SYNCING, why="label its Secret", effects=(SourceLabel(),))
    if isinstance(account, NoAccount):
        return without_account(open_api, account, now)
    fields: dict[str, object] = {"provider_account_host": account.url}
    if observed.text is None:
        return _fetched(observed, fields, now)
    if observed.text.blocker is not None:
        return blocked(open_api, observed.text.blocker, now, fields)
    work = _made(observed, observed.text, fields, now)
    return work if work.effects else fetched_again(work, open_api.spec.openapi_ref, now)


def _fetched(observed: ObservedOpenApi, fields: dict[str, object], now: datetime) -> Work:
    read = look_at(observed.open_api.spec.openapi_ref)
    work, blocking = attempted(Sync(reads=(read,) if read else ()), observed.refusals, now)
    if work is not None:
        return work
    if blocking:
        return as_refused(observed.open_api, blocking, now, fields)
    fault = Fault(path="spec.openapiRef", value=None, detail="needs secretRef or url")
    return blocked(observed.open_api, Blocker(standing=Standing.INVALID, message=str(fault)), now, fields)


def _made(observed: ObservedOpenApi, text: Text, fields: dict[str, object], now: datetime) -> Work:
    open_api = observed.open_api
    product, backend = _own(open_api, observed.products), _own(open_api, observed.backends)
    known = backend or product
    system_name = known.spec.system_name if known else ""
    try:
        generated = generate(open_api.spec, read_api(text.body), open_api.metadata.uid, system_name)
    except Unreadable as problem:
        fault = Fault(path="spec.openapiRef", value=_place(open_api), detail=str(problem))
        return blocked(open_api, Blocker(standing=Standing.INVALID, message=str(fault)), now, fields)
    blocker = _blocker(open_api, generated, system_name, product, backend)
    if blocker is not None:
        work = blocked(open_api, blocker, now, fields)
    else:
        work = _written(observed, generated, product, backend, fields, now)
    return work.model_copy(update={"warnings": generated.warnings})


def _written(
    observed: ObservedOpenApi,
    generated: Generated,
    product: Product | None,
    backend: Backend | None,
    fields: dict[str, object],
    now: datetime,
) -> Work:
    """The two are written where they differ; else it stands as they do."""
    open_api = observed.open_api
    children = (
        *_child(open_api, backend or _sibling(generated.name, observed.backends), generated, generated.backend),
        *_child(open_api, product or _sibling(generated.name, observed.products), generated, generated.product),
    )
    blocking = {each.slot: observed.refusals[each.slot] for each in children if each.slot in observed.refusals}
    if children and not any(each.retry_at > now for each in blocking.values()):
        why = f"write {', '.join(each.slot for each in children)}"
        return Work(phase=Phase.SYNCING, why=why, effects=children)
    fields |= {
        "product_resource_name": LocalReference(name=product.metadata.name) if product else None,
        "backend_resource_names": (LocalReference(name=backend.metadata.name),) if backend else (),
    }
    if blocking:
        return as_refused(open_api, blocking, now, fields)
    assert product is not None  # noqa: S101 - there is nothing to write
    return _settled(open_api, product, fields, now)


def _settled(open_api: OpenApi, product: Product, fields: dict[str, object], now: datetime) -> Work:
    """It stands as its product does, once that has seen the spec."""
    meta, status = product.metadata, product.status
    current = (status.observed_generation or 0) >= meta.generation
    waits_for = (f"Product/{meta.namespace}/{meta.name}",)
    if current and usable(status.conditions) and not meta.deleting:
        return fine(open_api, now, fields, why="its objects exist and are synced with 3scale")
    wrong = next((each for each in status.conditions if each.type in (INVALID, FAILED) and each.status == "True"), None)
    if current and wrong is not None and _is_final(product):
        message = f"Product {meta.name}: {wrong.message or 'failed'}"
        return blocked(open_api, Blocker(standing=Standing.FAILED, message=message, waits_for=waits_for), now, fields)
    message = f"Product {meta.name} is not synced yet"
    return blocked(open_api, Blocker(standing=Standing.SYNCING, message=message, waits_for=waits_for), now, fields)


def _is_final(product: Product) -> bool:
    """Whether it does not just wait for its backend."""
    return not is_true(product.status.conditions, "Orphan")


def _blocker(
    open_api: OpenApi, generated: Generated, system_name: str, product: Product | None, backend: Backend | None
) -> Blocker | None:
    """Why what was generated cannot be written."""
    wanted = open_api.spec.product_system_name
    if wanted and system_name and wanted != system_name:
        detail = f"its objects have the system name {system_name}, which cannot change: create another OpenAPI"
        fault = Fault(path="spec.productSystemName", value=wanted, detail=detail)
        return Blocker(standing=Standing.FAILED, message=str(fault))
    leaving = [each for each in (product, backend) if each is not None and each.metadata.deleting]
    if leaving:
        names = tuple(f"{each.kind_of.name}/{each.metadata.namespace}/{each.metadata.name}" for each in leaving)
        return Blocker(standing=Standing.SYNCING, message=f"{', '.join(names)} is being deleted", waits_for=names)
    faults = (*faults_of_product(generated.product), *faults_of_backend(generated.backend))
    return Blocker(standing=Standing.FAILED, message=message_of(faults)) if faults else None


def _own(open_api: OpenApi, there: Sequence[C]) -> C | None:
    """The one that it owns, the oldest of several."""
    uid = open_api.metadata.uid
    ours = [each for each in there if any(owner.uid == uid for owner in each.metadata.owner_references)]
    return min(ours, key=lambda each: seniority(each.metadata), default=None)


def _sibling(name: str, there: Sequence[C]) -> C | None:
    """One that has its name, which has its uid in it, and has lost its owner."""
    return next((each for each in there if each.metadata.name == name), None)


def _child(open_api: OpenApi, there: C | None, generated: Generated, spec: Model) -> tuple[Child, ...]:
    """What has to be written that one of the two is as it shall be."""
    kind = PRODUCT if spec is generated.product else BACKEND
    annotations = _annotations(open_api.metadata, kind)
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
        return (Child(kind=kind.name, name=generated.name, body=body),)
    changed = _without_nulls(difference(there.spec, spec), spec.model_dump(mode="json", exclude_none=True))
    noted = {name: value for name, value in annotations.items() if there.metadata.annotations.get(name) != value}
    patch = combined(
        {"spec": changed} if changed else {},
        {"metadata": {"annotations": noted}} if noted else {},
        owned(there.metadata, open_api),
    )
    version = there.metadata.resource_version
    return (Child(kind=kind.name, name=there.metadata.name, patch=patch, resource_version=version),) if patch else ()


def _annotations(meta: ObjectMeta, kind: Kind) -> dict[str, str]:
    """What the two get of the OpenAPI's own."""
    said = {INSECURE: "true" if meta.annotations.get(INSECURE) == "true" else "false"}
    handed = (RETAIN, PROMOTE) if kind is PRODUCT else (RETAIN,)
    return said | {name: meta.annotations[name] for name in handed if name in meta.annotations}


def _without_nulls(patch: JsonPatch, whole: JsonObject) -> JsonPatch:
    """The patch with its lists as they are to be stored: in a list, null does not stand for what is absent."""
    return {
        name: whole.get(name, value)
        if isinstance(value, list)
        else _without_nulls(value, inner)
        if isinstance(value, dict) and isinstance(inner := whole.get(name), dict)
        else value
        for name, value in patch.items()
    }


def _leaving(observed: ObservedOpenApi, now: datetime) -> Work:
    """The Product goes first, since it uses the Backend."""
    open_api = observed.open_api
    if OPEN_API.finalizer not in open_api.metadata.finalizers:
        return Work(phase=Phase.GONE, why="it has released everything")
    own = [each for each in (_own(open_api, observed.products), _own(open_api, observed.backends)) if each is not None]
    kept = _ORPHAN_FINALIZER in open_api.metadata.finalizers
    if kept or not own:
        left = tuple(f"{each.kind_of.name} {each.metadata.name}" for each in own)
        why = (
            "the objects that it created stay, as its annotation asks"
            if kept and own
            else "all objects that it created are deleted"
        )
        return Work(phase=Phase.DELETING, why=why, drop_finalizer=True, left=left)
    going = Child(kind=own[0].kind_of.name, name=own[0].metadata.name, delete=True)
    waits_for = (f"{going.kind}/{open_api.metadata.namespace}/{going.name}",)
    refused = observed.refusals.get(going.slot)
    if refused is not None and refused.retry_at > now:
        return Work(phase=Phase.DELETING, why=refused.message, waits_for=waits_for, deadline=refused.retry_at)
    children = () if own[0].metadata.deleting else (going,)
    return Work(phase=Phase.DELETING, why=f"waits until {going.slot} is deleted", effects=children, waits_for=waits_for)


def _place(open_api: OpenApi) -> str:
    document = open_api.spec.openapi_ref
    return document.secret_ref.name if document.secret_ref else (document.url or "").partition("?")[0]
