"""Several clusters in one Temporal namespace.

The command line of each shows its own, and what AWS has named; the workers of each run its own, and no others.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from temporal_server import TemporalServer, pointing_at
from temporalio import activity
from temporalio.client import Client
from temporalio.common import SearchAttributePair, TypedSearchAttributes
from temporalio.contrib.pydantic import pydantic_data_converter
from waiting import eventually

from activities.clients import Clients
from domain.accounts.passes import PassPool, PoolWorld
from domain.decision import Decision, Outcome
from domain.identity import Key
from domain.instances import EC2_INSTANCE
from domain.instances.machine_pool_labels import GroupRecord
from domain.instances.passes import GroupWorld, LookAtGroup
from domain.instances.workflow_ids import GroupKey, InstanceKey
from engine.settings import Settings
from engine.temporal import OP_KIND, OP_NAME, OP_NAMESPACE, OP_PHASE, connect, is_open, wake
from engine.temporal_namespace import bootstrap
from starters.cli import bulk_retry, listing, top
from starters.cli.audits import instances as audited
from starters.cli.lifecycle import find_key
from starters.cli.object_reference import Target
from starters.cli.session import Session
from starters.events.temporal import wake_group
from workers import main

INSTANCE = InstanceKey(account="123456789012", region="eu-central-1", instance_id="i-1").lifecycle
CLUSTERS = ("", "north", "north-2")


def pool(cluster: str) -> Key:
    return Key(kind="AccountPool", namespace="ns", name=f"of-{cluster or 'none'}", uid="1", cluster=cluster)


async def failed(client: Client, key: Key) -> None:
    """A lifecycle that no worker executes, as if it had failed."""
    about = {OP_KIND: key.kind, OP_NAMESPACE: key.namespace, OP_NAME: key.name, OP_PHASE: "Failed"}
    attributes = TypedSearchAttributes([SearchAttributePair(name, value) for name, value in about.items()])
    await client.start_workflow(key.kind, id=key.workflow_id, task_queue="nobody", search_attributes=attributes)


@pytest.fixture
async def shared(temporal: TemporalServer) -> Client:
    """A namespace with a pool of each cluster, and an instance."""
    client = await Client.connect(temporal.address, namespace=f"shared-{uuid4().hex[:8]}")
    await bootstrap(client)
    for key in (*map(pool, CLUSTERS), INSTANCE):
        await failed(client, key)

    async def listed() -> bool:
        return (await client.count_workflows("OpPhase = 'Failed'")).count == len(CLUSTERS) + 1

    await eventually(listed, "all of them in the list")
    return client


@pytest.mark.parametrize("cluster", CLUSTERS)
async def test_a_cluster_sees_its_own_and_what_aws_has_named(shared: Client, cluster: str) -> None:
    nothing: Any = None
    session = Session(Settings(cluster=cluster), nothing, temporal=shared)
    now = datetime.now(UTC)
    ids = {pool(cluster).workflow_id, INSTANCE.workflow_id}
    for area in ("accounts", "instances"):
        counted = await top.count_area(session, area, now)
        assert (counted.open, counted.failing, counted.stuck) == (1, 1, 0)
    assert {row.workflow_id for row in await top.worst_rows(session, ("accounts", "instances"), now)} == ids
    assert {row.workflow_id for row in await listing.lifecycle_rows(session, listing.open_lifecycles())} == ids
    found = await bulk_retry.found_lifecycles(session, bulk_retry.selection(everything=True))
    instance = INSTANCE.model_copy(update={"cluster": cluster})
    assert [row.key(cluster) for row in found] == [pool(cluster), instance]
    assert await find_key(session, Target(EC2_INSTANCE, INSTANCE.namespace, INSTANCE.name)) == instance


async def test_an_audit_asks_after_the_instances_that_its_own_clusters_workers_look_after(
    temporal: TemporalServer,
) -> None:
    client = await Client.connect(
        temporal.address, namespace=f"shared-{uuid4().hex[:8]}", data_converter=pydantic_data_converter
    )
    await bootstrap(client)
    place = {"account": "123456789012", "region": "eu-central-1"}
    theirs = {each: InstanceKey(**place, instance_id=f"i-{each}").lifecycle_in(each) for each in CLUSTERS}
    for key in theirs.values():
        await wake(client, key)
    nothing: Any = None

    async def found(cluster: str) -> list[Key]:
        session = Session(Settings(cluster=cluster), nothing, temporal=client)
        return [key for key, _ in await audited.open_lifecycles(session)]

    for cluster, key in theirs.items():
        await eventually(partial(found, cluster), f"the instance of {cluster or 'none'} in the list")
        assert await found(cluster) == [key]


STANDS = Decision(phase="Ready", outcome=Outcome.SETTLED, why="it is there")
GONE = Decision(phase="Gone", outcome=Outcome.GONE, why="does not exist")


@dataclass
class Installation:
    """A cluster with its objects and its worker, which sees nothing of any other's."""

    cluster: str
    objects: set[str] = field(default_factory=set)
    looked_at: list[Key] = field(default_factory=list)

    def pool(self, number: int) -> Key:
        key = Key(kind="AccountPool", namespace="ns", name=f"{self.cluster}-{number}", uid="1", cluster=self.cluster)
        self.objects.add(key.name)
        return key

    def group(self, number: int) -> GroupKey:
        found = GroupKey(account="123456789012", region="eu-central-1", group=f"{self.cluster}-{number}")
        self.objects.add(found.group)
        return found

    def looks(self) -> list[Callable[..., object]]:
        @activity.defn(name=PassPool.activity)
        async def pass_pool(look: PassPool) -> PoolWorld:
            decision = self._seen(look.key)
            return PoolWorld(key=look.key, exists=decision is STANDS, decision=decision)

        @activity.defn(name=LookAtGroup.activity)
        async def look_at_group(look: LookAtGroup) -> GroupWorld:
            decision = self._seen(look.key)
            return GroupWorld(key=look.key, exists=decision is STANDS, decision=decision)

        return [pass_pool, look_at_group]

    def _seen(self, key: Key) -> Decision:
        self.looked_at.append(key)
        return STANDS if key.name in self.objects else GONE


@pytest.fixture
async def installations(
    temporal: TemporalServer, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Client, list[Installation]]]:
    """One without a name and two with one, in one namespace, each with the worker that the product makes for it."""
    every = [Installation(cluster) for cluster in CLUSTERS]
    looks = {each.cluster: each.looks() for each in every}

    async def activities_of(clients: Clients, *_: object) -> dict[str, list[Callable[..., object]]]:
        accounts, instances = looks[clients.settings.cluster]
        return {"accounts": [accounts], "instances": [instances]}

    monkeypatch.setattr(main, "activities_of", activities_of)
    namespace = f"shared-{uuid4().hex[:8]}"
    nothing: Any = None
    async with AsyncExitStack() as stack:
        settings = pointing_at(temporal, monkeypatch)
        monkeypatch.setenv("TEMPORAL_NAMESPACE", namespace)
        client = await connect(settings)
        await bootstrap(client)
        for each in every:
            own = settings.model_copy(update={"cluster": each.cluster})
            for worker in await main.create_workers(own, await connect(own), nothing, ("accounts", "instances"), stack):
                await stack.enter_async_context(worker)
        yield client, every


async def test_a_lifecycle_is_run_by_its_own_clusters_worker(
    installations: tuple[Client, list[Installation]],
) -> None:
    client, every = installations
    wanted: dict[str, set[Key]] = {}
    for each in every:
        pools, groups = [each.pool(number) for number in range(4)], [each.group(number) for number in range(4)]
        wanted[each.cluster] = {*pools, *(group.lifecycle_in(each.cluster) for group in groups)}
        waking = wake_group(client, each.cluster)
        await asyncio.gather(*(wake(client, key) for key in pools), *(waking(group, GroupRecord()) for group in groups))

    async def all_looked_at() -> bool:
        return sum(len(each.looked_at) for each in every) >= sum(map(len, wanted.values()))

    await eventually(all_looked_at, "each of them looked at")
    assert {each.cluster: set(each.looked_at) for each in every} == wanted
    assert all([await is_open(client, key) for keys in wanted.values() for key in keys])
