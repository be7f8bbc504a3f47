"""`perdure run` and its subcommands `worker`, `watch` and `codec`, and `perdure version`.

Without a subcommand, `perdure run` is worker, watcher and event consumer; if one ends, the other two end as well. After
SIGTERM or SIGINT, a process drains its running work and ends.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from domain.identity import all_areas
from domain.model import Model
from engine import command_groups
from starters.cli.output import CommandError, Format, FormatOption, printed, say
from starters.cli.state_directory import StateOption, UnusedStateOption

if TYPE_CHECKING:
    from engine.settings import Settings


Process = Callable[["Settings"], Coroutine[object, object, None]]

log = logging.getLogger(__name__)

OnlyOption = Annotated[str, typer.Option("--only", metavar="AREA,...", help="Serve only these areas; by default all.")]
BuildOption = Annotated[
    str, typer.Option("--build-id", help="The version of this worker; by default PERDURE_WORKER_BUILD_ID.")
]
PortOption = Annotated[
    int, typer.Option("--port", min=1, max=65535, help="The port to listen on, at PERDURE_LISTEN_HOST.")
]


class Installed(Model):
    version: str


def register(app: typer.Typer) -> None:
    processes = typer.Typer(invoke_without_command=True)
    processes.callback()(run)
    for command in (worker, watch, codec):
        processes.command()(command)
    app.add_typer(processes, name="run", rich_help_panel=command_groups.PROCESSES)
    # The manifests of installations run these commands.
    app.command(hidden=True)(worker)
    app.command(hidden=True)(watch)
    app.command(hidden=True)(version)


def worker(only: OnlyOption = "", build_id: BuildOption = "", state: StateOption = None) -> None:
    """Run workflows and activities."""
    areas = named_areas(only)
    from workers.main import run_worker

    execute_with_places("worker", lambda settings: run_worker(_of_build(settings, build_id), only=areas))


def watch(state: StateOption = None) -> None:
    """Watch the cluster and wake the lifecycle of each object that changes."""
    execute_with_places("watch", _watching)


def run(context: typer.Context, only: OnlyOption = "", state: StateOption = None) -> None:
    """Run worker, watcher and event consumer in one process; a subcommand runs one part alone.

    Example: perdure run worker --only accounts,claims
    """
    if context.invoked_subcommand is not None:
        return
    areas = named_areas(only)
    execute_with_places("run", lambda settings: run_together(settings, areas))


def codec(port: PortOption = 8090, state: UnusedStateOption = None) -> None:
    """Decode encrypted payloads for Temporal's web UI and command line (`--codec-endpoint`)."""
    from engine.encryption import KeysUnreadable
    from engine.settings import read_settings
    from starters.codec_server.main import Unguarded, codec_application, run_codec_server

    try:
        codec_application(read_settings())
    except (Unguarded, KeysUnreadable) as error:
        raise CommandError(str(error), "docs/temporal.md says how to configure keys and tokens") from error
    execute("codec", lambda settings: run_codec_server(settings, port))


def version(output: FormatOption = Format.TEXT, state: UnusedStateOption = None) -> None:
    """Print the version."""
    from engine.telemetry import version as installed

    found = Installed(version=installed())
    if not printed(found, output):
        say(f"perdure {found.version}")


def execute(name: str, process: Process) -> None:
    from kubernetes.aio.config import ConfigException

    from engine.encryption import KeysUnreadable
    from engine.garbage_collection import collect_seldom
    from engine.hard_exit import exit_now
    from engine.health import AddressUnusable
    from engine.settings import read_settings, settings
    from engine.telemetry import configure_logging
    from engine.tracing import end_tracing

    collect_seldom()
    configure_logging(read_settings(), name)
    found = settings()  # logs warnings about variables
    _reject_contradictions(found)
    code = 1
    try:
        asyncio.run(process(found))
        code = 0
    except KeysUnreadable as wrong:
        log.error("%s cannot start: PERDURE_TEMPORAL_KEYS: %s", name, wrong)
    except AddressUnusable as wrong:
        log.error("%s cannot start: %s", name, wrong)
    except ConfigException as wrong:
        log.error("%s cannot start: KUBECONFIG names no cluster, and this is not a Pod: %s", name, wrong)
    except Exception:
        log.exception("%s has failed", name)
    end_tracing()
    exit_now(code)


def execute_with_places(name: str, process: Process) -> None:
    """Execute a process. An entry `clusters` in its PERDURE_INSTANCES_QUEUES is replaced by the accounts and regions of
    the clusters of Cluster API's AWS provider. When these change, the process ends; its supervisor must start it again.
    """
    from domain.instances.queues_from_clusters import cluster_entries

    def end() -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    def run(settings: Settings) -> Coroutine[object, object, None]:
        if not cluster_entries(settings.instances_queues)[1]:
            return process(settings)
        # This import loads boto3, which the watcher does not need otherwise.
        from activities.instances.queues_from_clusters import run_with_cluster_places

        return run_with_cluster_places(settings, name, process, end)

    execute(name, run)


async def _watching(settings: Settings) -> None:
    # This import reads the settings, so logging must be configured first.
    from starters.watch.main import run_watcher

    await run_watcher(settings)


def _reject_contradictions(found: Settings) -> None:
    from domain.instances.interruption_policy import ReactionPolicy
    from domain.instances.queues_from_clusters import check_entries

    if unknown := set(found.areas) - set(all_areas()):
        raise CommandError(
            f"PERDURE_AREAS names {', '.join(sorted(unknown))}: there is no such area",
            f"the areas are: {', '.join(all_areas())}",
        )
    for name, read in (("instances_queues", check_entries), ("instances_reactions", ReactionPolicy.of)):
        try:
            read(getattr(found, name))
        except ValueError as error:
            raise CommandError(f"PERDURE_{name.upper()}: {error}") from error


def _of_build(settings: Settings, build_id: str) -> Settings:
    return settings.model_copy(update={"worker_build_id": build_id}) if build_id else settings


async def run_together(settings: Settings, areas: Sequence[str]) -> None:
    from kubernetes.aio.config import ConfigException

    from engine.encryption import KeysUnreadable
    from engine.health import AddressUnusable, Health, serve
    from engine.process import stopped_by_signals, ungrouped
    from starters.events.main import run_events
    from starters.watch.main import run_watcher
    from workers.main import INSTANCES, run_worker, served_areas

    settings = settings.model_copy(update={"areas": tuple(areas)}) if areas else settings
    health = Health()

    async def until_stopped(part: Awaitable[None], stop: asyncio.Event) -> None:
        try:
            await part
        finally:
            stop.set()

    error: BaseException | None = None
    try:
        async with stopped_by_signals(None) as stop, serve(health, settings), asyncio.TaskGroup() as parts:
            parts.create_task(until_stopped(run_worker(settings, only=areas, stop=stop, health=health), stop))
            parts.create_task(until_stopped(run_watcher(settings, stop=stop, health=health), stop))
            if INSTANCES in served_areas(settings):
                parts.create_task(until_stopped(run_events(settings, stop=stop, health=health), stop))
    except* (AddressUnusable, KeysUnreadable, ConfigException) as group:
        error = ungrouped(group)
    if error is not None:
        raise error


def named_areas(only: str) -> Sequence[str]:
    from workers.registry import areas as executable

    known = executable()
    areas = tuple(dict.fromkeys(name.strip() for name in only.split(",") if name.strip()))
    for area in areas:
        if area not in known:
            raise typer.BadParameter(
                f"no area is called {area!r}; the areas are: {', '.join(known)}", param_hint="--only"
            )
    return areas
