"""What `/readyz` and `/healthz` of real processes say while a server does not answer, or while a loop hangs.

The servers are stopped by SIGSTOP: connections stay open and nothing comes, the outage that is hardest to see. An event
loop is stopped by a signal handler that does not return: the other threads of the process go on.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import httpx
import pytest
from product import free_port, get_health, process
from waiting import eventually

from localcloud import services
from localcloud.deployment import Deployment
from tests.running.failed_servers import end

pytestmark = pytest.mark.integration

SERVERS = {services.TEMPORAL: "Temporal at", services.API_SERVER: "API server"}
PROCESSES = ("worker", "watch", "events", "run")
QUEUES = {"PERDURE_INSTANCES_QUEUES": "000000000000/us-east-1"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A deployment of the module's own: its servers are stopped."""
    found = Deployment(tmp_path_factory.mktemp("probes") / "state")
    found.up(only=services.SERVERS, tether=True)
    yield found
    end(found)


@pytest.fixture
async def ports(cluster: Deployment) -> AsyncIterator[dict[str, int]]:
    """The health port of each process; all of them are ready."""
    found: dict[str, int] = {}
    async with AsyncExitStack() as running:
        for name in PROCESSES:
            found[name] = free_port()
            await running.enter_async_context(process(cluster, name, port=found[name], **QUEUES))
        yield found


# What kubelet allows (`timeoutSeconds` in the chart).
PROBE_SECONDS = 5.0
# Read by every Python process whose path it is on.
STOPPABLE = """
import os, signal, time

def stop(*_):
    while os.path.exists({held!r}):
        time.sleep(0.05)

signal.signal(signal.SIGUSR1, stop)
"""


async def probe(port: int, path: str) -> tuple[int, str]:
    answer = await get_health(port, path)
    return answer.status_code, answer.text


async def ready(port: int) -> bool:
    status, body = await probe(port, "/readyz")
    print(body)  # The last of them says what it waited for, if it never becomes ready.
    return status == 200


async def names_both_servers(port: int) -> bool:
    status, body = await probe(port, "/readyz")
    return status == 503 and all(f"{server} " in body for server in SERVERS.values()) and "no answer since" in body


@pytest.mark.timeout(600)
async def test_readiness_names_servers_that_are_away_and_recovers_while_liveness_holds(
    cluster: Deployment, ports: dict[str, int]
) -> None:
    for service in SERVERS:
        cluster.kill(service, signal.SIGSTOP)
    try:
        for name, port in ports.items():
            await eventually(partial(names_both_servers, port), f"{name} says which servers do not answer")
        alive = await asyncio.gather(*(probe(port, "/healthz") for port in ports.values()))
        assert [status for status, _ in alive] == [200] * len(ports), alive
    finally:
        for service in SERVERS:
            cluster.kill(service, signal.SIGCONT)
    for name, port in ports.items():
        await eventually(partial(ready, port), f"{name} is ready again")


@pytest.mark.parametrize("name", ["worker", "watch"])
async def test_liveness_does_not_answer_while_the_event_loop_is_stuck(
    cluster: Deployment, tmp_path: Path, name: str
) -> None:
    port, held = free_port(), tmp_path / "held"
    (tmp_path / "sitecustomize.py").write_text(STOPPABLE.format(held=str(held)))
    async with process(cluster, name, port=port, PYTHONPATH=str(tmp_path)) as started:
        assert (await probe(port, "/healthz"))[0] == 200
        held.touch()
        try:
            started.send_signal(signal.SIGUSR1)
            await eventually(partial(gives_no_answer, port), "kubelet gets no answer")
        finally:
            held.unlink()
        await eventually(partial(alive, port), "it goes on")


async def gives_no_answer(port: int) -> bool:
    try:
        await get_health(port, "/healthz", PROBE_SECONDS)
    except httpx.ReadTimeout:
        return True
    return False


async def alive(port: int) -> bool:
    return (await probe(port, "/healthz"))[0] == 200
