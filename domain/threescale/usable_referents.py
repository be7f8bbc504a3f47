"""Whether a referent is usable, and how it blocks its referrers.

A usable referent is in 3scale, in the same tenant, and not being deleted. An Invalid referent makes its referrers
Invalid. Any other unusable referent makes them Orphans, whose status names the referent. Faults are sorted by name, so
that their order never changes a status.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from domain.threescale.application_plans import references
from domain.threescale.conditions import INVALID, READY, SYNCED, SyncState
from domain.threescale.duplicate_owners import seniority
from domain.threescale.faults import Fault, message_of
from domain.threescale.metrics_in_use import stays_usable
from domain.threescale.observed import Blocker, is_true
from domain.threescale.provider_account import known_at, same_tenant
from domain.threescale.remote_ids import host_of, remembered_id
from domain.threescale.resources import Backend, DeveloperAccount, Product
from domain.threescale.resources.product import ProductSpec
from domain.threescale.resources.shared import Conditions

_NO_BACKEND = "backend usage does not have valid backend reference."
_NO_METRIC = "plan does not have valid backend metric or method reference."


def usable(conditions: Conditions) -> bool:
    return is_true(conditions, SYNCED) or is_true(conditions, READY) or stays_usable(conditions)


def backends_by_name(product: Product, url: str, backends: Iterable[Backend]) -> dict[str, Backend]:
    """The Backends in the Product's namespace and tenant, by system name. Of duplicates, a Backend whose status has the
    tenant has precedence, then the oldest.
    """
    there: dict[str, Backend] = {}
    for backend in sorted(backends, key=lambda each: (not _is_at(each, url), seniority(each.metadata))):
        host = backend.status.provider_account_host
        if backend.metadata.namespace == product.metadata.namespace and (not host or same_tenant(host, url)):
            there.setdefault(backend.spec.system_name, backend)
    return there


def _is_at(backend: Backend, url: str) -> bool:
    return same_tenant(backend.status.provider_account_host, url)


def blocker_of_product(product: Product, backends: Mapping[str, Backend]) -> Blocker | None:
    spec, namespace = product.spec, product.metadata.namespace
    orphaned: list[Fault] = []
    invalid: list[Fault] = []
    waits_for: list[str] = []
    for name in sorted(spec.backend_usages):
        backend = backends.get(name)
        path = f"spec.backendUsages[{name}]"
        if backend is not None and is_true(backend.status.conditions, INVALID):
            invalid.append(Fault(path=path, value=name, detail=f"Backend {backend.metadata.name} is invalid."))
        elif backend is None or not _is_usable(backend):
            orphaned.append(Fault(path=path, value=name, detail=_NO_BACKEND))
        else:
            continue
        waits_for.append(f"Backend/{namespace}/{backend.metadata.name if backend else name}")
    lost = sorted(_lost_metrics(spec, backends))
    orphaned += [Fault(path="spec.applicationPlans", value=name, detail=_NO_METRIC) for name in lost]
    waits_for += [f"Backend/{namespace}/{name.partition('/')[0]}" for name in lost]
    if not invalid and not orphaned:
        return None
    return Blocker(
        state=SyncState.INVALID if invalid else SyncState.WAITING,
        message=message_of([*invalid, *orphaned]),
        waits_for=tuple(dict.fromkeys(waits_for)),
    )


def users_of(backend: Backend, products: Sequence[Product]) -> tuple[Product, ...]:
    name, host = backend.spec.system_name, backend.status.provider_account_host
    return tuple(
        product
        for product in sorted(products, key=lambda each: each.metadata.name)
        if product.metadata.namespace == backend.metadata.namespace
        and product.status.product_id
        and name in product.spec.backend_usages
        and (not host or same_tenant(product.status.provider_account_host, host))
    )


def account_usable(account: DeveloperAccount) -> bool:
    return bool(account.status.account_id) and usable(account.status.conditions) and not account.metadata.deleting


def id_of_account(account: DeveloperAccount, url: str) -> int:
    return known_at(url, host_of(account), remembered_id(account))


def _is_usable(backend: Backend) -> bool:
    return bool(backend.status.backend_id) and usable(backend.status.conditions) and not backend.metadata.deleting


def _lost_metrics(spec: ProductSpec, backends: Mapping[str, Backend]) -> Iterable[str]:
    for each in references(spec.application_plans):
        if not each.backend:
            continue
        backend = backends.get(each.backend) if each.backend in spec.backend_usages else None
        known = {*backend.spec.metrics, *backend.spec.methods} if backend else set()
        if each.system_name not in known and (backend is not None or each.backend not in spec.backend_usages):
            yield f"{each.backend}/{each.system_name}"
