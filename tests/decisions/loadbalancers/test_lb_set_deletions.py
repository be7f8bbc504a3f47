"""The deletion of several sets of a LoadBalancer."""

from __future__ import annotations

from typing import Any, cast

import pytest
from lb_objects import machine_set
from memory_kube import MemoryKube

from activities.loadbalancers.balancers import LoadBalancerActivities
from activities.loadbalancers.cache import LoadBalancerCache
from activities.loadbalancers.pass_context import PassContext
from activities.openstack.projects import Projects
from domain.identity import Key, Kind
from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_SET
from domain.loadbalancers.balancer_world import DeleteSets
from engine.errors import Denied
from engine.kube import BlockingKube, KubeApi
from engine.kube.informer_cache import Store
from engine.settings import Settings

FIRST, SECOND = "web--shop-aaaa", "web--shop-bbbb"


class Guarded(MemoryKube):
    """Its policy protects one set."""

    async def delete(self, kind: Kind, namespace: str, name: str, **more: Any) -> dict[str, Any] | None:
        if name == FIRST:
            raise Denied(f"a policy protects {name}")
        return await super().delete(kind, namespace, name, **more)


async def test_a_set_that_may_not_be_deleted_keeps_no_other_from_its_deletion() -> None:
    kube = Guarded()
    api = cast(KubeApi, kube)
    for name in (FIRST, SECOND):
        await kube.create(LOAD_BALANCER_SET, machine_set(name).model_dump(mode="json", exclude_none=True), "lbs")
    nobody = (cast(BlockingKube, None), cast(Projects, None))
    context = PassContext(api, *nobody, Settings(), LoadBalancerCache(api, cast(Store, kube)))
    key = Key(kind=LOAD_BALANCER.name, namespace="lbs", name="web--shop", uid="lb-uid")
    with pytest.raises(Denied, match=FIRST):
        await LoadBalancerActivities(context).delete_sets(DeleteSets(key=key, namespace="lbs", names=(FIRST, SECOND)))
    assert [each["metadata"]["name"] for each in (await kube.list(LOAD_BALANCER_SET, "lbs")).items] == [FIRST]
