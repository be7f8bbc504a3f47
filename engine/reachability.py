"""Whether Temporal and the API server answer, checked in the background for `/readyz`.

An outage is no reason to restart, so it shows in readiness only. The API server is asked only after a failed request,
or when it has sent nothing for a while.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from engine.errors import ApiError, Unavailable
from engine.health import Health
from engine.kube.api import KubeApi

ASK_TEMPORAL_EVERY = 10.0
# Each open watch brings a bookmark about once a minute, so a process with some watches rarely asks.
API_SERVER_QUIET = 30.0
ANSWER_WITHIN = 10.0
LOOK_EVERY = 1.0
AGAIN_AFTER_FAILURE = 2.0

log = logging.getLogger(__name__)


class NotReached(Exception):  # noqa: N818
    pass


class Reachability:
    """Whether a server answers.

    Args:
        server: its name and address, for people.
        ask: sends a request; raises `NotReached` if the server does not answer.
        due: whether to ask, given the seconds since the server's last answer.
    """

    def __init__(self, server: str, ask: Callable[[], Awaitable[None]], due: Callable[[float], bool]) -> None:
        self._server = server
        self._ask = ask
        self._due = due
        self._answered = time.monotonic()
        self._trouble = ""
        self._since = ""

    def unready(self) -> Iterable[str]:
        if self._trouble:
            yield f"no answer since {self._since}: {self._trouble}. The check is repeated every few seconds"

    @property
    def failing(self) -> bool:
        return bool(self._trouble)

    async def run(self) -> None:
        while True:
            if self._trouble or self._due(time.monotonic() - self._answered):
                await self._look()
            await asyncio.sleep(AGAIN_AFTER_FAILURE if self._trouble else LOOK_EVERY)

    async def _look(self) -> None:
        try:
            async with asyncio.timeout(ANSWER_WITHIN):
                await self._ask()
        except TimeoutError:
            self._failed(f"no answer within {ANSWER_WITHIN:.0f} s")
        except NotReached as error:
            self._failed(str(error))
        else:
            self._succeeded()

    def _failed(self, why: str) -> None:
        if not self._trouble:
            self._since = f"{datetime.now(UTC):%H:%M:%S} UTC"
            log.warning("%s cannot be reached: %s", self._server, why)
        self._trouble = why

    def _succeeded(self) -> None:
        if self._trouble:
            log.warning("%s answers again", self._server)
        self._trouble = ""
        self._answered = time.monotonic()


@asynccontextmanager
async def temporal_reached(health: Health, client: Client, process: str) -> AsyncIterator[None]:
    server = f"Temporal at {client.service_client.config.target_host}"
    request = DescribeNamespaceRequest(namespace=client.namespace)

    async def ask() -> None:
        try:
            await client.workflow_service.describe_namespace(request, retry=False)
        except RPCError as error:
            if error.status is not RPCStatusCode.PERMISSION_DENIED:  # an answer
                raise NotReached(error.message) from error

    async with _reported(
        health, f"{process}, {server}", Reachability(server, ask, lambda ago: ago > ASK_TEMPORAL_EVERY)
    ):
        yield


@asynccontextmanager
async def api_server_reached(health: Health, api: KubeApi, process: str) -> AsyncIterator[None]:
    """Report in `health` whether the API server answers and serves all watches of `api`, while the block runs."""
    server = f"API server {api.host}"

    async def ask() -> None:
        try:
            await api.ready()
        except Unavailable as error:
            raise NotReached(error.message) from error
        except ApiError as error:
            log.debug("the API server denies the request for its readiness: %s", error)

    def due(ago: float) -> bool:
        return api.failed_since_answer or min(ago, api.quiet) > API_SERVER_QUIET

    reachability = Reachability(server, ask, due)

    def starved() -> Iterable[str]:
        """Messages about watches that are not served; empty while `reachability` reports an API server outage."""
        return () if reachability.failing else api.starved_watches()

    async with _reported(health, f"{process}, {server}", reachability):
        health.add(f"{process}, watches", dead=api.stalled_watches, unready=starved)
        try:
            yield
        finally:
            health.remove(f"{process}, watches")


@asynccontextmanager
async def _reported(health: Health, part: str, reachability: Reachability) -> AsyncIterator[None]:
    health.add(part, unready=reachability.unready)
    running = asyncio.create_task(reachability.run(), name=f"reachability of {part}")
    try:
        yield
    finally:
        running.cancel()
        health.remove(part)
