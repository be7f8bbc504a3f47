"""`perdure why` names the lifecycles without an object as `perdure list` shows them."""

from __future__ import annotations

from typing import cast
from uuid import uuid4

import pytest
from temporal_server import TemporalServer, pointing_at
from waiting import eventually

from domain.identity import Key, all_kinds, objectless
from domain.operator_domain import DEFAULT
from engine.kube import KubeApi
from engine.temporal import connect, wake
from starters.cli.lifecycle import find_key
from starters.cli.listing import row_of
from starters.cli.object_reference import path, target
from starters.cli.output import CommandError
from starters.cli.session import Session

STANDING = [key for kind in all_kinds() for key in objectless(kind, "north", DEFAULT)]


@pytest.mark.parametrize("key", STANDING, ids=lambda key: key.kind)
async def test_names_that_list_shows_are_accepted_by_why(
    key: Key, temporal: TemporalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = pointing_at(temporal, monkeypatch, cluster="north")
    client = await connect(settings, "tests")
    session = Session(settings, cast("KubeApi", None), temporal=client)
    await wake(client, key)
    try:

        async def listed() -> list[str]:
            query = f"ExecutionStatus = 'Running' AND OpKind = '{key.kind}'"
            rows = [row_of(each) async for each in client.list_workflows(query)]
            return [path(row.namespace, row.name) for row in rows]

        (shown,) = await eventually(listed, f"{key.kind} is listed")
        assert (await find_key(session, target(key.kind, shown))).workflow_id == key.workflow_id
        assert (await find_key(session, target(key.kind, ""))).workflow_id == key.workflow_id
    finally:
        await client.get_workflow_handle(key.workflow_id).terminate("the test is over")

    async def ended() -> bool:
        query = f"ExecutionStatus = 'Terminated' AND WorkflowId = '{key.workflow_id}'"
        return bool((await client.count_workflows(query)).count)

    await eventually(ended, "the end is visible")  # `perdure wake` starts it again
    assert (await find_key(session, target(key.kind, shown))).workflow_id == key.workflow_id


async def test_an_ended_lifecycle_of_an_instance_is_not_started_again(
    temporal: TemporalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = pointing_at(temporal, monkeypatch, cluster="north")
    client, name = await connect(settings, "tests"), f"i-{uuid4().hex[:12]}"
    key = Key(kind="Ec2Instance", namespace="123456789012/eu-west-1", name=name, uid="", cluster="north")
    await wake(client, key)
    await client.get_workflow_handle(key.workflow_id).terminate("the test is over")
    session, named = Session(settings, cast("KubeApi", None), temporal=client), f"{key.namespace}/{name}"

    async def refused() -> bool:
        try:
            await find_key(session, target(key.kind, named))
        except CommandError as error:
            return "its last lifecycle ended at" in error.message
        return False

    await eventually(refused, "the end is reported")
