from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from domain.model import Model


class Load(Model):
    """The machine's load. `pressure` is the share of time in which some task waited for a CPU. `stolen` is the share of
    used CPU time that a virtual machine's host gave to others.
    """

    cores: int
    load_average: float
    """The average of the last minute, read at the end."""
    pressure: float | None
    """From 0 to 1, between the start and the end; None if the kernel does not report it."""
    stolen: float
    """From 0 to 1, between the start and the end."""


class Figure(Model):
    row: str
    """The row in docs/benchmarks.md, for example `d2`."""
    what: str
    measured: float | str
    unit: str = ""
    goal: str = ""
    note: str = ""


class Found(Model):
    figures: tuple[Figure, ...]
    breakdown: dict[str, dict[str, int]] = {}


# A measurement on one deployment.
Measure = Callable[[], Coroutine[None, None, Found]]


class Report(Model):
    benchmark: str
    seconds: float
    load: Load
    temporal: str
    """The Temporal server on which the benchmark ran: `development`, or `production` for one on PostgreSQL."""
    figures: tuple[Figure, ...]
    breakdown: dict[str, dict[str, int]] = {}
    """What the counts consist of, by title: calls by action, requests by verb and resource, events by type."""


class LoadMeter:
    def __init__(self, seconds_now: float) -> None:
        self._began = seconds_now
        self._waited = _waited_seconds()
        self._cpu = _cpu_seconds()

    def read(self, seconds_now: float) -> Load:
        before, after = self._waited, _waited_seconds()
        elapsed = seconds_now - self._began
        known = before is not None and after is not None and elapsed > 0
        return Load(
            cores=os.cpu_count() or 1,
            load_average=round(os.getloadavg()[0], 2),
            pressure=round((after - before) / elapsed, 2)
            if known and after is not None and before is not None
            else None,
            stolen=_stolen(self._cpu, _cpu_seconds()),
        )


def _waited_seconds() -> float | None:
    try:
        some = Path("/proc/pressure/cpu").read_text().splitlines()[0]
    except OSError:
        return None
    return int(some.rpartition("total=")[2]) / 1e6


def _cpu_seconds() -> dict[str, float]:
    return {name: seconds for name, seconds in psutil.cpu_times()._asdict().items() if name not in ("idle", "iowait")}


def _stolen(before: Mapping[str, float], after: Mapping[str, float]) -> float:
    spent = {name: after[name] - before[name] for name in after}
    return round(spent.get("steal", 0.0) / max(sum(spent.values()), 0.01), 2)


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def show(report: Report, console: Console) -> None:
    load = report.load
    pressure = f", a task waited for a CPU {load.pressure:.0%} of the time" if load.pressure is not None else ""
    console.print(
        f"bench {report.benchmark} on Temporal's {report.temporal} server: "
        f"{report.seconds:.0f} s on {load.cores} cores, load {load.load_average}{pressure}, "
        f"the host took {load.stolen:.0%} of the CPU time",
        highlight=False,
        soft_wrap=True,
    )
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in ("ROW", "FIGURE", "MEASURED", "GOAL", "NOTE"):
        table.add_column(column, overflow="fold")
    for figure in report.figures:
        shown = figure.measured if isinstance(figure.measured, str) else f"{figure.measured:g} {figure.unit}".strip()
        table.add_row(figure.row, figure.what, shown, figure.goal, figure.note)
    console.print(table)
