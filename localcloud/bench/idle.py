"""`perdure bench idle`: requests a minute and memory while settled objects of several areas are left alone.

The row `run` measures `perdure run`, while worker, watcher and event consumer are stopped (SIGSTOP).
"""

from __future__ import annotations

import asyncio

import psutil

from domain.model import Model
from localcloud.bench.all_areas import Everything, everything
from localcloud.bench.claims_telling import step, together, told
from localcloud.bench.figures import Figure, Found
from localcloud.bench.laboratory import memory_of_mib, writes
from localcloud.services import EVENTS, WATCH, WORKER

_COUNTS = {"claims": 50, "accounts": 4, "instances": 20, "products": 20}
# Observations follow the last change by half a minute. `perdure run` begins to watch only when the stopped watcher's
# Lease has expired, after a minute.
_REST_SECONDS = 150.0
PROCESSES, RUN = "processes", "run"


class Sizes(Model):
    idle_seconds: float = 300.0


async def idle(sizes: Sizes, rows: frozenset[str]) -> Found:
    async with everything(_COUNTS) as on:
        await asyncio.gather(
            *(area.create(f"{name}-{n}") for name, area in on.areas.items() for n in range(_COUNTS[name]))
        )
        await on.settle()
        parts = []
        if PROCESSES in rows:
            pids = {name: on.lab.deployment.service(name).pid for name in (WORKER, WATCH, EVENTS)}
            parts.append(
                told(await _left_alone(on, PROCESSES, sizes, {k: v for k, v in pids.items() if v is not None}))
            )
        if RUN in rows:
            async with on.lab.in_one_process(WORKER, WATCH, EVENTS) as process:
                parts.append(told(await _left_alone(on, RUN, sizes, {"run": process.pid})))
    return together(parts)


async def _left_alone(on: Everything, row: str, sizes: Sizes, processes: dict[str, int]) -> Found:
    await asyncio.sleep(_REST_SECONDS)
    step(f"nothing is requested for {sizes.idle_seconds:g} s")
    mark, tasks, before = (
        on.lab.audit_mark(),
        await on.lab.workflow_tasks(),
        {n: _cpu(pid) for n, pid in processes.items()},
    )
    await asyncio.sleep(sizes.idle_seconds)
    requests, minutes = on.lab.requests_since(mark), sizes.idle_seconds / 60
    used = {name: 100 * (_cpu(pid) - before[name]) / sizes.idle_seconds for name, pid in processes.items()}
    memory = {name: memory_of_mib(pid) for name, pid in processes.items()}
    objects = sum(len(area.changes) for area in on.areas.values())
    figures = (
        Figure(
            row=row,
            what=f"{objects} settled objects of {', '.join(on.areas)}: Kubernetes requests a minute",
            measured=round(requests.total() / minutes, 1),
            goal="≤ 6",
            note=", ".join(f"{name} {count / minutes:.1f}" for name, count in requests.most_common(6)),
        ),
        Figure(
            row=row,
            what=f"in {minutes:g} min: writes to objects other than Leases; workflow tasks",
            measured=f"{writes(requests)}; {await on.lab.workflow_tasks() - tasks}",
        ),
        Figure(
            row=row,
            what="memory of all processes together",
            measured=round(sum(memory.values())),
            unit="MiB",
            goal="≤ 250 MB",
            note=", ".join(f"{name} {size:.0f}" for name, size in memory.items()),
        ),
        Figure(
            row=row,
            what="CPU of each process, % of a core",
            measured=", ".join(f"{name} {percent:.1f}" for name, percent in used.items()),
        ),
    )
    return Found(figures=figures, breakdown={f"{row}: Kubernetes requests": dict(requests.most_common())})


def _cpu(pid: int) -> float:
    process = psutil.Process(pid)
    times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
    return sum(float(each.user + each.system) for each in times)


MEASUREMENTS = ((frozenset({PROCESSES, RUN}), idle),)
