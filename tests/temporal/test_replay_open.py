"""`perdure temporal replay --open` on a real Temporal replays the histories there and finds a changed workflow."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from passing import Passes, new_key, until_phase, working
from temporal_server import TemporalServer, perdure, pointing_at
from waiting import eventually

from engine.temporal import connect, wake
from tests.running.programs import ROOT


async def test_open_lifecycles_are_replayed_and_a_change_that_breaks_one_is_named(
    temporal: TemporalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await connect(pointing_at(temporal, monkeypatch), "tests")
    key, passes = new_key("open"), Passes()
    async with working(client, passes):
        await wake(client, key)
        await until_phase(client, key, "Waiting")
    handle = client.get_workflow_handle(key.workflow_id)
    query = f"WorkflowId = '{key.workflow_id}'"

    async def listed() -> bool:
        return (await client.count_workflows(query)).count == 1

    await eventually(listed, "the lifecycle in the list")
    passed = perdure(temporal, "default", "temporal", "replay", "--open", "--query", query, "-o", "json")
    assert passed.returncode == 0, passed.stderr
    (found,) = json.loads(passed.stdout)
    assert (found["kind"], found["workflow"], found["failure"]) == ("AccountPool", key.workflow_id, "")

    shutil.copytree(ROOT / "workflows", tmp_path / "workflows")
    accounts = tmp_path / "workflows" / "accounts.py"
    signal = '    @workflow.signal(description="An Account of this pool is deleted'
    later = "    async def life(self) -> None:\n        await workflow.sleep(1)\n        await self.live()\n\n"
    changed = accounts.read_text().replace(signal, f"{later}{signal}")
    assert later in changed
    accounts.write_text(changed)
    failed = perdure(temporal, "default", "temporal", "replay", "--open", "--query", query, code=tmp_path)
    assert failed.returncode == 1
    assert key.workflow_id in failed.stdout
    assert "TMPRL1100" in failed.stdout
    assert "1 of 1 histories cannot be continued by this code" in failed.stderr
    assert len((await handle.fetch_history()).events) == found["events"]  # and nothing was changed by it
    await handle.terminate("the test is over")
