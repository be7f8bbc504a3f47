"""A supervisor whose disk is full."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from localcloud import supervisor
from localcloud.state import Plan, StateDirectory


def test_a_supervisor_without_room_for_services_json_continues_and_writes_it_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "PROBE_SECONDS", 0.01)
    state = StateDirectory(tmp_path / "state")  # it does not exist, so every write fails as on a full disk

    plan = Plan(clouds=(), services=(), binaries=None, kubeconfig=None)

    async def run() -> None:
        running = asyncio.create_task(supervisor.Supervisor(state, plan, (), ()).run())
        await asyncio.sleep(0.05)
        assert not running.done()
        state.root.mkdir()
        while state.running() is None:
            assert not running.done()
            await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(run())
