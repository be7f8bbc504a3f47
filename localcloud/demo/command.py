"""The command `perdure demo NAME`.

A deployment that was up before stays up. The emulated cloud is slow enough to watch, unless `--exit` or `--fast` is
given. The demo refuses to run in observe mode.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from domain import operator_domain
from engine import command_groups
from localcloud import packages
from localcloud.building import BuildError
from localcloud.cli import StateOption, TemporalOption
from localcloud.deployment import Deployment, DeploymentError
from localcloud.environment import enter
from localcloud.golang.toolchain import ToolchainError
from localcloud.progress import ConsoleNarrator
from localcloud.services import ALL, AWS, EVENTS, TEMPORAL
from localcloud.state import Cloud, Running, StateDirectoryError
from localcloud.terminal import complain, console, end_as_by_ctrl_c, say

if TYPE_CHECKING:
    from localcloud.aws.control import Emulator
    from localcloud.demo.view import Lines, LiveTable

# In a checkout `examples` is a link to `examples/`; a wheel contains the manifests.
EXAMPLES = Path(__file__).with_name("examples")
# Longer than any pause of a scenario, even on a busy computer.
STANDSTILL_SECONDS = 300.0
_NOTHING_CHANGED = f"nothing has changed for {STANDSTILL_SECONDS:.0f} s"


def register(app: typer.Typer) -> None:
    app.command(rich_help_panel=command_groups.TRY)(demo)


def demo(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="The demo: accounts, api, byoc, claims, greeting, instances, loadbalancer, resilience."
        ),
    ] = "",
    leave: Annotated[
        bool, typer.Option("--exit", help="Stop everything afterwards. Exits with 0 only if all went well.")
    ] = False,
    fast: Annotated[
        bool | None,
        typer.Option(
            "--fast/--slow", help="The emulated cloud answers without delay. Default with --exit.", show_default=False
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=1,
            help="Give up after this long. Default: when nothing has changed for five minutes.",
            show_default=False,
        ),
    ] = None,
    temporal: TemporalOption = None,
    state: StateOption = None,
) -> None:
    """Start the local deployment, apply an example, and show its lifecycles until nothing changes any more.

    Example: perdure demo claims --exit
    """
    from localcloud.demo.scenarios import SCENARIOS

    if name not in SCENARIOS:
        message = f"there is no demo {name!r}." if name else "which demo?"
        raise typer.BadParameter(f"{message} There are: {', '.join(SCENARIOS)}.", param_hint="NAME")
    end_as_by_ctrl_c()
    deployment = Deployment(state)
    code = 1
    try:
        running = _up(deployment, name, temporal)
        code = play(deployment, name, fast=leave if fast is None else fast, timeout=timeout)
        if not leave:
            _linger(deployment, running, name)
    except KeyboardInterrupt:
        code = 130 if leave else code
    except (DeploymentError, BuildError, ToolchainError, StateDirectoryError, packages.NotInstalledError) as error:
        complain(str(error))
    finally:
        _down(deployment)
    raise typer.Exit(code)


def _up(deployment: Deployment, name: str, temporal: str | None) -> Running:
    from localcloud.demo.scenarios import SCENARIOS

    scenario = SCENARIOS[name]
    for setting, value in scenario.settings.items():
        os.environ.setdefault(setting, value)
    with ConsoleNarrator(console) as narrator:
        narrator.say(scenario.title)
        if scenario.package:
            packages.install(EXAMPLES / name, deployment.state.packages)
            sys.path.append(str(deployment.state.packages))
            narrator.say(f"Installed examples/{name} beside Perdure, into {deployment.state.packages}.")
        began = time.monotonic()
        started = deployment.start(clouds=scenario.clouds, only=ALL, temporal=temporal, tether=True, narrator=narrator)
        running = deployment.wait_ready(narrator=narrator)
        if started:
            narrator.say(f"The local deployment is ready after {time.monotonic() - began:.1f} s.")
        else:
            narrator.say(f"{deployment.state.root} is already up.")
            if scenario.settings and running.service(EVENTS) is None:
                raise DeploymentError(
                    "The running deployment serves no EC2 instances: run `perdure down` first, or use another --state."
                )
        found = running.service(TEMPORAL)
        if found is not None and found.url:
            narrator.say(f"The lifecycles of this demo in Temporal's web UI: {_link(found.url, name)}")
        return running


def play(deployment: Deployment, name: str, *, fast: bool, timeout: float | None = None) -> int:
    enter(deployment)
    try:
        asyncio.run(_played(deployment, name, fast=fast, timeout_seconds=timeout))
    except _Unsettled as unsettled:
        complain(f"Not settled: {unsettled}")
        return 1
    return 0


class _Unsettled(Exception):  # noqa: N818 - carries a reason out of the event loop
    pass


async def _played(deployment: Deployment, name: str, *, fast: bool, timeout_seconds: float | None) -> None:
    # Imported late, so that help and completion are fast.
    from engine.errors import ApiError
    from engine.kube.api import KubeApi
    from engine.settings import Settings
    from engine.temporal import connect
    from localcloud.aws.control import Emulator
    from localcloud.demo.scenarios import SCENARIOS
    from localcloud.demo.stage import Stage, UnsettledError
    from localcloud.demo.view import Lines, LiveTable

    scenario, began = SCENARIOS[name], time.monotonic()
    settings = Settings().model_copy(update={"metrics_port": 0, "otel_endpoint": ""})
    if settings.observing:
        raise _Unsettled("PERDURE_MODE=observe is set: nothing would be done, so nothing can settle")
    spectator: LiveTable | Lines = LiveTable(console) if console.is_terminal else Lines(console)
    with_aws = Cloud.AWS in scenario.clouds
    async with await KubeApi.open(settings, "demo", deployment.env()["KUBECONFIG"]) as kube:
        with ExitStack() as opened, spectator:
            emulator = opened.enter_context(Emulator(deployment.service(AWS).url or "")) if with_aws else None
            stage = Stage(
                kube=kube,
                temporal=await connect(settings, "demo"),
                deployment=deployment,
                emulator=emulator,
                manifests=EXAMPLES / name,
                spectator=spectator,
                scenario=scenario,
                fast=fast,
            )
            if emulator is not None:
                opened.enter_context(_paced(emulator, scenario.delays, fast=fast))
            try:
                followed = stage.objects.followed(*scenario.kinds, beside=(stage.follow_lifecycles(),))
                async with asyncio.timeout(timeout_seconds or STANDSTILL_SECONDS) as limit, followed:
                    if timeout_seconds is None:
                        stage.on_progress = partial(extend, limit)
                    await scenario.play(stage)
            except TimeoutError:
                reason = await stage.reason()
                late = f"not after {timeout_seconds:.0f} s" if timeout_seconds else _NOTHING_CHANGED
                raise _Unsettled(f"{late}; {reason}") from None
            except (UnsettledError, ApiError) as error:
                raise _Unsettled(str(error)) from None
            finally:
                stage.on_progress = _nothing
            stage.say(f"Settled after {time.monotonic() - began:.1f} s")


def _nothing() -> None:
    pass


def extend(limit: asyncio.Timeout) -> None:
    # Lifecycles may still change after the limit, which cannot be rescheduled then.
    if not limit.expired():
        limit.reschedule(asyncio.get_running_loop().time() + STANDSTILL_SECONDS)


@contextmanager
def _paced(emulator: Emulator, delays: Mapping[str, float], *, fast: bool) -> Iterator[None]:
    before = emulator.config()
    emulator.config(**{setting: 0 if fast else delay for setting, delay in delays.items()})
    try:
        yield
    finally:
        emulator.config(**{setting: getattr(before, setting) for setting in delays})


def _link(url: str, name: str) -> str:
    from localcloud.demo.scenarios import SCENARIOS
    from localcloud.temporal_ui import lifecycles_link, lifecycles_query

    return lifecycles_link(url, lifecycles_query(*SCENARIOS[name].areas))


def _linger(deployment: Deployment, running: Running, name: str) -> None:
    from engine.settings import settings
    from localcloud.demo.scenarios import SCENARIOS

    domain = settings().claims_domain
    temporal = running.service(TEMPORAL)
    lines = [
        "",
        "The deployment keeps running. In another shell:",
        f"  {deployment.state.to_enter}",
        *(f"  {hint.replace(operator_domain.DEFAULT, domain)}" for hint in SCENARIOS[name].hints),
        *([f"The lifecycles: {_link(temporal.url, name)}"] if temporal and temporal.url else []),
        "Ctrl-C stops the deployment; `perdure demo` or `perdure up` resumes it with its data."
        if deployment.owns_supervisor()
        else "Ctrl-C leaves the deployment running; `perdure down` stops it.",
    ]
    say("\n".join(lines))
    while running.supervisor.is_alive():
        time.sleep(0.5)


def _down(deployment: Deployment) -> None:
    if not deployment.owns_supervisor():
        return
    began = time.monotonic()
    deployment.down()
    say(f"Stopped in {time.monotonic() - began:.1f} s.")
