"""The calls for a backend.

    find the backend ─► create it ─► read metrics and rules ─► write metrics ─► write rules ─► delete metrics

3scale refuses to delete a metric that a product's gateway uses until the product is deployed without the metric.
"""

from __future__ import annotations

from collections.abc import Iterable

from domain.schema import Json
from domain.threescale.calls import Read, Resource, Write, change, unless_refused
from domain.threescale.metrics import Owner, count, order, without
from domain.threescale.normalize import described, same_address, same_text
from domain.threescale.product_sync import Sync
from domain.threescale.remote_state import MANAGED_BY, FoundBackend, FoundBackendApi, missing_mark
from domain.threescale.resources.backend import BackendSpec


def sync_backend(spec: BackendSpec, found: FoundBackend, known_id: int = 0, refused: Iterable[str] = ()) -> Sync:
    """Return the next calls, without the writes whose slot is in `refused`. `spec` includes the defaults."""
    backend, held = found.backend, set(refused)
    if backend is None:
        if not found.looked:
            return Sync(reads=(_look(0 if found.lost else known_id),))
        return Sync(writes=unless_refused([_creation(spec)], held))
    reads = tuple(_reads(found, backend))
    if reads:
        return Sync(reads=reads)
    owner = Owner.backend(backend.id)
    counting = count(owner, spec.metrics, spec.methods, found.metrics or ())
    if counting.obstacles:
        obstacles = unless_refused(counting.obstacles, held)
        uncounted = without(obstacles, spec.mapping_rules, owner.ids(found.metrics or ()))
        cleared = order(owner, uncounted, found.metrics or (), found.rules or (), held) if obstacles else ()
        return Sync(writes=(*(cleared or ()), *obstacles))
    writes = [*changes_of_backend(spec, backend), *counting.writes]
    if any(write.method != "PUT" for write in counting.writes):
        return Sync(writes=unless_refused(writes, held))
    rules = order(owner, spec.mapping_rules, found.metrics or (), found.rules or (), held)
    return Sync(writes=unless_refused([*writes, *(rules or ()), *counting.farewells], held))


def shows_in_gateways(write: Write) -> bool:
    return write.resource is Resource.RULE or "private_endpoint" in write.fields


def _look(known_id: int) -> Read:
    if known_id:
        return Read(resource=Resource.BACKEND, path=f"backend_apis/{known_id}", of=known_id)
    return Read(resource=Resource.BACKEND, path="backend_apis", paged=True)


def _reads(found: FoundBackend, backend: FoundBackendApi) -> Iterable[Read]:
    path = f"backend_apis/{backend.id}"
    if found.metrics is None:
        yield Read(resource=Resource.METRIC, path=f"{path}/metrics", paged=True)
    if found.rules is None:
        yield Read(resource=Resource.RULE, path=f"{path}/mapping_rules", paged=True)


def _fields(spec: BackendSpec) -> dict[str, Json]:
    # As with the replaced operator: an absent description equals an empty one.
    return {"name": spec.name, "private_endpoint": spec.private_base_url, "description": spec.description or ""}


def _creation(spec: BackendSpec) -> Write:
    return Write(
        resource=Resource.BACKEND,
        method="POST",
        path="backend_apis",
        fields={
            **described(_fields(spec)),
            "system_name": spec.system_name,
            "annotations": {**MANAGED_BY},
        },
        key={"system_name": spec.system_name},
        about=spec.system_name,
    )


def changes_of_backend(spec: BackendSpec, backend: FoundBackendApi) -> Iterable[Write]:
    fields: dict[str, Json] = {}
    for name, value in _fields(spec).items():
        same = same_address if name == "private_endpoint" else same_text
        if not same(str(value), getattr(backend, name)):
            fields[name] = value
    fields |= missing_mark(backend.annotations)
    if fields:
        yield change(Resource.BACKEND, "backend_apis", backend.id, fields, backend.system_name)
