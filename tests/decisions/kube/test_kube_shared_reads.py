"""One reading for all who asked before it began, and never a reading that began before the question."""

from __future__ import annotations

import asyncio

import pytest

from engine.kube.shared_reads import SharedReading


class Source:
    """Reads that end when the test says so; each gives the number of readings begun until then."""

    def __init__(self) -> None:
        self.begun = 0
        self.may_end = asyncio.Event()

    async def read(self) -> int:
        self.begun += 1
        number = self.begun
        await self.may_end.wait()
        return number


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_those_who_ask_together_share_one_reading() -> None:
    source = Source()
    shared = SharedReading(source.read)
    askers = [asyncio.create_task(shared.read()) for _ in range(20)]
    await settle()
    source.may_end.set()
    assert await asyncio.gather(*askers) == [1] * 20


async def test_a_caller_during_a_reading_gets_the_next_one() -> None:
    source = Source()
    shared = SharedReading(source.read)
    first = asyncio.create_task(shared.read())
    await settle()
    later = [asyncio.create_task(shared.read()) for _ in range(20)]
    await settle()
    assert source.begun == 1
    source.may_end.set()
    assert await first == 1
    assert await asyncio.gather(*later) == [2] * 20
    assert await shared.read() == 3


async def test_a_failed_read_is_reported_to_its_callers_alone() -> None:
    answers = iter([ValueError("away"), 7])

    async def read() -> int:
        found = next(answers)
        if isinstance(found, ValueError):
            raise found
        return found

    shared = SharedReading(read)
    with pytest.raises(ValueError, match="away"):
        await shared.read()
    assert await shared.read() == 7


async def test_a_cancelled_caller_takes_the_answer_from_no_other() -> None:
    source = Source()
    shared = SharedReading(source.read)
    impatient, patient = asyncio.create_task(shared.read()), asyncio.create_task(shared.read())
    await settle()
    impatient.cancel()
    source.may_end.set()
    assert await patient == 1
