"""The cluster whose Services are served: Perdure's own, or another one, by its own kubeconfig.

Its custom resources are in Perdure's own cluster in either case: who may change a Service can then neither see the
cloud's credentials nor change a LoadBalancer by hand.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from engine.kube.api import KubeApi
from engine.settings import Settings

# As yawol's flags: the cluster that this process is in, or that its environment names.
SAME_CLUSTER = ("", "inClusterConfig")


@asynccontextmanager
async def served_cluster(settings: Settings, own: KubeApi, process: str) -> AsyncIterator[KubeApi]:
    if settings.loadbalancers_target_kubeconfig in SAME_CLUSTER:
        yield own
        return
    async with await KubeApi.open(settings, process, settings.loadbalancers_target_kubeconfig) as api:
        yield api
