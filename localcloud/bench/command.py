"""The command `perdure bench NAME`.

Each measurement brings up a fresh deployment in a temporary directory and takes it down again; `--state`, which every
command has, changes nothing here. Exit code 1 means that
something could not be measured; a missed goal is no error. What was measured before is told all the same.
"""

from __future__ import annotations

import asyncio
import time
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from localcloud.cli import Output
from localcloud.deployment import DeploymentError
from localcloud.kubernetes.build import BuildError
from localcloud.kubernetes.programs import find_programs
from localcloud.kubernetes.toolchain import ToolchainError
from localcloud.progress import ConsoleNarrator
from localcloud.terminal import complain, end_as_by_ctrl_c, errors

if TYPE_CHECKING:
    from localcloud.bench.accounts import Found


class Benchmark(StrEnum):
    """The benchmarks."""

    ENGINE = "engine"
    ACCOUNTS = "accounts"


def register(app: typer.Typer) -> None:
    """Add the command to a CLI."""
    app.command()(bench)


def bench(
    name: Annotated[Benchmark, typer.Argument(metavar="NAME", help="engine, accounts.")],
    only: Annotated[str, typer.Option(metavar="ROW,...", help="Rows of `accounts`: d, d2, e, f, i.")] = "",
    idle_seconds: Annotated[float, typer.Option(min=10, help="Row e: how long the idle pool is watched.")] = 300.0,
    idle_accounts: Annotated[int, typer.Option(min=20, help="Row i: how many idle Accounts there are.")] = 1000,
    lifecycles: Annotated[int, typer.Option(min=20, help="`engine`: how many idle lifecycles are woken.")] = 200,
    state: Annotated[Path | None, typer.Option("--state", hidden=True)] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="`json` for programs.")] = Output.TABLE,
) -> None:
    """Measure the product on a fresh local deployment; goals are shown beside the figures, and never asserted."""
    from localcloud.bench.figures import LoadMeter, Report, show

    end_as_by_ctrl_c()
    rows = _rows(only)
    try:
        with ConsoleNarrator(errors) as narrator:
            find_programs(narrator)
    except (BuildError, ToolchainError) as error:
        complain(str(error))
        raise typer.Exit(1) from None
    began = time.monotonic()
    meter = LoadMeter(began)
    found, complaints = _measure(name, rows, idle_seconds, idle_accounts, lifecycles)
    for complaint in complaints:
        complain(complaint)
    report = Report(
        benchmark=name.value,
        seconds=round(time.monotonic() - began, 1),
        load=meter.read(time.monotonic()),
        figures=tuple(figure for each in found for figure in each.figures),
        breakdown={title: counts for each in found for title, counts in each.breakdown.items()},
    )
    if output is Output.JSON:
        typer.echo(report.model_dump_json(indent=2))
    else:
        show(report, Console())
    raise typer.Exit(1 if complaints else 0)


def _measure(
    name: Benchmark, rows: frozenset[str], idle_seconds: float, idle_accounts: int, lifecycles: int
) -> tuple[list[Found], list[str]]:
    """What could be measured, and why the rest could not."""
    from engine.errors import ApiError
    from localcloud.bench import accounts, engine

    sizes = accounts.Sizes(idle_seconds=idle_seconds, idle_accounts=idle_accounts)
    work = [partial(measure, sizes, rows) for covered, measure in accounts.MEASUREMENTS if covered & rows]
    found: list[Found] = []
    complaints: list[str] = []
    for measure in [partial(engine.passes, lifecycles)] if name is Benchmark.ENGINE else work:
        try:
            found.append(asyncio.run(measure()))
        except (DeploymentError, ApiError, TimeoutError) as error:
            complaints.append(f"not measured: {error or 'it did not settle in time'}")
    return found, complaints


def _rows(text: str) -> frozenset[str]:
    from localcloud.bench.accounts import MEASUREMENTS

    known = frozenset().union(*(covered for covered, _ in MEASUREMENTS))
    wanted = frozenset(filter(None, map(str.strip, text.split(","))))
    if wanted - known:
        raise typer.BadParameter(f"--only knows {', '.join(sorted(known))}; not {', '.join(sorted(wanted - known))}")
    return wanted or known
