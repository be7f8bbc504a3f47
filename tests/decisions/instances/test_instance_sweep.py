"""When the sweep runs again: nothing wakes it once the provider fills in the ids of new objects."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

import pytest
from memory_kube import MemoryKube
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from activities.instances.aws_queries import ServedPlaces
from activities.instances.cache import InstanceCache
from activities.instances.periodic_resync import SweepActivities
from domain.identity import Kind
from domain.instances import AWS_MACHINE, AWS_MACHINE_POOL, NODE, THE_SWEEP
from domain.instances.passes import SweepInstances
from domain.passes import SweptWorld
from engine.kube import KubeApi
from engine.kube.informer_cache import Store

INTERVAL = timedelta(minutes=10)
ARN = "arn:aws:autoscaling:eu-central-1:123456789012:autoScalingGroup:26e7:autoScalingGroupName/g"


async def swept(kube: MemoryKube, *, nodes: bool = True) -> SweptWorld:
    cache = InstanceCache(cast(KubeApi, kube), cast(Store, kube), nodes=nodes)
    for (kind, _, _), obj in kube.objects.items():
        cache.mirrors[kind].learn(obj)
    sweeps = SweepActivities(cast(Client, None), cache, ServedPlaces((), cast(Any, None)), INTERVAL)
    found: SweptWorld = await ActivityEnvironment().run(sweeps.sweep, SweepInstances(key=THE_SWEEP))
    return found


@pytest.mark.parametrize(
    ("kind", "namespace", "body"),
    [
        (AWS_MACHINE, "c", {}),
        (AWS_MACHINE_POOL, "c", {}),
        (AWS_MACHINE_POOL, "c", {"metadata": {"annotations": {"perdure.dev/paused": "true"}}}),
        (NODE, "", {}),
    ],
    ids=["a machine without an instance", "a pool without a group", "a paused pool", "a node without a provider id"],
)
async def test_the_sweep_goes_on_while_an_object_may_still_get_its_instance_or_group(
    kind: Kind, namespace: str, body: dict[str, Any]
) -> None:
    kube = MemoryKube()
    meta = {"name": "new", **body.get("metadata", {})}
    await kube.create(kind, {"metadata": meta, "spec": {"providerID": ARN} if body else {}}, namespace)
    world = await swept(kube)
    assert world.known.next_sweep is not None
    assert world.decision.deadline == world.known.next_sweep


async def test_the_sweep_is_idle_where_there_is_no_object_to_compare() -> None:
    world = await swept(MemoryKube())
    assert (world.known.next_sweep, world.decision.phase) == (None, "Idle")
