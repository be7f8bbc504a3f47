"""A program of a machine. It is restarted when it dies, and ends with its machine or host.

The program is killed without grace, as in a loss of power.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from localcloud.processes import tethered

_LOG_LIMIT_BYTES = 8 * 1024 * 1024

log = logging.getLogger("machines")


class Program:
    def __init__(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        log_file: Path,
        on_change: Callable[[], None],
    ) -> None:
        self.pid: int | None = None
        self.restart_delay = 1.0
        self._name = name
        self._command = command
        self._environment = environment
        self._log_file = log_file
        self._on_change = on_change
        self._on = asyncio.Event()
        self._off = asyncio.Event()
        self._off.set()

    def switch(self, *, on: bool) -> None:
        rising, falling = (self._on, self._off) if on else (self._off, self._on)
        rising.set()
        falling.clear()

    async def run(self) -> None:
        while True:
            await self._on.wait()
            await self._live()
            if self._on.is_set():
                await _either(self._off, asyncio.sleep(self.restart_delay))

    async def _live(self) -> None:
        spawning = asyncio.ensure_future(self._spawn())
        try:
            # A cancelled caller must still learn of the process, to end it.
            process = await asyncio.shield(spawning)
            self._set_pid(process.pid)
            await _either(self._off, process.wait())
        finally:
            process = await spawning
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await asyncio.shield(process.wait())
            else:
                log.warning("%s (pid %d) ended with %d", self._name, process.pid, process.returncode)
            self._set_pid(None)

    def _set_pid(self, pid: int | None) -> None:
        self.pid = pid
        self._on_change()

    async def _spawn(self) -> asyncio.subprocess.Process:
        with self._log_file.open("ab") as output:
            if output.tell() > _LOG_LIMIT_BYTES:
                output.truncate(0)
            return await asyncio.create_subprocess_exec(
                *tethered(self._command),
                cwd=self._log_file.parent,
                env=dict(self._environment),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )


async def _either(event: asyncio.Event, other: Awaitable[object]) -> None:
    waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(event.wait()), asyncio.ensure_future(other)]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
