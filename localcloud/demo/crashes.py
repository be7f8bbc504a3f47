"""Kills processes during a demo, and prints each change of an object's running steps or blockers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from domain.identity import Kind
from domain.why import Why
from localcloud.demo.stage import Stage

ASK_SECONDS = 0.5
# The most concurrent steps that are listed; an account initializes seventeen regions.
MOST_NAMED = 3


@dataclass(frozen=True)
class Killed:
    pids: Mapping[str, int]
    at: float


async def kill(stage: Stage, *names: str) -> Killed:
    async def all_run() -> bool:
        return all(stage.deployment.service(name).settled for name in names)

    await stage.looking(f"{_listed(names)} can be killed", all_run)
    killed = Killed({name: stage.deployment.kill(name) for name in names}, time.monotonic())
    stage.say(f"KILLED with SIGKILL: {_with_pids(killed.pids)}")
    return killed


async def until_back(stage: Stage, killed: Killed) -> None:
    async def all_back() -> bool:
        rows = [stage.deployment.service(name) for name in killed.pids]
        return all(row.settled and row.pid != killed.pids[row.name] for row in rows)

    await stage.looking(f"{_listed(killed.pids)} run again", all_back)
    now = {name: stage.deployment.service(name).pid or 0 for name in killed.pids}
    stage.say(f"Started again by the supervisor after {time.monotonic() - killed.at:.1f} s: {_with_pids(now)}")


@asynccontextmanager
async def narrated(stage: Stage, *kinds: Kind) -> AsyncIterator[None]:
    task = asyncio.create_task(_narrate(stage, kinds))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _narrate(stage: Stage, kinds: tuple[Kind, ...]) -> None:
    printed: dict[str, str] = {}
    while True:
        ids = [id_ for id_ in stage.shown() if id_.startswith(tuple(f"{kind.name}/" for kind in kinds))]
        for id_, answer in zip(ids, await asyncio.gather(*map(stage.why, ids)), strict=True):
            line = next_step(answer) if answer is not None else ""
            if line and printed.get(id_) != line:
                printed[id_] = line
                kind, _, name, _ = id_.split("/")
                stage.say(f"    {kind} {name}: {line}")
        await asyncio.sleep(ASK_SECONDS)


def next_step(why: Why) -> str:
    if why.phase == "Unknown":  # a history is being replayed
        return ""
    if why.running:
        more = f" and {len(why.running) - MOST_NAMED} more" if len(why.running) > MOST_NAMED else ""
        return "; ".join(why.running[:MOST_NAMED]) + more
    if why.outcome == "settled":
        return f"{why.phase}, nothing left to do"
    return why.why


def _with_pids(pids: Mapping[str, int]) -> str:
    return ", ".join(f"{name} (pid {pid})" for name, pid in pids.items())


def _listed(names: Mapping[str, int] | tuple[str, ...]) -> str:
    return ", ".join(names)
