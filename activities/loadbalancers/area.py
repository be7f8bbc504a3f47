from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack

from activities.clients import Clients
from activities.kube import KubeActivities
from activities.loadbalancers.balancers import LoadBalancerActivities
from activities.loadbalancers.cache import LoadBalancerCache
from activities.loadbalancers.cloud_steps import CloudActivities
from activities.loadbalancers.drift_sweep import SweepActivities
from activities.loadbalancers.installation import installation_of
from activities.loadbalancers.machines import MachineActivities
from activities.loadbalancers.pass_context import PassContext
from activities.loadbalancers.services import ServiceActivities
from activities.loadbalancers.sets import SetActivities
from activities.openstack.projects import Projects
from engine.kube.informer_cache import Store

FROM_CONTEXT = (LoadBalancerActivities, MachineActivities, CloudActivities, SweepActivities)


async def activities(clients: Clients, stack: AsyncExitStack) -> Sequence[Callable[..., object]]:
    settings, kube, blocking = clients.settings, clients.kube, clients.blocking
    projects = Projects(blocking, settings)
    stack.callback(projects.close)
    store = await stack.enter_async_context(Store(kube))
    cache = LoadBalancerCache(kube, store)
    clients.on_write(cache.wrote)
    context = PassContext(kube, blocking, projects, settings, cache)
    writes = KubeActivities(kube, clients.temporal, clients.served, clients.wrote)
    services = ServiceActivities(kube, clients.served, settings, installation_of(settings), writes)
    made = (*(each(context) for each in FROM_CONTEXT), SetActivities(context, writes), services)
    return [method for each in made for method in each.all()]
