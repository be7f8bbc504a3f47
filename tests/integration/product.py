"""The product's own processes in tests: started as in production, ready when they say so, ended by SIGTERM."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, NamedTuple

import httpx
from waiting import eventually

from localcloud.deployment import Deployment
from localcloud.state import choose_ports
from tests.running.programs import COMMAND, ROOT, command_line


def shell_without_servers() -> dict[str, str]:
    foreign = ("KUBECONFIG", "TEMPORAL_", "AWS_", "PERDURE_")
    return {name: value for name, value in os.environ.items() if not name.startswith(foreign)}


@asynccontextmanager
async def process(
    deployment: Deployment, *command: str, port: int = 0, forked: bool = True, **environ: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """One of the product's processes, ready; stopped at the end as an operator would. It logs with the deployment.

    A process that is not forked has imported nothing but its own modules.
    """
    port = port or free_port()
    settings = {
        "PERDURE_STATE": "",  # what is given here counts, not the state directory's own environment
        "PERDURE_HEALTH_PORT": str(port),
        "PERDURE_DRAIN": "2",
        # All tests of a run share one organization: what others created in the last hour is no runaway loop.
        "PERDURE_ACCOUNTS_CREATE_BUDGET": "10000",
    }
    log = deployment.log(f"test-{command[0]}")
    with log.open("ab") as output:
        started = await asyncio.create_subprocess_exec(
            *command_line(COMMAND, *command, forked=forked and "PYTHONPATH" not in environ),
            cwd=ROOT,
            env=deployment.program_env() | settings | environ,
            stdout=output,
            stderr=output,
        )
        try:
            await eventually(lambda: answers(port, "/readyz"), f"{command[0]} ready; its log: {log}")
            yield started
        finally:
            if started.returncode is None:
                started.send_signal(signal.SIGTERM)
            async with asyncio.timeout(60):
                await started.wait()


def perdure(
    deployment: Deployment | None, *command: str, seconds: float = 200, forked: bool = True
) -> subprocess.CompletedProcess[str]:
    """A command as a person or a CI job runs it, on a deployment if it needs one, to its end.

    A process that is not forked knows the areas of packages that it installs.
    """
    where = ("--state", str(deployment.state.root)) if deployment else ()
    return subprocess.run(
        command_line(COMMAND, *command, *where, forked=forked),
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


async def typed(deployment: Deployment, *arguments: str, answer: str = "", **environ: str) -> Ended:
    """A command as Ann types it, on a terminal that is wide enough, and what she answers to its questions."""
    process = await asyncio.create_subprocess_exec(
        *command_line(COMMAND, *arguments, "--state", str(deployment.state.root)),
        cwd=ROOT,
        env=shell_without_servers() | {"PERDURE_USER": "ann", "COLUMNS": "200"} | environ,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate(answer.encode())
    return Ended(process.returncode or 0, out.decode(), err.decode())


async def get_health(port: int, path: str, seconds: float = 30) -> httpx.Response:
    """The answer of a process on its health port; to load authorities of TLS would take 50 ms of CPU."""
    async with httpx.AsyncClient(timeout=seconds, verify=False, trust_env=False) as client:
        return await client.get(f"http://127.0.0.1:{port}{path}")


async def answers(port: int, path: str) -> bool:
    """True if it answers 200."""
    try:
        return (await get_health(port, path)).status_code == 200
    except httpx.HTTPError:
        return False


def free_port() -> int:
    ports, _ = choose_ports(("test",), {})
    return ports["test"]


class StoppedAndStarted:
    """The product's processes as one, which a test may stop for a while."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._product = AsyncExitStack()

    async def environ(self) -> dict[str, str]:
        """The settings in its environment."""
        raise NotImplementedError

    async def start(self) -> None:
        """Worker and watcher in one process, as small installations run them."""
        await self._product.enter_async_context(process(self._deployment, "run", **await self.environ()))

    async def stop(self) -> None:
        """End it."""
        await self._product.aclose()

    @asynccontextmanager
    async def without_product(self) -> AsyncIterator[None]:
        """What is done within happens while neither worker nor watcher runs."""
        await self.stop()
        try:
            yield
        finally:
            await self.start()
