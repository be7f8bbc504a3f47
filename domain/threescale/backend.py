"""The lifecycle of a Backend.

    New ─finalizer, defaults─► Syncing ─► Synced ─new spec, drift─► Syncing
         any ─► Orphan: the tenant is missing    any ─► Invalid: the spec    any ─► Failed: 3scale refuses a call
         any ─deletion─► Deleting ─no product uses it─► gone

When the Backend's gateway digest changes, the Products that use the Backend deploy. They may also have deployed a
manual change; when Perdure has corrected the change, a new time in `mended` makes them deploy again. 3scale deletes a
metric only after all gateways have deployed without the metric; a temporary gateway digest makes the Products do so.
While a Backend is being deleted, Products that use it are Orphans.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Self

from domain.decision import Decision
from domain.refusal import Refusal
from domain.resource import ObjectMeta, timestamp
from domain.threescale.actions import ShowStatus
from domain.threescale.apply_response import read_backend, wrote_backend
from domain.threescale.backend_sync import shows_in_gateways, sync_backend
from domain.threescale.calls import Read, Resource, Write, deletion
from domain.threescale.digests import digest, digests_of, remembering
from domain.threescale.duplicate_owners import Holder
from domain.threescale.observed import Blocker, Leaving, Observed, blocking, calls, held, invalid, status_patch, waiting
from domain.threescale.product_sync import Sync
from domain.threescale.references import IN_USE, elder, users_of
from domain.threescale.remote_state import MANAGED_BY, FoundBackend, FoundBackendApi
from domain.threescale.resources import Backend, Product
from domain.threescale.resources.shared import Digests
from domain.threescale.spec_defaults import of_backend
from domain.threescale.spec_validation import Fault, faults_of_backend, message_of


class ObservedBackend(Observed):
    resource: Backend
    products: tuple[Product, ...] = ()  # Products that use this Backend; observed only while it is being deleted
    siblings: tuple[ObjectMeta, ...] = ()  # other Backends with the same system name and tenant
    holders: tuple[Holder, ...] = ()  # the siblings that have a backend in 3scale, each with the backend's id
    found: FoundBackend = FoundBackend()  # empty at first, or what the previous pass of this process stored

    def decide(self, now: datetime) -> Decision:
        return self.begins(_leaving, now, of_backend(self.resource.spec)) or _decided(self, now)

    def read(self, read: Read, body: object) -> Self:
        return self.beside({"found": read_backend(self.found, read, body, self.resource.spec.system_name)})

    def wrote(self, write: Write, body: object) -> Self:
        return self.beside({"found": wrote_backend(self.found, write, body)})

    def remembered(self) -> object:
        return self.found if self.found.backend is not None else None

    def recalling(self, remembered: object) -> Self:
        return self.beside({"found": remembered})


def _decided(observed: ObservedBackend, now: datetime) -> Decision:
    fields: dict[str, object] = {"provider_account_host": observed.provider.url}
    wrong = _wrong(observed)
    if wrong:
        return observed.blocked(invalid(wrong), now, fields)
    return _synced(observed, fields, now)


def _wrong(observed: ObservedBackend) -> str:
    backend = observed.resource
    faults = faults_of_backend(backend.spec)
    if faults:
        return message_of(faults)
    older = elder(backend.metadata, observed.siblings)
    if older is None:
        return ""
    return f"Backend {older.namespace}/{older.name} has the system name {backend.spec.system_name} already"


def _synced(observed: ObservedBackend, fields: dict[str, object], now: datetime) -> Decision:
    backend, found = observed.resource, observed.found
    known_id = observed.known_id
    before = digests_of(backend)
    desired = _desired(backend, observed.provider.url)
    if desired == before and known_id and not observed.look and not found.looked:
        return observed.fine(now, fields)
    there = found.backend
    if there is not None and there.system_name and there.system_name != backend.spec.system_name:
        return observed.blocked(_renaming(backend, there), now, fields)
    whole = sync_backend(backend.spec, found, known_id)
    refused = blocking(whole, observed.refusals)
    slots = held(refused, now)
    sync = sync_backend(backend.spec, found, known_id, slots) if slots else whole
    decision = calls(sync, slots, *_mending(observed, before, desired, sync))
    if decision is not None:
        return decision
    if found.backend is not None:
        fields = {**fields, "backend_id": found.backend.id}
    if refused:
        return observed.as_refused(refused, now, {**fields, **_releasing(backend, before, desired, refused)})
    if _mends(before, desired):
        desired = desired.model_copy(update={"mended": timestamp(now)})
    return observed.fine(now, fields, digests=desired)


def _mending(observed: ObservedBackend, before: Digests, desired: Digests, sync: Sync) -> tuple[ShowStatus, ...]:
    """The write that clears the `synced` digest before gateway settings are corrected without a change of the spec, so
    that the next pass notices a crash. Empty if no such correction is due.
    """
    if before.gateway != desired.gateway or not any(shows_in_gateways(each) for each in sync.writes):
        return ()
    forgetting = remembering(observed.resource, before.model_copy(update={"synced": None}))
    return observed.shown(status_patch(observed.resource, forgetting))


def _mends(before: Digests, desired: Digests) -> bool:
    return before.gateway == desired.gateway and not before.synced


def _releasing(
    backend: Backend, before: Digests, desired: Digests, refused: Mapping[str, Refusal]
) -> dict[str, object]:
    """Status fields with a temporary gateway digest, which makes the Products deploy without the metrics that 3scale
    refuses to delete because gateways use them. Empty if a refusal has another reason.
    """
    if not all(IN_USE in each.message for each in refused.values()):
        return {}
    gateway = digest(desired.gateway, "lets go")
    return remembering(backend, before.model_copy(update={"synced": None, "gateway": gateway}))


def _renaming(backend: Backend, there: FoundBackendApi) -> Blocker:
    detail = f"SystemName is immutable: backend {there.id} is called {there.system_name} in 3scale."
    fault = Fault(path="spec.systemName", value=backend.spec.system_name, detail=detail)
    return invalid(str(fault))


def _desired(backend: Backend, url: str) -> Digests:
    spec = backend.spec
    return Digests(
        synced=digest(url, spec),
        gateway=digest(url, spec.private_base_url, spec.mapping_rules),
        mended=digests_of(backend).mended,
    )


def _leaving(observed: ObservedBackend) -> Leaving:
    backend, found = observed.resource, observed.found
    known_id = observed.known_id
    leaving = Leaving(holders=observed.holders, blocker=_users(observed))
    if known_id and not found.looked:
        return leaving.model_copy(
            update={"write": deletion(Resource.BACKEND, "backend_apis", known_id, backend.spec.system_name)}
        )
    if any(not each.deleting for each in observed.siblings) or not backend.spec.system_name:
        return leaving
    if not found.looked:
        return leaving.model_copy(update={"look": Read(resource=Resource.BACKEND, path="backend_apis", paged=True)})
    there = found.backend
    ours = there is not None and (there.id == known_id or MANAGED_BY.items() <= there.annotations.items())
    return (
        leaving.model_copy(update={"write": deletion(Resource.BACKEND, "backend_apis", there.id, there.system_name)})
        if there and ours
        else leaving
    )


def _users(observed: ObservedBackend) -> Blocker | None:
    users = users_of(observed.resource, observed.products) if observed.resource.status.backend_id else ()
    if not users:
        return None
    names = [f"{each.metadata.namespace}/{each.metadata.name}" for each in users]
    return waiting(
        f"cannot be deleted: used by Product {', '.join(names)}", *tuple(f"Product/{name}" for name in names)
    )
