"""The lifecycle of a Backend.

    New ─finalizer, defaults─► Syncing ─► Synced ─new spec, drift─► Syncing
         any ─► Orphan: the tenant is missing   any ─► Invalid: the spec is wrong   any ─► Failed: 3scale refuses a call
         any ─deletion─► Deleting ─no product uses it─► gone

Each Product that uses the Backend deploys when the Backend's gateway digest changes. A manual change in 3scale
may have reached gateways. So when Perdure has corrected the change, a new time in `mended` makes the Products deploy
again. While a Backend is being deleted, Products that use it are Orphans.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import ClassVar, Self

from domain.decision import Decision
from domain.resource import timestamp
from domain.schema import Json
from domain.threescale.actions import ShowStatus
from domain.threescale.apply_response import read_backend, wrote_backend
from domain.threescale.calls import Read, Resource, Sync, Write, change, creation, read_entry, unless_refused
from domain.threescale.deletion import Leaving, deprovision, leaving_of_owner
from domain.threescale.digests import digest, digests_of, remembering
from domain.threescale.faults import message_of
from domain.threescale.managed_by import MANAGED_BY, missing_mark
from domain.threescale.mapping_rules import order, without
from domain.threescale.methods_and_metrics import Owner, count
from domain.threescale.metrics_in_use import releasing
from domain.threescale.normalize import described, same_address, same_text
from domain.threescale.observed import Blocker, ObservedOwner, blocking, calls, invalid, status_patch, waiting
from domain.threescale.refused_calls import held
from domain.threescale.remote_state import FoundBackend, FoundBackendApi
from domain.threescale.resources import Backend, Product
from domain.threescale.resources.backend import BackendSpec
from domain.threescale.resources.shared import Digests
from domain.threescale.spec_defaults import of_backend
from domain.threescale.spec_validation import faults_of_backend
from domain.threescale.system_names import changed_name, taken_name
from domain.threescale.usable_referents import users_of

_PATH = "backend_apis"
_COUNTED = (Resource.METRIC, Resource.METHOD)


class ObservedBackend(ObservedOwner):
    listed: ClassVar[Resource] = Resource.BACKEND
    path: ClassVar[str] = _PATH

    resource: Backend
    products: tuple[Product, ...] = ()  # Products that use this Backend; observed only while it is being deleted
    found: FoundBackend = FoundBackend()

    def decide(self, now: datetime) -> Decision:
        return (
            deprovision(self, _leaving, now) or self.begins(now, of_backend(self.resource.spec)) or _decided(self, now)
        )

    def read(self, read: Read, body: object) -> Self:
        return self.finding(read, read_backend(self.found, read, body, self.resource.spec.system_name))

    def wrote(self, write: Write, body: object) -> Self:
        return self.beside({"found": wrote_backend(self.found, write, body)})

    def remembered(self) -> object:
        return self.found if self.found.entry is not None else None

    def recalling(self, remembered: object) -> Self:
        return self.beside({"found": remembered})


def _decided(observed: ObservedBackend, now: datetime) -> Decision:
    fields: dict[str, object] = {"provider_account_host": observed.provider.url}
    faults = faults_of_backend(observed.resource.spec)
    wrong = invalid(message_of(faults)) if faults else taken_name(observed.resource, observed.siblings)
    if wrong is not None:
        return observed.blocked(wrong, now, fields)
    return observed.taken(now, fields) or _synced(observed, fields, now)


def _synced(observed: ObservedBackend, fields: dict[str, object], now: datetime) -> Decision:
    backend, found = observed.resource, observed.found
    known_id = observed.known_id
    before = digests_of(backend)
    desired = _desired(backend, observed.provider.url)
    if desired == before and known_id and not observed.look and not found.looked:
        return observed.fine(now, fields)
    if changed := changed_name(observed):
        return observed.blocked(changed, now, fields)
    whole = sync_backend(backend.spec, found, known_id)
    refused = blocking(whole, observed.refusals)
    slots = held(refused, now)
    sync = sync_backend(backend.spec, found, known_id, slots) if slots else whole
    decision = calls(sync, slots, *_mending(observed, before, desired, sync))
    if decision is not None:
        return decision
    if found.entry is not None:
        fields = {**fields, "backend_id": found.entry.id}
    if refused:
        return observed.as_refused(refused, now, {**fields, **releasing(backend, before, desired, refused)})
    if before.gateway and not before.synced:
        desired = desired.model_copy(update={"mended": timestamp(now)})
    return observed.fine(now, fields, digests=desired)


def _mending(observed: ObservedBackend, before: Digests, desired: Digests, sync: Sync) -> tuple[ShowStatus, ...]:
    """The write that clears the `synced` digest before a change that Products must notice; empty if no such change is
    due. After a crash, the cleared digest tells the next pass that the change may have been made.
    """
    gateway = before.gateway == desired.gateway and any(shows_in_gateways(each) for each in sync.writes)
    # With a metric, 3scale deletes the limits and prices that Products have for it. If a metric is created although the
    # spec is unchanged, it was deleted by hand.
    counted = [each for each in sync.writes if each.resource in _COUNTED]
    lost = any(each.method == "DELETE" or (each.key and before.synced == desired.synced) for each in counted)
    if not (gateway or lost):
        return ()
    forgetting = remembering(observed.resource, before.model_copy(update={"synced": None}))
    return observed.shown(status_patch(observed.resource, forgetting))


def _desired(backend: Backend, url: str) -> Digests:
    spec = backend.spec
    return Digests(
        synced=digest(url, spec),
        gateway=digest(url, spec.private_base_url, spec.mapping_rules),
        mended=digests_of(backend).mended,
    )


def _leaving(observed: ObservedBackend) -> Leaving:
    return leaving_of_owner(observed, _users(observed))


def _users(observed: ObservedBackend) -> Blocker | None:
    users = users_of(observed.resource, observed.products) if observed.resource.status.backend_id else ()
    if not users:
        return None
    names = [f"{each.metadata.namespace}/{each.metadata.name}" for each in users]
    return waiting(
        f"cannot be deleted: used by Product {', '.join(names)}", *tuple(f"Product/{name}" for name in names)
    )


def sync_backend(spec: BackendSpec, found: FoundBackend, known_id: int = 0, refused: Iterable[str] = ()) -> Sync:
    """Find the backend ─► create it ─► read metrics and rules ─► write metrics ─► write rules ─► delete metrics.

    Writes whose slot is in `refused` are left out. `spec` includes the defaults.
    """
    backend, held_back = found.entry, set(refused)
    if backend is None:
        if not found.looked:
            return Sync(reads=(read_entry(Resource.BACKEND, _PATH, 0 if found.lost else known_id, paged=True),))
        return Sync(writes=unless_refused([_creation(spec)], held_back))
    reads = tuple(_reads(found, backend))
    if reads:
        return Sync(reads=reads)
    owner = Owner.backend(backend.id)
    counting = count(owner, spec.metrics, spec.methods, found.metrics or ())
    if counting.obstacles:
        obstacles = unless_refused(counting.obstacles, held_back)
        uncounted = without(obstacles, spec.mapping_rules, owner.ids(found.metrics or ()))
        cleared = order(owner, uncounted, found.metrics or (), found.rules or (), held_back) if obstacles else ()
        return Sync(writes=(*(cleared or ()), *obstacles))
    writes = [*changes_of_backend(spec, backend), *counting.writes]
    if any(write.method != "PUT" for write in counting.writes):
        return Sync(writes=unless_refused(writes, held_back))
    rules = order(owner, spec.mapping_rules, found.metrics or (), found.rules or (), held_back)
    return Sync(writes=unless_refused([*writes, *(rules or ()), *counting.farewells], held_back))


def shows_in_gateways(write: Write) -> bool:
    return write.resource is Resource.RULE or "private_endpoint" in write.fields


def _reads(found: FoundBackend, backend: FoundBackendApi) -> Iterable[Read]:
    path = f"{_PATH}/{backend.id}"
    if found.metrics is None:
        yield Read(resource=Resource.METRIC, path=f"{path}/metrics", paged=True)
    if found.rules is None:
        yield Read(resource=Resource.RULE, path=f"{path}/mapping_rules", paged=True)


def _fields(spec: BackendSpec) -> dict[str, Json]:
    # As with the replaced operator: an absent description equals an empty one.
    return {"name": spec.name, "private_endpoint": spec.private_base_url, "description": spec.description or ""}


def _creation(spec: BackendSpec) -> Write:
    fields = {**described(_fields(spec)), "system_name": spec.system_name, "annotations": {**MANAGED_BY}}
    return creation(Resource.BACKEND, _PATH, fields, {"system_name": spec.system_name}, spec.system_name)


def changes_of_backend(spec: BackendSpec, backend: FoundBackendApi) -> Iterable[Write]:
    fields: dict[str, Json] = {}
    for name, value in _fields(spec).items():
        same = same_address if name == "private_endpoint" else same_text
        if not same(str(value), getattr(backend, name)):
            fields[name] = value
    fields |= missing_mark(backend.annotations)
    if fields:
        yield change(Resource.BACKEND, _PATH, backend.id, fields, backend.system_name)
