"""The beginning and end of every long-running process: connecting to Temporal, and stopping at a signal."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

from temporalio.client import Client
from temporalio.service import RPCError

from engine.settings import Settings
from engine.temporal import connect
from engine.temporal_connection import Connection, TemporalRefused
from engine.temporal_namespace import ensure_search_attributes

RECONNECT_SECONDS = 2.0

log = logging.getLogger(__name__)


async def connected(settings: Settings, process: str) -> Client:
    """A client of Temporal, as soon as Temporal answers; its connection is renewed while the process runs."""
    while True:
        try:
            client = await connect(settings, process, log_core=True)
        except TemporalRefused as refused:
            log.warning("no connection, trying again: %s", refused)
            await asyncio.sleep(RECONNECT_SECONDS)
            continue
        try:
            await ensure_search_attributes(client)
        except RPCError as error:
            # In a locked-down namespace the administrator adds the attributes; each wake reports missing attributes.
            log.warning("this process cannot register the search attributes: %s", error)
        if isinstance(client.service_client, Connection):
            client.service_client.keep(settings)
        return client


@asynccontextmanager
async def stopped_by_signals(stop: asyncio.Event | None) -> AsyncIterator[asyncio.Event]:
    """The caller's event, or, if that is None, an event that SIGTERM and SIGINT set."""
    if stop is not None:
        yield stop
        return
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    try:
        yield stopped
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


async def first_of(stop: Awaitable[object], work: Awaitable[object]) -> None:
    """Run `stop` and `work` until one ends, cancel the other, and raise an error of either."""
    tasks = [asyncio.ensure_future(stop), asyncio.ensure_future(work)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result


def ungrouped(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first exception in nested groups. Raise it outside `except*`: inside, Python 3.11.2 would wrap it again."""
    first = group.exceptions[0]
    return ungrouped(first) if isinstance(first, BaseExceptionGroup) else first
