"""`perdure bench outages`: objects of several areas change while a server, disk or clock is unavailable or faulty.

docs/benchmarks.md describes the rows.
"""

from __future__ import annotations

import asyncio
import errno
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path

from domain.model import Model
from localcloud.bench.all_areas import Area, Everything, everything
from localcloud.bench.claims_telling import step, told
from localcloud.bench.figures import Figure, Found
from localcloud.cpu_share import NoQuota
from localcloud.debian import libraries, unpack
from localcloud.deployment import DeploymentError
from localcloud.services import API_SERVER, POSTGRES, TEMPORAL
from localcloud.temporal.programs import cache_directory

# The part of `--outage-seconds` that an outage of PostgreSQL, disk or clock lasts.
_SHORT = 0.1
_DISK_MEGABYTES = 900
_HOUR = 3600
_KILL_EVERY_SECONDS = 10.0
# The share of an outage in which requests are sent; it ends early, so that the outage affects the last requests, too.
_SPREAD = 0.8
# A third of each area's objects is changed, a third ended, a third created; this is the size of a third.
THIRDS = {"claims": 8, "accounts": 1, "instances": 4, "products": 4}
_TRIED_SECONDS = 300.0


class Sizes(Model):
    outage_seconds: float = 600.0


Outage = Callable[[Everything], AbstractAsyncContextManager[None]]


async def stopped(row: str, service: str, sizes: Sizes, rows: frozenset[str]) -> Found:
    async with everything(THIRDS) as on:
        return await _met(on, row, f"{service} away", sizes.outage_seconds, lambda on: on.lab.frozen(service))


async def database(sizes: Sizes, rows: frozenset[str]) -> Found:
    async def killing(on: Everything) -> None:
        while True:
            with suppress(DeploymentError):  # it is just being started again
                await asyncio.to_thread(on.lab.deployment.kill, POSTGRES)
            await asyncio.sleep(_KILL_EVERY_SECONDS)

    @asynccontextmanager
    async def outage(on: Everything) -> AsyncIterator[None]:
        task = asyncio.create_task(killing(on))
        yield
        task.cancel()

    async with everything(THIRDS) as on:
        if POSTGRES not in on.lab.deployment.state.plan().services:
            raise DeploymentError("row postgres needs `--temporal postgres`")
        seconds = _SHORT * sizes.outage_seconds
        return await _met(on, "postgres", f"PostgreSQL killed every {_KILL_EVERY_SECONDS:g} s", seconds, outage)


async def disk(sizes: Sizes, rows: frozenset[str]) -> Found:
    with _small_disk() as directory:

        @asynccontextmanager
        async def outage(_: Everything) -> AsyncIterator[None]:
            filler = directory / "filler"
            task = asyncio.create_task(_fill(filler))
            yield
            task.cancel()
            filler.unlink()

        async with everything(THIRDS, directory=directory) as on:
            return await _met(on, "disk", "the disk full", _SHORT * sizes.outage_seconds, outage)


async def clock(sizes: Sizes, rows: frozenset[str]) -> Found:
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as temporary:
        offset = Path(temporary) / "offset"
        offset.write_text("+0")

        @asynccontextmanager
        async def outage(_: Everything) -> AsyncIterator[None]:
            offset.write_text(f"+{_HOUR}")
            yield
            offset.write_text("+0")

        async with everything(THIRDS, variables=_moved_clock(offset)) as on:
            return await _met(on, "clock", "Perdure's clocks an hour ahead", _SHORT * sizes.outage_seconds, outage)


async def _met(on: Everything, row: str, what: str, seconds: float, outage: Outage) -> Found:
    before, meanwhile = plan(on)
    await asyncio.gather(*(each() for each in before))
    took = await on.settle()
    step(f"{len(before)} objects are settled after {took:.0f} s; {what} for {seconds:.0f} s")
    answers = [
        asyncio.create_task(_later(seconds * _SPREAD * number / len(meanwhile), each))
        for number, each in enumerate(meanwhile)
    ]
    async with outage(on):
        await asyncio.sleep(seconds)
        answered = sum(task.done() for task in answers)
    began = time.monotonic()
    step(f"it is over; {answered} of {len(answers)} requests were answered meanwhile")
    await asyncio.gather(*answers)
    _, found = await on.settled(_TRIED_SECONDS, entirely=False)
    caught_up = time.monotonic() - began
    if not found:
        _, found = await on.settled()
    await on.lab.quiet()
    found += await on.verdict()
    for each in found:
        step(each)
    figures = (
        Figure(
            row=row,
            what=f"{what} for {seconds:.0f} s, {len(answers)} changes meanwhile: all done after",
            measured=round(caught_up, 1),
            unit="s",
            goal="≤ 60",
            note=f"{len(before)} objects before; {answered} requests answered meanwhile",
        ),
        Figure(row=row, what="objects lost, created twice, or found by an audit", measured=len(found), goal="0"),
    )
    return told(Found(figures=figures))


Request = Callable[[], Awaitable[None]]


def plan(on: Everything) -> tuple[list[Request], list[Request]]:
    before: list[Request] = []
    of_areas = []
    for name, area in on.areas.items():
        first, second, third = ([f"{name}-{part}-{number}" for number in range(THIRDS[name])] for part in "abc")
        before += [partial(area.create, each) for each in (*first, *second)]
        of_areas.append(_mixed(area, first, second, third))
    # The areas take turns.
    longest = max(map(len, of_areas))
    return before, [each[place] for place in range(longest) for each in of_areas if place < len(each)]


def _mixed(area: Area, changed: list[str], ended: list[str], created: list[str]) -> list[Request]:
    return [
        call
        for one, other, third in zip(changed, ended, created, strict=True)
        for call in (partial(area.change, one), partial(area.end, other), partial(area.create, third))
    ]


async def _later(seconds: float, call: Request) -> None:
    await asyncio.sleep(seconds)
    await call()


@contextmanager
def _small_disk() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as temporary:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={_DISK_MEGABYTES}m", "perdure-bench", temporary]
        mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
        if mounted.returncode != 0:
            raise NoQuota(f"no file system can be mounted here ({mounted.stderr.strip()}); run it as root")
        try:
            yield Path(temporary)
        finally:
            subprocess.run(["umount", "--lazy", temporary], check=True)


async def _fill(filler: Path) -> None:
    with filler.open("ab", buffering=0) as file:
        size = 2**20
        while True:
            try:
                file.write(b"\0" * size)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                if size > 1:
                    size //= 2
                else:
                    size = 4096
                    await asyncio.sleep(0.1)


def _moved_clock(offset: Path) -> Mapping[str, str]:
    """Variables that add the file's seconds to a process's wall clock. libfaketime rereads the file every second."""
    home = cache_directory() / "faketime"
    if not home.is_dir():
        unpack("faketime", home, proof=("usr/bin/faketime", "--version"))
    return {
        "LD_PRELOAD": str(libraries(home) / "faketime" / "libfaketime.so.1"),
        "FAKETIME_TIMESTAMP_FILE": str(offset),
        "FAKETIME_CACHE_DURATION": "1",
        # The monotonic clock, which measures durations, is not moved.
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
    }


# Rows that need a production Temporal, root, or Debian's packages.
ON_REQUEST = frozenset({"postgres", "disk", "clock"})
MEASUREMENTS = (
    (frozenset({"temporal"}), partial(stopped, "temporal", TEMPORAL)),
    (frozenset({"api"}), partial(stopped, "api", API_SERVER)),
    (frozenset({"postgres"}), database),
    (frozenset({"disk"}), disk),
    (frozenset({"clock"}), clock),
)
