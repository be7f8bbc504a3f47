"""Temporal's development server as a process: where it listens, its store's file, how a process of ours finds it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client
from temporalio.service import RPCError
from waiting import eventually

from engine.settings import Settings
from engine.temporal_namespace import ensure_search_attributes
from localcloud.state import choose_ports
from tests.running.programs import COMMAND, ROOT, command_line

LOOPBACK = "127.0.0.1"
PATIENCE = 90.0


@dataclass(frozen=True)
class TemporalServer:
    """A server that runs."""

    root: Path
    ports: dict[str, int] = field(default_factory=dict)
    namespace: str = "default"

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.ports['grpc']}"

    @property
    def ui(self) -> str:
        return f"http://{LOOPBACK}:{self.ports['ui']}"

    def stored(self) -> bytes:
        """All that its store holds: the file, and what is not merged into it yet."""
        return b"".join(each.read_bytes() for each in sorted(self.root.glob("temporal.db*")))


def program() -> str:
    return str(Path(sys.executable).with_name("temporal"))


@asynccontextmanager
async def serving(root: Path, *flags: str) -> AsyncIterator[TemporalServer]:
    """A server with our search attributes, ended with the block."""
    ports, _ = choose_ports(("grpc", "ui", "http", "metrics"), {})
    server = TemporalServer(root, dict(ports))
    command = [
        *(program(), "server", "start-dev", "--ip", LOOPBACK, "--disable-config-file", "--disable-config-env"),
        *("--port", str(ports["grpc"]), "--ui-port", str(ports["ui"]), "--http-port", str(ports["http"])),
        *("--metrics-port", str(ports["metrics"]), "--db-filename", str(root / "temporal.db")),
        *("--sqlite-pragma", "journal_mode=WAL", "--sqlite-pragma", "synchronous=OFF"),
        *("--ui-disable-news-fetch", "--dynamic-config-value", "frontend.enableServerVersionCheck=false"),
        *("--log-level", "error", *flags),
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TEMPORAL_")}
    with (root / "server.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=log, stderr=log)
    try:
        await eventually(lambda: answers(server), "a server that answers")
        yield server
    finally:
        process.terminate()
        async with asyncio.timeout(60):
            await process.wait()


async def answers(server: TemporalServer) -> bool:
    try:
        client = await Client.connect(server.address)
        await ensure_search_attributes(client)
    except (RuntimeError, RPCError):
        return False
    return True


def pointing_at(server: TemporalServer, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> Settings:
    """Settings of a process whose Temporal this is."""
    for name in list(os.environ):
        if name.startswith("TEMPORAL_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("TEMPORAL_ADDRESS", server.address)
    monkeypatch.setenv("TEMPORAL_NAMESPACE", server.namespace)
    return Settings(**settings)


def perdure(
    server: TemporalServer, namespace: str, *command: str, code: Path = ROOT, **environ: str
) -> subprocess.CompletedProcess[str]:
    """A command as a Job of the chart runs it; what lies in the directory `code` is imported first."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("TEMPORAL_", "PERDURE_"))}
    return subprocess.run(
        command_line(COMMAND, *command, forked=code == ROOT),
        env={**inherited, "TEMPORAL_ADDRESS": server.address, "TEMPORAL_NAMESPACE": namespace, **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
        cwd=code,
    )
