"""References: whether a referent is usable, and how it blocks its referrers.

A usable referent is in 3scale, in the same tenant, and not being deleted. An unusable referent makes its referrers
Orphans, which wait for it by name; an Invalid referent makes them Invalid. Faults are sorted by name, so that their
order never changes a status. Of two objects with the same system name the younger is Invalid.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from domain.threescale import DEVELOPER_ACCOUNT
from domain.threescale.application_plans import references
from domain.threescale.conditions import FAILED, INVALID, READY, SYNCED, SyncState
from domain.threescale.deletion import retained
from domain.threescale.duplicate_owners import seniority
from domain.threescale.normalize import same_path
from domain.threescale.observed import Blocker, invalid, is_true
from domain.threescale.provider_account import known_at, same_tenant
from domain.threescale.remote_ids import host_of, remembered_id
from domain.threescale.resources import Backend, DeveloperAccount, Product
from domain.threescale.resources.product import ProductSpec
from domain.threescale.resources.shared import Conditions
from domain.threescale.spec_validation import Fault, message_of

# An object that failed with this message stays usable: it has something in 3scale that cannot be deleted yet.
IN_USE = "used by the latest gateway configuration and cannot be deleted"

_NO_BACKEND = "backend usage does not have valid backend reference."
_NO_METRIC = "plan does not have valid backend metric or method reference."


def usable(conditions: Conditions) -> bool:
    if is_true(conditions, SYNCED) or is_true(conditions, READY):
        return True
    failed = next((each for each in conditions if each.type == FAILED and each.status == "True"), None)
    return failed is not None and IN_USE in (failed.message or "") and not is_true(conditions, INVALID)


def backends_by_name(product: Product, url: str, backends: Iterable[Backend]) -> dict[str, Backend]:
    """The Backends in the Product's namespace and tenant, by system name. Of Backends with the same name, one whose
    status names the tenant is preferred, then the oldest.
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
            detail = f"Backend {backend.metadata.name} is invalid."
            invalid.append(Fault(path=path, value=name, detail=detail))
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


def shared_path(spec: ProductSpec) -> Blocker | None:
    """A blocker if two backends have the same path, which 3scale refuses."""
    paths = sorted((usage.path.lower(), name) for name, usage in spec.backend_usages.items())
    faults = [
        Fault(path=f"spec.backendUsages[{name}]", value=path, detail="path is not unique.")
        for index, (path, name) in enumerate(paths)
        if any(same_path(path, other) for other, _ in paths[:index])
    ]
    return invalid(message_of(faults)) if faults else None


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


def finalizer_removed(account: DeveloperAccount | None) -> bool:
    """True if users and applications of the account need no deletion call. That is so if the account is gone, or if it
    is being deleted without our finalizer or with the annotation `retain`.
    """
    if account is None:
        return True
    meta = account.metadata
    return meta.deleting and (retained(meta) or DEVELOPER_ACCOUNT.finalizer not in meta.finalizers)


def takes_its_own(account: DeveloperAccount) -> bool:
    """Whether 3scale deletes users and applications with the account: the account is being deleted, and 3scale has not
    refused the deletion.
    """
    return account.metadata.deleting and not is_true(account.status.conditions, FAILED)


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
