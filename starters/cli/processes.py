"""`perdure worker`, `perdure watch`, and `perdure run`, which is both in one process for small installs; `version`.

A process ends by itself after SIGTERM or SIGINT, once it has drained. In `run` either ending ends the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Annotated

import typer

from domain.identity import all_kinds
from starters.cli.environment import StateOption, UnusedStateOption
from starters.cli.output import say

PANEL = "Processes"

OnlyOption = Annotated[
    str, typer.Option("--only", metavar="AREA,...", help="Run the lifecycles of these areas only; without it of all.")
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (worker, watch, run):
        app.command(rich_help_panel=PANEL)(command)
    app.command()(version)


def worker(only: OnlyOption = "", state: StateOption = None) -> None:
    """Execute lifecycles and their activities."""
    areas = _areas(only)
    from engine.settings import settings
    from engine.telemetry import configure_logging
    from workers.main import run_worker

    configure_logging(settings(), "worker")
    asyncio.run(run_worker(settings(), only=areas))


def watch(state: StateOption = None) -> None:
    """Watch the cluster, and wake the lifecycle of each object that changes."""
    from engine.settings import settings
    from engine.telemetry import configure_logging
    from starters.watch.main import run_watcher

    configure_logging(settings(), "watch")
    asyncio.run(run_watcher(settings()))


def run(only: OnlyOption = "", state: StateOption = None) -> None:
    """Be worker and watcher in one process, for small installs."""
    areas = _areas(only)
    from engine.settings import settings
    from engine.telemetry import configure_logging
    from starters.watch.main import run_watcher
    from workers.main import run_worker

    found = settings()
    configure_logging(found, "run")
    asyncio.run(_together(run_worker(found, only=areas), run_watcher(found)))


def version(state: UnusedStateOption = None) -> None:
    """Print the version."""
    from engine.telemetry import version as installed

    say(f"perdure {installed()}")


async def _together(*processes: Coroutine[object, object, None]) -> None:
    """Run them until the first ends, then end the others; a failure of any is the failure of all."""
    tasks = [asyncio.create_task(process) for process in processes]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    for error in ended:
        if isinstance(error, BaseException) and not isinstance(error, asyncio.CancelledError):
            raise error


def _areas(only: str) -> Sequence[str]:
    """The areas named, all checked; none named means all."""
    known = sorted({kind.area for kind in all_kinds().values()})
    areas = tuple(name.strip() for name in only.split(",") if name.strip())
    for area in areas:
        if area not in known:
            raise typer.BadParameter(f"no area is called {area!r}; there are: {', '.join(known)}", param_hint="--only")
    return areas
