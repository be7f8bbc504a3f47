"""The served cluster, whose Services and Nodes Perdure handles: Perdure's own, or another one given by a kubeconfig.

The custom resources are in Perdure's own cluster in either case. Users who may change the Services of another cluster
can neither see the cloud's credentials nor change custom resources.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

from domain.identity import all_areas, all_kinds
from engine.kube.api import KubeApi
from engine.settings import Settings

# The values for Perdure's own cluster, as in yawol's flags.
SAME_CLUSTER = ("", "inClusterConfig")


@asynccontextmanager
async def served_cluster(
    settings: Settings, own: KubeApi, process: str, areas: Collection[str] = ()
) -> AsyncIterator[KubeApi]:
    chosen = areas or settings.areas or all_areas()
    needed = any(kind.served and kind.area in chosen for kind in all_kinds().values())
    if not needed or settings.loadbalancers_target_kubeconfig in SAME_CLUSTER:
        yield own
        return
    async with await KubeApi.open(settings, process, settings.loadbalancers_target_kubeconfig) as api:
        yield api
