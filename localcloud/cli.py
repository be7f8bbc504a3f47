"""`perdure up`, `down` and `status`."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
import yaml
from rich.markup import escape
from rich.table import Table

from engine import command_groups
from localcloud.building import BuildError
from localcloud.deployment import Deployment, DeploymentError, DeploymentStatus
from localcloud.golang.toolchain import ToolchainError
from localcloud.progress import ConsoleNarrator
from localcloud.services import ALL, TEMPORAL, TEMPORAL_NEEDS, THREESCALE
from localcloud.state import Cloud, Running, ServiceState, StateDirectoryError
from localcloud.temporal import choice as choices
from localcloud.terminal import complain, console, end_as_by_ctrl_c, say

StateOption = Annotated[
    Path | None,
    typer.Option(
        "--state", metavar="DIR", help="State directory. Default: PERDURE_STATE, else one in the user's state folder."
    ),
]

TemporalOption = Annotated[
    str | None,
    typer.Option(
        "--temporal",
        metavar="SERVER",
        help="`postgres`: a production Temporal on PostgreSQL, with mutual TLS and encryption; `postgres=URL`: on a "
        "database of yours. Default: PERDURE_LOCAL_TEMPORAL, else `development`.",
        show_default=False,
    ),
]

_SETBACKS = (ServiceState.RESTARTING, ServiceState.UNHEALTHY)


class Output(StrEnum):
    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def register(app: typer.Typer) -> None:
    for command in (up, status, down):
        app.command(rich_help_panel=command_groups.TRY)(command)


def up(
    with_: Annotated[
        str, typer.Option("--with", metavar="CLOUD,...", help="The clouds to start: `aws`, `openstack`, `threescale`.")
    ] = "aws",
    state: StateOption = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Return when everything is ready.")] = False,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Use the cluster of this file's current context and start none.",
        ),
    ] = None,
    temporal: TemporalOption = None,
    without: Annotated[
        str,
        typer.Option(metavar="SERVICE,...", help=f"Services not to start; you run them yourself: {', '.join(ALL)}."),
    ] = "",
) -> None:
    """Start Kubernetes, Temporal, an emulated AWS and Perdure on this computer, until Ctrl-C.

    Example: perdure up --detach --with aws,openstack
    """
    deployment = Deployment(state)
    end_as_by_ctrl_c()
    ready = False
    try:
        with ConsoleNarrator(console) as narrator:
            began = time.monotonic()
            started = deployment.start(
                clouds=_clouds(with_),
                kubeconfig=kubeconfig,
                only=_services_without(without, temporal),
                temporal=temporal,
                tether=not detach,
                narrator=narrator,
            )
            if not started:
                narrator.say(f"{deployment.state.root} is already up.")
            try:
                running = deployment.wait_ready(_StateReporter(narrator).report, narrator)
            except DeploymentError as error:
                _stay_after_failure(deployment, narrator, error, attend=started and not detach)
                raise typer.Exit(1) from None
            ready = True
            narrator.say(_summary(deployment, running, time.monotonic() - began if started else None))
            if not detach:
                narrator.say("Ctrl-C stops it." if started else "Ctrl-C leaves it running; `perdure down` stops it.")
                _attend(deployment, narrator, running)
    except KeyboardInterrupt:
        _leave(deployment)
        if not ready:
            raise typer.Exit(130) from None
    except (DeploymentError, BuildError, ToolchainError, StateDirectoryError, OSError) as error:
        complain(str(error))
        raise typer.Exit(1) from None


def down(
    state: StateOption = None,
    wipe: Annotated[bool, typer.Option("--wipe", help="Delete the data as well.")] = False,
) -> None:
    """Stop the local deployment and keep its data, unless --wipe is given."""
    deployment = Deployment(state)
    root = deployment.state.root
    try:
        ours = deployment.state.is_ours()
        stopped = deployment.down(wipe=wipe)
    except (DeploymentError, StateDirectoryError, OSError) as error:
        complain(str(error))
        raise typer.Exit(1) from None
    message = f"Stopped {root}." if stopped else f"Nothing runs in {root}."
    say(message + (" Its data was deleted." if wipe and ours else ""))


def status(
    state: StateOption = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="`json` or `yaml` for programs.")] = Output.TABLE,
) -> None:
    """Show each service of the local deployment with its address and health. Exits with 1 unless all are healthy."""
    try:
        report = Deployment(state).status()
    except OSError as error:
        complain(str(error))
        raise typer.Exit(1) from None
    if output is Output.JSON:
        typer.echo(report.model_dump_json(indent=2))
    elif output is Output.YAML:
        typer.echo(yaml.safe_dump(report.model_dump(mode="json"), sort_keys=False, allow_unicode=True), nl=False)
    elif not report.running:
        say(f"Nothing runs in {report.state_directory}.")
    else:
        console.print(status_table(report))
    raise typer.Exit(0 if report.healthy else 1)


def _stay_after_failure(
    deployment: Deployment, narrator: ConsoleNarrator, error: DeploymentError, *, attend: bool
) -> None:
    complain(str(error))
    running = deployment.state.running()
    if not deployment.is_up() or running is None:
        return
    if attend:
        narrator.say("Running services keep running, and the others are started again. Ctrl-C stops everything.")
        _attend(deployment, narrator, running)
    else:
        narrator.say(
            "Running services keep running, and the others are started again. `perdure up` waits until all are ready, "
            "`perdure status` shows their states, `perdure down` stops everything."
        )


def _attend(deployment: Deployment, narrator: ConsoleNarrator, running: Running) -> None:
    reporter = _StateReporter(narrator, running)
    supervisor = running.supervisor
    while supervisor.is_alive():
        current = deployment.state.running()
        if current is not None:
            reporter.report(current)
        time.sleep(0.5)
    narrator.say("The deployment was stopped.")


def _leave(deployment: Deployment) -> None:
    if not deployment.owns_supervisor():
        say("Left running." if deployment.state.is_locked() else "Nothing was started.")
        return
    say("Stopping ...")
    began = time.monotonic()
    try:
        deployment.down()
    except DeploymentError as error:
        complain(str(error))
        raise typer.Exit(1) from None
    say(f"Stopped in {time.monotonic() - began:.1f} s; `perdure up` resumes where it was.")


class _StateReporter:
    def __init__(self, narrator: ConsoleNarrator, last: Running | None = None) -> None:
        self._narrator = narrator
        self._noted = last is not None
        self._began = time.monotonic()
        self._last = {row.name: (row.state, row.restarts) for row in last.services} if last else {}

    def report(self, running: Running) -> None:
        if not self._noted:
            self._noted = True
            for note in running.notes:
                self._narrator.say(f"Note: {note}")
        for row in running.services:
            before = self._last.get(row.name)
            self._last[row.name] = (row.state, row.restarts)
            if before == (row.state, row.restarts):
                continue
            if row.settled:
                self._narrator.say(f"  {time.monotonic() - self._began:5.1f} s  {row.name} {row.state}")
            elif row.state in _SETBACKS:
                self._narrator.say(f"  {time.monotonic() - self._began:5.1f} s  {row.name} {row.message}; {row.state}")


def _summary(deployment: Deployment, running: Running, seconds: float | None) -> str:
    temporal = running.service(TEMPORAL)
    lines = [f"Everything is ready after {seconds:.1f} s." if seconds is not None else "Everything is ready."]
    if temporal is not None:
        lines.append(
            f"  Lifecycles in Temporal's web UI: {temporal.url}"
            if temporal.url
            else "  Temporal's web UI does not run: it was left out, or there is no temporal-ui-server."
        )
    if running.service(THREESCALE) is not None:
        lines += _threescale_lines(deployment.env())
    lines.append(f"  kubectl and perdure in this shell: {deployment.state.to_enter}")
    return "\n".join(lines)


def _threescale_lines(environment: dict[str, str]) -> list[str]:
    shown = (("tenant", "ADMIN_URL", "TOKEN"), ("master", "MASTER_URL", "MASTER_TOKEN"))
    return [
        f"  3scale's {whose}: {environment[f'THREESCALE_{url}']} with the token {environment[f'THREESCALE_{token}']}"
        for whose, url, token in shown
    ]


def status_table(report: DeploymentStatus) -> Table:
    table = Table(title=str(report.state_directory), title_justify="left", box=None, pad_edge=False)
    for column in ("SERVICE", "STATE", "PID", "ADDRESS", "SINCE", "RESTARTS", "MESSAGE"):
        table.add_column(column, overflow="fold")
    for row in report.services:
        shown = row.state if row.healthy or row.state is not ServiceState.READY else ServiceState.UNHEALTHY
        table.add_row(
            row.name,
            f"[{'green' if row.healthy else 'red'}]{shown}[/]",
            str(row.pid or ""),
            row.url or (f"127.0.0.1:{row.port}" if row.port else ""),
            f"{row.since:%H:%M:%S}" if row.since else "",
            str(row.restarts or ""),
            escape(row.message),
        )
    return table


def _clouds(text: str) -> tuple[Cloud, ...]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in list(Cloud)]
    if unknown:
        raise typer.BadParameter(f"--with takes {', '.join(Cloud)}; not {', '.join(unknown)}")
    return tuple(Cloud(name) for name in names)


def _services_without(text: str, temporal: str | None) -> tuple[str, ...] | None:
    names = {name.strip() for name in text.split(",") if name.strip()}
    unknown = names - set(ALL)
    if unknown:
        raise typer.BadParameter(f"--without takes {', '.join(ALL)}; not {', '.join(sorted(unknown))}")
    needed = names & set(TEMPORAL_NEEDS)
    if needed and TEMPORAL not in names and _temporal_choice(temporal) == choices.POSTGRES:
        raise typer.BadParameter(
            f"--without {', '.join(sorted(needed))}: Temporal on PostgreSQL cannot start without it. Leave out "
            f"{TEMPORAL} as well, or name a database of your own: --temporal {choices.POSTGRES}=URL"
        )
    return tuple(name for name in ALL if name not in names) if names else None


def _temporal_choice(option: str | None) -> str:
    try:
        return choices.chosen(option)
    except choices.UnknownChoice as error:
        raise typer.BadParameter(str(error)) from None
