"""The lifecycle of a Backend, from what is observed to what to do now.

    New ─finalizer, defaults─► Syncing ─► Synced ─new spec, drift─► Syncing
         any ─► Orphan: the tenant is missing    any ─► Invalid    any ─► Failed: 3scale refuses something
         any ─deletion─► Deleting ─no product uses it─► gone

It remembers digests like a Product (`product.py`); a new digest of its part of the gateway makes the products that use
it deploy. A product may have deployed a change that somebody made to that part by hand, so the time of the correction
is remembered too, and the products deploy again. A metric that a gateway counts is deleted after the products have
deployed without it: until then a digest of its own makes them do so. A deleted Backend waits until no Product uses it;
those products are Orphans meanwhile, and their specs stay. If something else in 3scale uses it, 3scale refuses the
deletion, and it is tried again.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from domain.refusal import Refusal
from domain.resource import ObjectMeta, timestamp
from domain.threescale import BACKEND
from domain.threescale.backend_sync import shows_in_gateways, sync_backend
from domain.threescale.calls import Read, Resource, Write
from domain.threescale.conditions import Standing
from domain.threescale.defaults import of_backend
from domain.threescale.digests import digest, digests_of, remembering
from domain.threescale.found import MANAGED_BY, FoundBackend, FoundBackendApi
from domain.threescale.holders import Holder
from domain.threescale.providers import NoAccount, ProviderAccount, known_at
from domain.threescale.references import IN_USE, elder, users_of
from domain.threescale.resources import Backend, Product
from domain.threescale.resources.shared import Digests
from domain.threescale.validation import Fault, faults_of_backend, message_of
from domain.threescale.work import (
    Blocker,
    Leaving,
    Observed,
    Phase,
    Work,
    adopted,
    as_refused,
    blocked,
    deprovision,
    fine,
    held,
    refused,
    status_patch,
    syncing,
    without_account,
)


class ObservedBackend(Observed):
    """What one decision sees.

    Attributes:
        backend: the object.
        account: its tenant.
        products: those of its namespace, which may use it.
        siblings: other Backends with its system name and tenant.
        holders: those siblings that have something there, with its id.
        found: what is known of 3scale: nothing, or what a pass of this process has left.
    """

    backend: Backend
    account: ProviderAccount | NoAccount
    products: tuple[Product, ...] = ()
    siblings: tuple[ObjectMeta, ...] = ()
    holders: tuple[Holder, ...] = ()
    found: FoundBackend = FoundBackend()


def work_for_backend(observed: ObservedBackend, now: datetime) -> Work:
    """What to do now for a Backend that exists."""
    backend, account = observed.backend, observed.account
    if backend.metadata.deleting:
        return deprovision(backend, _leaving(observed), observed.refusals, now)
    patch = adopted(backend.metadata, BACKEND, of_backend(backend.spec))
    if patch:
        return Work(phase=Phase.NEW, why="set its finalizer and defaults", patch=patch)
    if isinstance(account, NoAccount):
        return without_account(backend, account, now)
    fields: dict[str, object] = {"provider_account_host": account.url}
    wrong = _wrong(observed)
    if wrong:
        return blocked(backend, Blocker(standing=Standing.INVALID, message=wrong), now, fields)
    return _synced(observed, account, fields, now)


def _wrong(observed: ObservedBackend) -> str:
    backend = observed.backend
    faults = faults_of_backend(backend.spec)
    if faults:
        return message_of(faults)
    older = elder(backend.metadata, observed.siblings)
    if older is None:
        return ""
    return f"Backend {older.namespace}/{older.name} has the system name {backend.spec.system_name} already"


def _synced(observed: ObservedBackend, account: ProviderAccount, fields: dict[str, object], now: datetime) -> Work:
    backend, found = observed.backend, observed.found
    known_id = _known_id(observed)
    before = digests_of(backend)
    wished = _wished(backend, account)
    if wished == before and known_id and not observed.look and not found.looked:
        return fine(backend, now, fields)
    there = found.backend
    if there is not None and there.system_name and there.system_name != backend.spec.system_name:
        return blocked(backend, _renaming(backend, there), now, fields)
    whole = sync_backend(backend.spec, found, known_id)
    blocking = refused(whole, observed.refusals)
    slots = held(blocking, now)
    work = syncing(sync_backend(backend.spec, found, known_id, slots) if slots else whole, slots)
    if work is not None:
        return _mending(backend, before, wished, work)
    if found.backend is not None:
        fields = {**fields, "backend_id": found.backend.id}
    if blocking:
        return as_refused(backend, blocking, now, {**fields, **_letting_go(backend, before, wished, blocking)})
    if _mends(before, wished):
        wished = wished.model_copy(update={"mended": timestamp(now)})
    return fine(backend, now, fields, digests=wished)


def _mending(backend: Backend, before: Digests, wished: Digests, work: Work) -> Work:
    """What gateways show is mended although nothing new is wanted: until that is told it counts as not in step."""
    if before.gateway != wished.gateway or not any(shows_in_gateways(each) for each in work.writes):
        return work
    forgetting = remembering(backend, before.model_copy(update={"synced": None}))
    return work.model_copy(update={"status": status_patch(backend, forgetting)})


def _mends(before: Digests, wished: Digests) -> bool:
    """Whether it has begun to mend what gateways show, in this pass or in one that died."""
    return before.gateway == wished.gateway and not before.synced


def _letting_go(
    backend: Backend, before: Digests, wished: Digests, blocking: Mapping[str, Refusal]
) -> dict[str, object]:
    """Where nothing is left but what gateways count, the products deploy without it; and once more when it is gone."""
    if not all(IN_USE in each.message for each in blocking.values()):
        return {}
    gateway = digest(wished.gateway, "lets go")
    return remembering(backend, before.model_copy(update={"synced": None, "gateway": gateway}))


def _renaming(backend: Backend, there: FoundBackendApi) -> Blocker:
    """What has its id is called otherwise: 3scale keeps a system name for good."""
    detail = f"SystemName is immutable: backend {there.id} is called {there.system_name} in 3scale."
    fault = Fault(path="spec.systemName", value=backend.spec.system_name, detail=detail)
    return Blocker(standing=Standing.INVALID, message=str(fault))


def _known_id(observed: ObservedBackend) -> int:
    """What its tenant has told; 0 if it has none there."""
    status, account = observed.backend.status, observed.account
    return known_at(account.url, status.provider_account_host, status.backend_id)


def _wished(backend: Backend, account: ProviderAccount) -> Digests:
    spec = backend.spec
    return Digests(
        synced=digest(account.url, spec),
        gateway=digest(account.url, spec.private_base_url, spec.mapping_rules),
        mended=digests_of(backend).mended,
    )


def _leaving(observed: ObservedBackend) -> Leaving:
    backend, found = observed.backend, observed.found
    known_id = _known_id(observed)
    leaving = Leaving(
        account=observed.account, outside=backend.outside, holders=observed.holders, blocker=_users(observed)
    )
    if known_id and not found.looked:
        return leaving.model_copy(update={"write": _deletion(known_id, backend.spec.system_name)})
    if any(not each.deleting for each in observed.siblings) or not backend.spec.system_name:
        return leaving
    if not found.looked:
        return leaving.model_copy(update={"look": Read(resource=Resource.BACKEND, path="backend_apis", paged=True)})
    there = found.backend
    ours = there is not None and (there.id == known_id or MANAGED_BY.items() <= there.annotations.items())
    return leaving.model_copy(update={"write": _deletion(there.id, there.system_name)}) if there and ours else leaving


def _users(observed: ObservedBackend) -> Blocker | None:
    users = users_of(observed.backend, observed.products) if observed.backend.status.backend_id else ()
    if not users:
        return None
    names = [f"{each.metadata.namespace}/{each.metadata.name}" for each in users]
    return Blocker(
        standing=Standing.WAITING,
        message=f"cannot be deleted: used by Product {', '.join(names)}",
        waits_for=tuple(f"Product/{name}" for name in names),
    )


def _deletion(id_: int, name: str) -> Write:
    return Write(resource=Resource.BACKEND, method="DELETE", path=f"backend_apis/{id_}", id=id_, about=name)
