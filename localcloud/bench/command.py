"""The command `perdure bench NAME`.

Exit code 1 means that a measurement failed; the other results are still printed. A missed goal is no error.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from engine import command_groups
from localcloud.building import BuildError
from localcloud.cli import Output, TemporalOption
from localcloud.deployment import DeploymentError
from localcloud.golang.toolchain import ToolchainError
from localcloud.kubernetes.programs import find_programs
from localcloud.progress import ConsoleNarrator
from localcloud.temporal import choice as choices
from localcloud.terminal import complain, end_as_by_ctrl_c, errors

if TYPE_CHECKING:
    from localcloud.bench.figures import Found, Measure


class Benchmark(StrEnum):
    ENGINE = "engine"
    ACCOUNTS = "accounts"
    CLAIMS = "claims"
    LOAD_BALANCERS = "loadbalancers"
    THREESCALE = "threescale"
    INSTANCES = "instances"
    OUTAGES = "outages"
    DAY = "day"
    IDLE = "idle"


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel=command_groups.INSTALL)(bench)


def bench(
    name: Annotated[
        Benchmark,
        typer.Argument(metavar="NAME", help=f"{', '.join(Benchmark)}."),
    ],
    only: Annotated[
        str,
        typer.Option(
            metavar="ROW,...",
            help="Rows of a benchmark (docs/benchmarks.md); by default all but `accounts` 8d, 8e, `claims` j, s, x, "
            "`instances` e, f, h, i, `outages` postgres, disk, clock, `threescale` l.",
        ),
    ] = "",
    idle_seconds: Annotated[
        float | None,
        typer.Option(
            min=10,
            help="How long idle objects are measured, in row e of `accounts` and of `claims`, in row c of "
            "`loadbalancers`, in row l of `threescale`, and in `idle`.",
            show_default="300, claims 60, threescale 3600",
        ),
    ] = None,
    idle_accounts: Annotated[int, typer.Option(min=20, help="Row i of `accounts`: number of idle Accounts.")] = 1000,
    quota_accounts: Annotated[int, typer.Option(min=1, help="Row 8d of `accounts`: the number of accounts.")] = 200,
    starved_claims: Annotated[int, typer.Option(min=1, help="Row s of `claims`: the number of claims at once.")] = 300,
    growth_claims: Annotated[
        int, typer.Option(min=10, help="Row x of `claims`: 100, 1,000, ... claims at once, up to this number.")
    ] = 1000,
    balancers: Annotated[
        int, typer.Option(min=1, help="Row c of `loadbalancers`: the number of load balancers with two machines each.")
    ] = 200,
    products: Annotated[
        int, typer.Option(min=2, help="Rows d, e and l of `threescale`: the number of settled products.")
    ] = 200,
    crowd: Annotated[int, typer.Option(min=10, help="Row j of `threescale`: the number of products.")] = 500,
    namespaces: Annotated[int, typer.Option(min=2, help="Row k of `threescale`: the number of namespaces.")] = 500,
    lifecycles: Annotated[int, typer.Option(min=20, help="`engine`: the number of idle lifecycles.")] = 200,
    event_count: Annotated[
        int, typer.Option("--events", min=40, help="Rows c and g of `instances`: the number of events.")
    ] = 5000,
    storm_instances: Annotated[
        int, typer.Option("--storm", min=10, help="Row e of `instances`: the number of reclaimed instances.")
    ] = 1000,
    outage_seconds: Annotated[
        float,
        typer.Option(
            min=5,
            help="How long each server is unavailable, in row f of `instances` and in `outages`. The outages of rows "
            "postgres, disk and clock last a tenth of this time.",
        ),
    ] = 600,
    fleet: Annotated[int, typer.Option(min=100, help="Row i of `instances`: the number of instances.")] = 200,
    storm_minutes: Annotated[float, typer.Option(min=1, help="Row i of `instances`: how long the storm lasts.")] = 60,
    minutes: Annotated[float, typer.Option(min=1, help="`day`: how long the day lasts.")] = 60,
    scale: Annotated[
        float, typer.Option(min=0.01, help="`day`: the share of the day's 1,270 objects that is created.")
    ] = 1,
    temporal: TemporalOption = None,
    state: Annotated[Path | None, typer.Option("--state", hidden=True)] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="`json` for programs.")] = Output.TABLE,
) -> None:
    """Measure Perdure on a fresh local deployment and print the figures beside their goals."""
    sizes = dict(locals())
    from localcloud.bench.figures import LoadMeter, Report, show

    end_as_by_ctrl_c()
    work = selected_work(name, only, sizes)
    try:
        choice = choices.chosen(temporal)
        with ConsoleNarrator(errors) as narrator:
            find_programs(narrator)
            choices.find(choice, narrator)
    except (BuildError, ToolchainError, choices.UnknownChoice) as error:
        complain(str(error))
        raise typer.Exit(1) from None
    os.environ[choices.VARIABLE] = choice  # each measurement brings up deployments of its own
    began = time.monotonic()
    meter = LoadMeter(began)
    found, complaints = _measured(work)
    for complaint in complaints:
        complain(complaint)
    report = Report(
        benchmark=name.value,
        seconds=round(time.monotonic() - began, 1),
        load=meter.read(time.monotonic()),
        temporal="development" if choice == choices.DEVELOPMENT else "production",
        figures=tuple(figure for each in found for figure in each.figures),
        breakdown={title: counts for each in found for title, counts in each.breakdown.items()},
    )
    if output is Output.JSON:
        typer.echo(report.model_dump_json(indent=2))
    else:
        show(report, Console())
    raise typer.Exit(1 if complaints else 0)


def _measured(work: Sequence[Measure]) -> tuple[list[Found], list[str]]:
    from engine.errors import ApiError
    from localcloud.cpu_share import NoQuota

    found: list[Found] = []
    complaints: list[str] = []
    for measure in work:
        try:
            found.append(asyncio.run(measure()))
        except (DeploymentError, ApiError, NoQuota, TimeoutError) as error:
            complaints.append(f"not measured: {error or 'it did not settle in time'}")
    return found, complaints


# Benchmarks whose module has another name.
_MODULES = {Benchmark.INSTANCES: "instances_consumer"}


def selected_work(name: Benchmark, only: str, sizes: Mapping[str, object]) -> list[Measure]:
    """The measurements of the rows in `only` (if empty, of all rows but `ON_REQUEST`). Unknown `sizes` are ignored."""
    module = import_module(f"localcloud.bench.{_MODULES.get(name, name.value)}")
    measurements = module.MEASUREMENTS
    rows = _rows(only, [covered for covered, _ in measurements], getattr(module, "ON_REQUEST", frozenset()))
    known = {field: sizes[field] for field in module.Sizes.model_fields if sizes.get(field) is not None}
    chosen = module.Sizes.model_validate(known)
    return [partial(measure, chosen, rows) for covered, measure in measurements if covered & rows]


def _rows(text: str, rows: Iterable[frozenset[str]], on_request: frozenset[str]) -> frozenset[str]:
    known = frozenset().union(*rows)
    named = filter(None, map(str.strip, text.split(",")))
    wanted = frozenset().union(*(({name} & known) or _parts(name, known) or {name} for name in named))
    if wanted - known:
        raise typer.BadParameter(f"--only knows {', '.join(sorted(known))}; not {', '.join(sorted(wanted - known))}")
    return wanted or known - on_request


def _parts(row: str, known: frozenset[str]) -> set[str]:
    return {each for each in known if each.rstrip("0123456789") == row}
