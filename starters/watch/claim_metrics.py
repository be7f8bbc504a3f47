"""The resource claims area's gauges, computed from the watcher's index.

Poolboy has no gauges of pools. Perdure computes these from the handles, because a pool's status lags until its next
pass.
Workers count events (`activities/claims/metrics.py`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE, RESOURCE_POOL
from starters.watch.gauges import lifecycles
from starters.watch.projection import Projection
from starters.watch.projection_index import Index

# Pools, each with its free handles.
Pools = Sequence[tuple[Projection, list[Projection]]]


def claim_gauges(index: Index) -> Iterator[Metric]:
    claims, handles = list(index.all(RESOURCE_CLAIM.name)), list(index.all(RESOURCE_HANDLE.name))
    free: defaultdict[str, list[Projection]] = defaultdict(list)
    for handle in handles:
        if handle.fact("free"):
            free[handle.fact("pool")].append(handle)
    pools = [(pool, free["/".join(pool.name)]) for pool in index.all(RESOURCE_POOL.name)]
    yield _lifecycles(claims, handles, pools)
    yield from _pools(pools)


GAUGES = claim_gauges


def _pools(pools: Pools) -> Iterator[Metric]:
    meanings = {
        "min_available": "Free handles that the pool should have.",
        "available": "Free handles of the pool, in whatever state.",
        "ready": "Free handles of the pool that are ready.",
        "unready": "Free handles of the pool that are not ready, or whose readiness is unknown.",
    }
    families = {
        name: GaugeMetricFamily(f"perdure_pool_{name}", meaning, labels=["namespace", "pool_name"])
        for name, meaning in meanings.items()
    }
    for pool, free in pools:
        ready = sum(handle.fact("ready") == "true" for handle in free)
        numbers = (int(pool.fact("minimum") or 0), len(free), ready, len(free) - ready)
        for family, number in zip(families.values(), numbers, strict=True):
            family.add_metric(list(pool.name), number)
    yield from families.values()


def _lifecycles(claims: Iterable[Projection], handles: Iterable[Projection], pools: Pools) -> Metric:
    phases = Counter((RESOURCE_CLAIM.name, _phase(claim, _of_claim(claim))) for claim in claims)
    phases.update((RESOURCE_HANDLE.name, _phase(handle, _of_handle(handle))) for handle in handles)
    phases.update((RESOURCE_POOL.name, _phase(pool, _of_pool(pool, len(free)))) for pool, free in pools)
    return lifecycles(phases)


def _phase(known: Projection, otherwise: str) -> str:
    if known.deleting:
        return "Deleting"
    if known.fact("ignored"):
        return "Ignored"
    if known.fact("paused"):
        return "Paused"
    return "Stalled" if known.fact("stalled") else otherwise


def _of_claim(claim: Projection) -> str:
    if claim.fact("detached"):
        return "Detached"
    return "Unbound" if claim.fact("unbound") else _state(claim)


def _of_handle(handle: Projection) -> str:
    return f"{'Free' if handle.fact('free') else 'Bound'}{_state(handle)}"


def _of_pool(pool: Projection, free: int) -> str:
    return "Full" if free >= int(pool.fact("minimum") or 0) else "Filling"


def _state(known: Projection) -> str:
    if known.fact("healthy") == "false":
        return "Unhealthy"
    return "Ready" if known.fact("ready") == "true" else "NotReady"
