"""`perdure bench engine`: the cost of passes over idle Accounts, which change nothing.

Latency is measured with single wakes at rest, from the signal in the history to the end of the observation.
"""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

from domain.accounts import ACCOUNT, ACCOUNT_POOL
from domain.identity import Key
from domain.model import Model
from engine.kube.json import key_of
from engine.temporal import wake
from localcloud.bench.accounts import make_idle_accounts, settle
from localcloud.bench.figures import Figure, Found, percentile
from localcloud.bench.laboratory import Event, History, Laboratory, laboratory
from localcloud.state import Cloud

WAKERS = 10  # as many as the watcher sends at once
SINGLE_WAKES = 20
PAUSE_SECONDS = 0.5


class Sizes(Model):
    lifecycles: int = 200


async def passes(sizes: Sizes, rows: frozenset[str]) -> Found:
    lifecycles = sizes.lifecycles
    async with laboratory((Cloud.AWS,), ACCOUNT, ACCOUNT_POOL) as lab:
        began = time.monotonic()
        await make_idle_accounts(lab, lifecycles)
        await settle(lab, lifecycles)
        opened = time.monotonic() - began
        await lab.quiet()
        keys = [key_of(ACCOUNT.name, obj) for obj in lab.objects.of(ACCOUNT)]
        at_rest = await lab.histories(ACCOUNT)
        sent, cpu, mark = await _wake_all(lab, keys)
        woken = await lab.histories(ACCOUNT)
        requests = sum(lab.requests_since(mark).values())
        latencies = await _single_wakes(lab, keys[:SINGLE_WAKES])
    news = {id_: history.events[len(at_rest[id_].events) :] for id_, history in woken.items()}
    done = [event.at for events in news.values() for event in events if event.type == _OBSERVED]
    span = (max(done) - min(event.at for events in news.values() for event in events)).total_seconds()
    count = len(done)
    rest = [len(history.events) for history in at_rest.values()]
    figures = (
        Figure(
            row="m",
            what=f"{lifecycles} lifecycles opened and settled, each second",
            measured=round(lifecycles / opened, 1),
        ),
        Figure(row="m", what="wakes sent to open lifecycles, each second", measured=round(lifecycles / sent)),
        Figure(
            row="m", what="passes, each second", measured=round(count / span, 1), note=f"{count} passes in {span:.1f} s"
        ),
        *(
            Figure(row="m", what=f"CPU per pass: {service}", measured=round(1000 * seconds / count, 1), unit="ms")
            for service, seconds in cpu.items()
        ),
        Figure(row="m", what="Kubernetes requests per pass", measured=round(requests / count, 2)),
        Figure(
            row="m",
            what="from a wake to the end of its observation, median",
            measured=_ms(percentile(latencies, 0.5)),
            unit="ms",
        ),
        Figure(
            row="m",
            what="from a wake to the end of its observation, p95",
            measured=_ms(percentile(latencies, 0.95)),
            unit="ms",
        ),
        Figure(row="m", what="history events of a lifecycle at rest", measured=max(rest), note="the longest history"),
        Figure(row="m", what="history events of a pass", measured=round(sum(map(len, news.values())) / count, 1)),
    )
    return Found(figures=figures)


_OBSERVED = "activity_task_completed"


async def _wake_all(lab: Laboratory, keys: list[Key]) -> tuple[float, dict[str, float], int]:
    permits = asyncio.Semaphore(WAKERS)

    async def one(key: Key) -> None:
        async with permits:
            await wake(lab.temporal, key)

    mark, before, began = lab.audit_mark(), lab.cpu(), time.monotonic()
    await asyncio.gather(*map(one, keys))
    sent = time.monotonic() - began
    await lab.quiet()
    after = lab.cpu()
    return sent, {service: after[service] - before[service] for service in after}, mark


async def _single_wakes(lab: Laboratory, keys: list[Key]) -> list[float]:
    before = await lab.histories(ACCOUNT)
    for key in keys:
        await wake(lab.temporal, key)
        await asyncio.sleep(PAUSE_SECONDS)
    after = await lab.histories(ACCOUNT)
    return [_latency(_news(before, after, key.workflow_id)).total_seconds() for key in keys]


def _news(before: dict[str, History], after: dict[str, History], id_: str) -> tuple[Event, ...]:
    return after[id_].events[len(before[id_].events) :]


def _latency(events: tuple[Event, ...]) -> timedelta:
    woken = next(event.at for event in events if event.type == "workflow_execution_signaled")
    return next(event.at for event in events if event.type == _OBSERVED) - woken


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 1)


MEASUREMENTS = ((frozenset({"m"}), passes),)
