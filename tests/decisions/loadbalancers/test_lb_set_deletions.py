"""The deletion of several sets of a LoadBalancer."""

from __future__ import annotations

from typing import Any

import pytest
from lb_objects import machine_set
from lb_pass_context import context_on
from memory_kube import MemoryKube

from activities.loadbalancers.balancers import LoadBalancerActivities
from domain.identity import Key, Kind
from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_SET
from domain.loadbalancers.balancer_world import DeleteSets
from engine.errors import Denied

FIRST, SECOND = "web--shop-aaaa", "web--shop-bbbb"


class Guarded(MemoryKube):
    """Its policy protects one set."""

    async def delete(self, kind: Kind, namespace: str, name: str, **more: Any) -> dict[str, Any] | None:
        if name == FIRST:
            raise Denied(f"a policy protects {name}")
        return await super().delete(kind, namespace, name, **more)


async def test_a_set_that_may_not_be_deleted_keeps_no_other_from_its_deletion() -> None:
    kube = Guarded()
    for name in (FIRST, SECOND):
        await kube.create(LOAD_BALANCER_SET, machine_set(name).model_dump(mode="json", exclude_none=True), "lbs")
    key = Key(kind=LOAD_BALANCER.name, namespace="lbs", name="web--shop", uid="lb-uid")
    with pytest.raises(Denied, match=FIRST):
        await LoadBalancerActivities(context_on(kube)).delete_sets(
            DeleteSets(key=key, namespace="lbs", names=(FIRST, SECOND))
        )
    assert [each["metadata"]["name"] for each in (await kube.list(LOAD_BALANCER_SET, "lbs")).items] == [FIRST]
