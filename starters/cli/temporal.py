"""`perdure temporal`: prepares Temporal, and rolls out versions of the workers.

`bootstrap` prepares the namespace. `versions` lists the workers' versions, `promote` makes a version current, and
`move` wakes the lifecycles on older versions. All of these are idempotent.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from engine import command_groups
from starters.cli.output import CommandError, Format, FormatOption, printed, say, table, warn
from starters.cli.replay import replay
from starters.cli.state_directory import StateOption

if TYPE_CHECKING:
    from temporalio.client import Client

    from engine.settings import Settings
    from engine.temporal_namespace import Bootstrapped
    from engine.worker_versions import Version

# Wakes per second: a pass costs the server and the clouds about as much as a change of the object.
GENTLE = 20.0
BETWEEN_LOOKS = 2.0

DeploymentOption = Annotated[
    str,
    typer.Option(
        "--deployment", metavar="NAME", help="The worker deployment; by default the one of PERDURE_INSTALLATION."
    ),
]
WaitOption = Annotated[float, typer.Option("--wait", metavar="SECONDS", min=0, help="How long to wait, in seconds.")]
RateOption = Annotated[float, typer.Option("--rate", min=0.1, help="Lifecycles woken per second.")]


def register(app: typer.Typer) -> None:
    temporal = typer.Typer(help="Prepare Temporal's namespace, and check and roll out versions of the workers.")
    for command in (bootstrap, versions, promote, move, replay):
        temporal.command()(command)
    app.add_typer(temporal, name="temporal", rich_help_panel=command_groups.INSTALL, no_args_is_help=True)


def bootstrap(
    retention_days: Annotated[
        float | None,
        typer.Option(
            "--retention-days",
            min=1,
            help="Days for which closed lifecycles stay readable. Default: 30 in a new namespace, else unchanged.",
        ),
    ] = None,
    output: FormatOption = Format.TEXT,
    state: StateOption = None,
) -> None:
    """Create the namespace (TEMPORAL_NAMESPACE), its retention and its search attributes, where they are missing."""
    from engine.temporal_namespace import NamespaceUnfit
    from engine.temporal_namespace import bootstrap as make_ready
    from starters.cli.session import perform_on_temporal

    async def work(_: Settings, client: Client) -> Bootstrapped:
        return await make_ready(client, timedelta(days=retention_days) if retention_days else None)

    try:
        done = perform_on_temporal(work)
    except NamespaceUnfit as unfit:
        raise CommandError(str(unfit)) from unfit
    if printed(done, output):
        return
    retention = f"closed lifecycles are kept {done.retention_days:g} days"
    retention += f" (before: {done.retention_before_days:g})" if done.retention_before_days is not None else ""
    say(f"namespace {done.namespace}: {'created' if done.created else 'existed already'}, {retention}")
    say(f"search attributes added: {', '.join(done.attributes_added) or 'none, because none was missing'}")


def versions(deployment: DeploymentOption = "", output: FormatOption = Format.TEXT, state: StateOption = None) -> None:
    """Show the versions of the workers: which is current, which is still needed, which is drained."""
    from engine import worker_versions
    from starters.cli.session import perform_on_temporal

    async def work(settings: Settings, client: Client) -> list[Version]:
        return await worker_versions.versions(client, deployment or settings.worker_deployment)

    found = perform_on_temporal(work)
    if printed(found, output):
        return
    if found:
        rows = [(each.build_id, each.status.value, str(each.open)) for each in found]
        table(("version", "status", "open lifecycles"), rows)
    else:
        say("no worker with a build id has ever polled")


def promote(
    build_id: Annotated[str, typer.Option("--build-id", help="The version that becomes current.")],
    deployment: DeploymentOption = "",
    areas: Annotated[
        str,
        typer.Option(
            "--areas", metavar="AREA,...", help="Wait for workers of these areas; by default all served areas."
        ),
    ] = "",
    wait: WaitOption = 600.0,
    rate: RateOption = GENTLE,
    leave: Annotated[
        bool, typer.Option("--leave", help="Wake no lifecycle: each moves to the version at its next wake.")
    ] = False,
    state: StateOption = None,
) -> None:
    """Wait until a version's workers poll all task queues, make it current, and move open lifecycles to it."""
    from engine import worker_versions
    from starters.cli.session import perform_on_temporal

    async def work(settings: Settings, client: Client) -> tuple[str, int]:
        name = deployment or settings.worker_deployment
        await _until_polled(client, name, build_id, queues(settings, areas), wait)
        before = await worker_versions.make_current(client, name, build_id)
        return before, 0 if leave else await wake_older(client, name, await older_versions(client, name), rate)

    before, woken = perform_on_temporal(work)
    was = f", before: {before or 'workers without a version'}" if before != build_id else " already"
    say(f"{build_id} is current{was}")
    if woken:
        say(f"{woken} lifecycles on older versions were woken; `perdure temporal move` waits until all have moved")


def move(
    deployment: DeploymentOption = "", wait: WaitOption = 600.0, rate: RateOption = GENTLE, state: StateOption = None
) -> None:
    """Wake lifecycles on older versions until none is left; then the old workers can be stopped."""
    from starters.cli.session import perform_on_temporal

    async def work(settings: Settings, client: Client) -> Sequence[Version]:
        return await moved(client, deployment or settings.worker_deployment, wait, rate)

    left = perform_on_temporal(work)
    if left:
        listed = ", ".join(f"{each.open} on {each.build_id}" for each in left)
        raise CommandError(
            f"after {wait:g} s some lifecycles are still on older versions: {listed}",
            "each of them moves when its running actions have ended. Keep the old workers, and run this command again",
        )
    say("no lifecycle is on an older version: the old workers can be stopped")


def queues(settings: Settings, areas: str) -> set[tuple[str, str]]:
    from workers.main import served_areas
    from workers.task_queues import queues_of

    named = tuple(name.strip() for name in areas.split(",") if name.strip())
    return queues_of(named or served_areas(settings), settings.cluster)


async def _until_polled(
    client: Client, deployment: str, build_id: str, wanted: set[tuple[str, str]], wait: float
) -> None:
    """Wait until workers poll, because a current version without workers would block new workflows."""
    from engine import worker_versions

    deadline = time.monotonic() + wait
    while missing := wanted - await worker_versions.polled_queues(client, deployment, build_id):
        if time.monotonic() > deadline:
            listed = ", ".join(sorted(f"{name} ({kind})" for name, kind in missing))
            raise CommandError(
                f"no worker of version {build_id} of {deployment} polls: {listed}; the version was not made current",
                "are its workers running (perdure worker --build-id), with all served areas?",
            )
        await asyncio.sleep(BETWEEN_LOOKS)


async def older_versions(client: Client, deployment: str) -> list[Version]:
    from engine import worker_versions

    found = await worker_versions.versions(client, deployment)
    return [each for each in found if each.status is not worker_versions.VersionStatus.CURRENT and each.open]


async def wake_older(client: Client, deployment: str, older: Iterable[Version], rate: float) -> int:
    from engine import worker_versions

    return await worker_versions.wake_pinned(client, deployment, [each.build_id for each in older], per_second=rate)


async def moved(client: Client, deployment: str, wait: float, rate: float) -> Sequence[Version]:
    """Wake the lifecycles on older versions repeatedly, because running activities delay a move.

    Returns the older versions that still have open lifecycles after `wait` seconds. Raises RPCError if the last attempt
    to list or wake them failed.
    """
    from temporalio.service import RPCError

    deadline, refused = time.monotonic() + wait, False
    while True:
        late = time.monotonic() > deadline
        try:
            older = await older_versions(client, deployment)
            if not older or (late and not refused):
                return older
            await wake_older(client, deployment, older, rate)
            refused = False
        except RPCError as error:  # lifecycles that were not woken are listed again
            if late:
                raise
            refused = True
            warn(f"{error.message}; trying again")
        await asyncio.sleep(BETWEEN_LOOKS)
