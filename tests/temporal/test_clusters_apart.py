"""Several clusters in one Temporal namespace: the command line of each shows its own, and what AWS has named."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from temporal_server import TemporalServer, eventually
from temporalio.client import Client
from temporalio.common import SearchAttributePair, TypedSearchAttributes

from domain.identity import Key
from domain.instances import EC2_INSTANCE
from domain.instances.names import InstanceKey
from engine.settings import Settings
from engine.temporal import OP_KIND, OP_NAME, OP_NAMESPACE, OP_PHASE
from engine.temporal_namespace import bootstrap
from starters.cli import listing, retrying, top
from starters.cli.lifecycle import find_key
from starters.cli.session import Session
from starters.cli.target import Target

INSTANCE = InstanceKey(account="123456789012", region="eu-central-1", instance_id="i-1").lifecycle
CLUSTERS = ("", "north", "north-2")


def pool(cluster: str) -> Key:
    return Key(kind="AccountPool", namespace="ns", name=f"of-{cluster or 'none'}", uid="1", cluster=cluster)


async def failed(client: Client, key: Key) -> None:
    """A lifecycle that nobody executes, as if it had failed."""
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
    session = Session(Settings(cluster=cluster), shared, nothing)
    now = datetime.now(UTC)
    ids = {pool(cluster).workflow_id, INSTANCE.workflow_id}
    for area in ("accounts", "instances"):
        counted = await top._counted(session, area, now)
        assert (counted.open, counted.failing, counted.stuck) == (1, 1, 0)
    assert {row.workflow_id for row in await top._worst(session, ("accounts", "instances"), now)} == ids
    assert {row.workflow_id for row in await listing._lifecycles(session, None, "")} == ids
    found = await retrying._found(session, retrying.Sought(everything=True).asked())
    assert [row.key(cluster) for row in found] == [pool(cluster), INSTANCE]
    assert await find_key(session, Target(EC2_INSTANCE, INSTANCE.namespace, INSTANCE.name)) == INSTANCE
