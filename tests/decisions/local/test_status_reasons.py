"""`perdure status` gives the reasons of a process that is not ready."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

from rich.console import Console

from engine.health import Health, serve
from engine.settings import Settings
from localcloud.cli import status_table
from localcloud.deployment import DeploymentStatus
from localcloud.probes import HttpProbe
from localcloud.state import ServiceState, ServiceStatus


async def test_the_probe_gives_the_reasons_of_readyz() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    health = Health()
    reasons = ["Secrets in apis has had no watch for 45 s", "Account has not been listed for 31 s"]
    health.add("watch, watches", unready=lambda: reasons)
    probe = HttpProbe(f"http://127.0.0.1:{port}/readyz")
    async with serve(health, Settings(listen_host="127.0.0.1", health_port=port)):
        body = await asyncio.to_thread(probe.failure)
        reasons.clear()
        assert await asyncio.to_thread(probe.failure) is None
    assert body is not None
    assert body.endswith(
        "answers 503: watch, watches: Secrets in apis has had no watch for 45 s; "
        "watch, watches: Account has not been listed for 31 s"
    )


def test_a_reason_is_shown_unchanged() -> None:
    row = ServiceStatus(name="watch", state=ServiceState.READY, message="list Thing: 400 [/spec] must be set")
    console = Console(width=200)
    with console.capture() as shown:
        console.print(status_table(DeploymentStatus(state_directory=Path("/state"), running=True, services=(row,))))
    assert "list Thing: 400 [/spec] must be set" in shown.get()
