"""Progress output of benchmarks on standard error, and meters of their cost."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import psutil

from localcloud.bench.figures import Figure, Found
from localcloud.bench.laboratory import Laboratory
from localcloud.services import WORKER
from localcloud.terminal import errors

_BEGAN = time.monotonic()
_IDLE_SECONDS = 5.0


def step(line: str) -> None:
    told_line = f"{time.monotonic() - _BEGAN:5.0f} s  {line}"
    errors.print(told_line, markup=False, highlight=False, soft_wrap=True)


def told(found: Found) -> Found:
    for figure in found.figures:
        step(line_of(figure))
    return found


def line_of(figure: Figure) -> str:
    shown = figure.measured if isinstance(figure.measured, str) else f"{figure.measured:g} {figure.unit}".strip()
    goal = f" ({figure.goal})" if figure.goal else ""
    note = f"; {figure.note}" if figure.note else ""
    return f"{figure.row}: {figure.what}: {shown}{goal}{note}"


def together(found: Iterable[Found]) -> Found:
    every = tuple(found)
    return Found(
        figures=tuple(figure for each in every for figure in each.figures),
        breakdown={title: counts for each in every for title, counts in each.breakdown.items()},
    )


class Cost(NamedTuple):
    requests: Counter[str]
    cpu: dict[str, float]
    """Seconds by service; `evaluators` are the worker's children."""

    def cpu_of(self, count: int) -> str:
        return ", ".join(f"{service} {1000 * seconds / count:.1f}" for service, seconds in self.cpu.items())


class Meter:
    def __init__(self, lab: Laboratory) -> None:
        self._lab = lab
        self._mark = lab.audit_mark()
        self._cpu = _cpu(lab)

    def read(self) -> Cost:
        now = _cpu(self._lab)
        cpu = {service: now[service] - before for service, before in self._cpu.items()}
        return Cost(self._lab.requests_since(self._mark), cpu)


async def idle_cpu(lab: Laboratory) -> dict[str, float]:
    await lab.quiet()
    meter = Meter(lab)
    await asyncio.sleep(_IDLE_SECONDS)
    return {service: seconds / _IDLE_SECONDS for service, seconds in meter.read().cpu.items()}


def beyond_idle(cpu: Mapping[str, float], idle: Mapping[str, float], seconds: float) -> dict[str, float]:
    return {service: max(0.0, used - idle[service] * seconds) for service, used in cpu.items()}


def each_of(cpu: Mapping[str, float], count: int) -> str:
    parts = ", ".join(f"{service} {1000 * seconds / count:.1f}" for service, seconds in cpu.items())
    return f"{1000 * sum(cpu.values()) / count:.0f} ms: {parts}"


def _cpu(lab: Laboratory) -> dict[str, float]:
    pid = lab.deployment.service(WORKER).pid
    children = psutil.Process(pid).children(recursive=True) if pid is not None else []
    times = [child.cpu_times() for child in children]
    return {**lab.cpu(), "evaluators": sum(float(each.user + each.system) for each in times)}
