from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta

from activities.clients import Clients
from activities.threescale.cache import ThreescaleCache
from activities.threescale.client import Connections
from activities.threescale.document_download import Downloads
from activities.threescale.drift_sweep import SweepActivities
from activities.threescale.effects import Effects
from activities.threescale.pass_context import PassContext
from activities.threescale.passes import PassActivities
from activities.threescale.tenant_concurrency import Tenants
from engine.kube.informer_cache import Store

CALL_TIMEOUT = timedelta(seconds=30)
ACTIVITIES = (PassActivities, Effects, SweepActivities)


async def activities(clients: Clients, stack: AsyncExitStack) -> Sequence[Callable[..., object]]:
    settings, kube = clients.settings, clients.kube
    seconds = (settings.call_timeout or CALL_TIMEOUT).total_seconds()
    connections = await stack.enter_async_context(Connections(seconds))
    unverified = await stack.enter_async_context(Connections(seconds, verify=False))
    store = await stack.enter_async_context(Store(kube))
    tenants = Tenants(connections, unverified)
    context = PassContext(kube, ThreescaleCache(kube, store), tenants, Downloads(connections.http), settings)
    return [method for each in ACTIVITIES for method in each(context).all()]
