"""An instance that two AWSMachines name, as while one replaces the other: both are labelled, the living one counts.

One of another region or account is neither: an event may name any id.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from instance_scenes import ACCOUNT, GROUP, ID, KEY, REGION, at, hook, record, spot, state
from memory_kube import MemoryKube
from temporalio.testing import ActivityEnvironment

from activities.instances.aws_queries import ServedPlaces
from activities.instances.cache import InstanceCache
from activities.instances.observation import LookActivities
from activities.instances.state_verification import Checks
from domain.instances import AWS_CLUSTER, AWS_CLUSTER_ROLE_IDENTITY, AWS_MACHINE, AWS_MACHINE_POOL
from domain.instances.actions import LookAtInstance
from domain.instances.constants import CLUSTER_LABEL, INTERRUPTION_LABEL, STATE_LABEL
from domain.instances.event_record import InstanceRecord, hook_ended
from domain.instances.interruption_policy import ReactionPolicy
from domain.instances.observed import InstanceWorld
from engine.kube.json import mapping


class _NoAws:
    """Nobody is asked within these tests: only what would be asked later is remembered."""


@pytest.fixture
def kube() -> MemoryKube:
    return MemoryKube()


async def made(kube: MemoryKube, namespace: str, name: str, region: str = REGION, **metadata: object) -> None:
    spec = {"instanceID": ID, "providerID": f"aws:///{region}a/{ID}"}
    await kube.create(AWS_MACHINE, {"metadata": {"name": name, **metadata}, "spec": spec}, namespace)


async def observed_world(kube: MemoryKube) -> InstanceWorld:
    known = InstanceCache(kube, kube)  # type: ignore[arg-type]
    for namespace, name in (("a", "m"), ("b", "m")):
        known.learn(AWS_MACHINE, await kube.get(AWS_MACHINE, namespace, name))
    return await run(kube, known, record(state("running", 5), spot(6)))


async def run(kube: MemoryKube, known: InstanceCache, record: InstanceRecord) -> InstanceWorld:
    checks = Checks(ServedPlaces((), _NoAws()), _NoAws(), timedelta(hours=1))  # type: ignore[arg-type]
    looks = LookActivities(kube, known, checks, ReactionPolicy(), observing=False)  # type: ignore[arg-type]
    look = LookAtInstance(key=record.key.lifecycle, at=at(7), record=record, recall=False, version="")
    found: InstanceWorld = await ActivityEnvironment().run(looks.look, look)
    return found


async def labels(kube: MemoryKube, namespace: str) -> dict[str, object]:
    return dict(mapping(await kube.get(AWS_MACHINE, namespace, "m"), "metadata", "labels"))


async def test_both_are_labelled(kube: MemoryKube) -> None:
    await made(kube, "a", "m")
    await made(kube, "b", "m")
    await observed_world(kube)
    for namespace in ("a", "b"):
        assert await labels(kube, namespace) == {STATE_LABEL: "running", INTERRUPTION_LABEL: "spot-terminate"}


async def test_reactions_are_decided_for_the_one_that_is_not_being_deleted(kube: MemoryKube) -> None:
    await made(kube, "a", "m", finalizers=["awsmachine.infrastructure.cluster.x-k8s.io"])
    await made(kube, "b", "m")
    await kube.delete(AWS_MACHINE, "a", "m")
    world = await observed_world(kube)
    assert world.machine is not None
    assert world.machine.metadata.namespace == "b"
    assert (await labels(kube, "a"))[STATE_LABEL] == "running"


async def test_a_machine_of_another_region_is_neither_taken_nor_labelled(kube: MemoryKube) -> None:
    await made(kube, "a", "m", region="us-east-1")
    await made(kube, "b", "m")
    world = await observed_world(kube)
    assert world.machine is not None
    assert world.machine.metadata.namespace == "b"
    assert await labels(kube, "a") == {}
    await kube.delete(AWS_MACHINE, "b", "m")
    await made(kube, "b", "m", region="us-east-1")
    assert (await observed_world(kube)).machine is None
    assert await labels(kube, "b") == {}


async def cluster_by_role(kube: MemoryKube, namespace: str, account: str) -> None:
    """A cluster whose machines the AWS provider makes by a role of an account."""
    role = {"metadata": {"name": f"role-{account}"}, "spec": {"roleARN": f"arn:aws:iam::{account}:role/capa"}}
    await kube.create(AWS_CLUSTER_ROLE_IDENTITY, role)
    owner = {"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": "c1", "uid": "u-c"}
    spec = {"identityRef": {"kind": "AWSClusterRoleIdentity", "name": f"role-{account}"}}
    meta = {"name": "c1-infra", "ownerReferences": [owner]}
    await kube.create(AWS_CLUSTER, {"metadata": meta, "spec": spec}, namespace)


@pytest.mark.parametrize(("account", "found"), [(ACCOUNT, True), ("999999999999", False)])
async def test_a_machine_whose_cluster_is_of_another_account_is_neither_taken_nor_labelled(
    kube: MemoryKube, account: str, found: bool
) -> None:
    known = InstanceCache(kube, kube)  # type: ignore[arg-type]
    await cluster_by_role(kube, "a", account)
    await made(kube, "a", "m", labels={CLUSTER_LABEL: "c1"})
    world = await run(kube, known, record(state("terminated", 5)))
    assert (world.machine is not None, world.account_known) == (found, found)
    assert ((await labels(kube, "a")).get(STATE_LABEL) == "terminated") == found


async def test_a_cluster_with_the_providers_own_identity_leaves_the_account_unknown(kube: MemoryKube) -> None:
    known = InstanceCache(kube, kube)  # type: ignore[arg-type]
    await kube.create(AWS_CLUSTER, {"metadata": {"name": "c1", "labels": {CLUSTER_LABEL: "c1"}}, "spec": {}}, "a")
    await made(kube, "a", "m", labels={CLUSTER_LABEL: "c1"})
    world = await run(kube, known, record(state("terminated", 5)))
    assert (world.machine is not None, world.account_known) == (True, False)


async def with_pool(kube: MemoryKube, account: str, *instances: str) -> InstanceCache:
    arn = f"arn:aws:autoscaling:{REGION}:{account}:autoScalingGroup:1:autoScalingGroupName/{GROUP}"
    spec = {"providerID": arn, "providerIDList": [f"aws:///{REGION}a/{each}" for each in instances]}
    known = InstanceCache(kube, kube)  # type: ignore[arg-type]
    known.learn(AWS_MACHINE_POOL, await kube.create(AWS_MACHINE_POOL, {"metadata": {"name": "p"}, "spec": spec}, "a"))
    return known


@pytest.mark.parametrize(("account", "found"), [(ACCOUNT, True), ("999999999999", False)])
async def test_a_pool_of_another_account_is_not_taken(kube: MemoryKube, account: str, found: bool) -> None:
    known = await with_pool(kube, account, ID)
    assert (known.pool(KEY) is not None) == found


@pytest.mark.parametrize(("account", "found"), [(ACCOUNT, True), ("999999999999", False)])
async def test_a_new_instance_is_of_the_pool_whose_group_holds_it(kube: MemoryKube, account: str, found: bool) -> None:
    """The provider lists it only when it looks at the group again, and meanwhile somebody has to answer for it."""
    known = await with_pool(kube, account)
    held = record(hook(5, "launching"))
    assert ((await run(kube, known, held)).pool is not None) == found
    ended = hook_ended(held, "t-1", at(6))
    assert (await run(kube, known, ended)).pool is None
