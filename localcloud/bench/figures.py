"""What a benchmark tells: figures with their goals, and how loaded the machine was meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from domain.model import Model


class Load(Model):
    """How busy the machine was.

    Pressure is the share of time in which somebody waited for a CPU; stolen is the share of the CPU time in use that
    the host of a virtual machine gave to others: times grow with it, and no program on the machine can tell why.
    """

    cores: int
    load_average: float
    """Of the last minute, at the end."""
    pressure: float | None
    """Between start and end, 0 to 1; None where the kernel does not tell."""
    stolen: float
    """Between start and end, 0 to 1."""


class Figure(Model):
    """One measured number beside its goal."""

    row: str
    """The row of the issue's table, for example `d2`."""
    what: str
    measured: float | str
    unit: str = ""
    goal: str = ""
    note: str = ""


class Found(Model):
    """What measuring one row, or some that belong together, has found."""

    figures: tuple[Figure, ...]
    breakdown: dict[str, dict[str, int]] = {}


# One deployment's work.
Measure = Callable[[], Coroutine[None, None, Found]]


class Report(Model):
    """One benchmark's figures."""

    benchmark: str
    seconds: float
    load: Load
    figures: tuple[Figure, ...]
    breakdown: dict[str, dict[str, int]] = {}
    """What the counts consist of, by figure: calls by action, requests by verb and resource, events by type."""


class LoadMeter:
    """Measures the load between its start and `read`."""

    def __init__(self, seconds_now: float) -> None:
        self._began = seconds_now
        self._waited = _waited_seconds()
        self._cpu = _cpu_seconds()

    def read(self, seconds_now: float) -> Load:
        """The load since the start."""
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
    """How long in all some task has waited for a CPU: `total` of /proc/pressure/cpu, in microseconds."""
    try:
        some = Path("/proc/pressure/cpu").read_text().splitlines()[0]
    except OSError:
        return None
    return int(some.rpartition("total=")[2]) / 1e6


def _cpu_seconds() -> dict[str, float]:
    """The machine's CPU time since its start that was not idle, by what it went into."""
    return {name: seconds for name, seconds in psutil.cpu_times()._asdict().items() if name not in ("idle", "iowait")}


def _stolen(before: Mapping[str, float], after: Mapping[str, float]) -> float:
    """The share of `steal`; 0 where the system does not tell."""
    spent = {name: after[name] - before[name] for name in after}
    return round(spent.get("steal", 0.0) / max(sum(spent.values()), 0.01), 2)


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which that share of the values lies, the next higher measured one."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def show(report: Report, console: Console) -> None:
    """Print a report for people."""
    load = report.load
    pressure = f", somebody waited for a CPU {load.pressure:.0%} of the time" if load.pressure is not None else ""
    console.print(
        f"bench {report.benchmark}: {report.seconds:.0f} s on {load.cores} cores, load {load.load_average}{pressure}, "
        f"the host took {load.stolen:.0%} of what it used",
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
