"""What passes over load balancers need, on a Kubernetes API in memory and without OpenStack."""

from __future__ import annotations

from typing import cast

from memory_kube import MemoryKube

from activities.loadbalancers.cache import LoadBalancerCache
from activities.loadbalancers.pass_context import PassContext
from activities.openstack.projects import Projects
from engine.kube import BlockingKube, KubeApi
from engine.kube.informer_cache import Store
from engine.settings import Settings


def context_on(kube: MemoryKube) -> PassContext:
    api, store = cast(KubeApi, kube), cast(Store, kube)
    return PassContext(api, cast(BlockingKube, None), cast(Projects, None), Settings(), LoadBalancerCache(api, store))
