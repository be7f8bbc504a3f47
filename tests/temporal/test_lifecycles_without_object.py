"""`perdure why` names the lifecycles without an object as `perdure list` shows them."""

from __future__ import annotations

from typing import cast

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
