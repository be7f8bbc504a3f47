"""Take the documentation's screenshots again: `./run python tests/temporal/pictures.py [NAME...]`, about five minutes.

A local deployment of its own plays the demos of accounts, claims and load balancers. An account whose support case
stays open and one with a throttled region are added, and a headless Chromium photographs the terminal and Temporal's
web UI. The picture of an encrypted lifecycle is taken by its test. The drawings (`*.svg`) are made by hand.
"""

from __future__ import annotations

import asyncio
import io
import os
import pty
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from browser import CHROMIUM, Page, browsing
from rich.console import Console
from rich.text import Text
from temporalio.client import Client, WorkflowExecution

from domain.accounts import ACCOUNT_POOL
from domain.accounts.constants import OPERATOR_NAMESPACE
from engine.kube.api import KubeApi
from engine.kube.json import at
from engine.settings import Settings
from engine.temporal import connect
from localcloud.aws.control import Emulator
from localcloud.demo.accounts import POOL
from localcloud.demo.stage import FIELD_MANAGER
from localcloud.deployment import Deployment
from localcloud.environment import enter
from localcloud.services import AWS, TEMPORAL
from localcloud.temporal_ui import lifecycles_link, lifecycles_query

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "pictures"
MOST_BYTES = 300_000
TAKEN = (
    "account-deadline",
    "account-pending",
    "account-ready",
    "claim-ended",
    "demo",
    "encrypted-readable",
    "lifecycles",
    "machine-ready",
)
ENCRYPTED, MACHINE = "encrypted-readable", "machine-ready"
_COLUMNS = 112  # of the terminal; wider lines are folded
_PATIENCE_SECONDS = 600
_CURSOR = re.compile(r"(\r|\n|\x1b\[1A|\x1b\[2K|\x1b\[\?25[lh])")  # all that rich's live display moves it with
_SETTLED, _END = "Settled after", "Ctrl-C"


def main(wanted: Sequence[str]) -> None:
    """Take the pictures that are named, by default all."""
    if unknown := set(wanted) - set(TAKEN):
        sys.exit(f"no picture is called {', '.join(sorted(unknown))}; there are: {', '.join(TAKEN)}")
    if not CHROMIUM:
        sys.exit("Chromium is missing: install it, for example by `apt-get install chromium`")
    names = frozenset(wanted or TAKEN)
    if ENCRYPTED in names:
        test = Path(__file__).with_name("test_ui_decoded.py")
        environment = {**os.environ, "PERDURE_TEST_PICTURE": str(_file(ENCRYPTED))}
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-m", "slow", str(test)], cwd=ROOT, env=environment, check=True
        )
        _report(ENCRYPTED)
    if names - {ENCRYPTED}:
        with tempfile.TemporaryDirectory(prefix="perdure-pictures-") as folder:
            state = Path(folder) / "state"
            clouds = "aws,openstack" if MACHINE in names else "aws"
            subprocess.run(_perdure("up", "--detach", "--with", clouds, "--state", str(state)), check=True)
            try:
                asyncio.run(_taken(Deployment(state), names, Path(folder)))
            finally:
                subprocess.run(_perdure("down", "--wipe", "--state", str(state)), check=True)


async def _taken(deployment: Deployment, names: frozenset[str], folder: Path) -> None:
    enter(deployment)
    (folder / "browser").mkdir()
    settings = Settings().model_copy(update={"metrics_port": 0})
    kubeconfig, aws = deployment.env()["KUBECONFIG"], deployment.service(AWS).url or ""
    async with browsing(folder / "browser") as page, await KubeApi.open(settings, "pictures", kubeconfig) as kube:
        with Emulator(aws) as emulator:
            temporal = await connect(settings, "pictures")
            scene = Scene(names, page, temporal, kube, emulator, deployment, deployment.service(TEMPORAL).url or "")
            await scene.play(folder)


class Scene:
    """A local deployment whose demos are played, and a browser that shows their lifecycles."""

    def __init__(
        self,
        names: frozenset[str],
        page: Page,
        temporal: Client,
        kube: KubeApi,
        emulator: Emulator,
        deployment: Deployment,
        url: str,
    ) -> None:
        self._names, self._page, self._temporal, self._kube = names, page, temporal, kube
        self._emulator, self._deployment, self._url = emulator, deployment, url

    async def play(self, folder: Path) -> None:
        """Take each wanted picture when its moment comes."""
        if self._names - {ENCRYPTED, "claim-ended", MACHINE}:
            with demo("accounts", self._deployment.state.root) as written:
                await self._terminal(_story(written), folder)
                await self._photograph(
                    "lifecycles", lifecycles_link(self._url, lifecycles_query("accounts")), 800, "Workflows"
                )
                ready = await self._accounts("OpPhase = 'Ready'")
                unclaimed = min(ready, key=lambda each: each.history_length)
                await self._photograph("account-ready", self._address(unclaimed, "timeline"), 1500, "Timeline")
            await self._troubled()
        if "claim-ended" in self._names:
            with demo("claims", self._deployment.state.root):
                ended = "WorkflowType = 'ResourceClaim' AND OpName = 'trial' AND ExecutionStatus = 'Completed'"
                [trial, *_] = await self._found(ended)
                await self._photograph("claim-ended", self._address(trial, "timeline"), 1000, "Timeline")
        if MACHINE in self._names:
            with demo("loadbalancer", self._deployment.state.root):
                ready = "WorkflowType = 'LoadBalancerMachine' AND ExecutionStatus = 'Running' AND OpPhase = 'Ready'"
                [machine, *_] = await self._found(ready)
                await self._photograph(MACHINE, self._address(machine, "timeline"), 1600, "Timeline")

    async def _troubled(self) -> None:
        if "account-pending" in self._names:
            self._emulator.config(case_seconds=3600)
            await self._one_more_account()
            pending = await _until(lambda: self._accounts("OpPhase = 'PendingVerification'"))
            await self._photograph("account-pending", self._address(pending, "user-metadata"), 700, "Current Details")
        if "account-deadline" in self._names:
            self._emulator.fault("ec2", "RunInstances", kind="throttle", region="eu-west-1")
            await self._one_more_account()
            throttled = await _until(self._retrying)
            await self._photograph("account-deadline", self._address(throttled, "timeline"), 1500, "Timeline")
        self._emulator.clear()
        self._emulator.reset_config()

    async def _one_more_account(self) -> None:
        pool = await self._kube.get(ACCOUNT_POOL, OPERATOR_NAMESPACE, POOL)
        larger = {"spec": {"poolSize": int(str(at(pool, "spec", "poolSize"))) + 1}}
        await self._kube.patch(ACCOUNT_POOL, OPERATOR_NAMESPACE, POOL, larger, field_manager=FIELD_MANAGER)

    async def _found(self, query: str) -> list[WorkflowExecution]:
        return [each async for each in self._temporal.list_workflows(query)]

    async def _accounts(self, query: str) -> list[WorkflowExecution]:
        return await self._found(f"WorkflowType = 'Account' AND ExecutionStatus = 'Running' AND {query}")

    async def _retrying(self) -> list[WorkflowExecution]:
        """The accounts with an action at its fifth attempt or later."""
        found = await self._accounts("OpPhase = 'InitializingRegions'")
        described = [await self._temporal.get_workflow_handle(each.id).describe() for each in found]
        return [
            each for each in described if any(action.attempt >= 5 for action in each.raw_description.pending_activities)
        ]

    def _address(self, lifecycle: WorkflowExecution, tab: str) -> str:
        return f"{self._url}/namespaces/default/workflows/{quote(lifecycle.id, safe='')}/{lifecycle.run_id}/{tab}"

    async def _photograph(self, name: str, address: str, height: int, shows: str, width: int = 1500) -> None:
        """Open the address, wait until the page shows a text, and keep what is seen."""
        if name not in self._names:
            return
        await self._page.resize(width, height)
        await self._page.open(address)

        async def shown() -> list[str]:
            return [text] if shows in (text := await self._page.text()) else []

        await _until(shown)
        await asyncio.sleep(4)  # the web UI loads and draws in several steps, and says of none that it is the last
        await self._page.picture(_file(name))
        _report(name)

    async def _terminal(self, lines: Sequence[str], folder: Path) -> None:
        text = Text.from_ansi("\n".join(lines))
        width = max(len(line) for line in text.plain.splitlines())
        console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True)
        console.print(text, soft_wrap=True)
        drawing = console.export_svg(title="perdure demo accounts")
        across, down = map(float, drawing.partition('viewBox="0 0 ')[2].partition('"')[0].split())
        drawn = folder / "terminal.html"
        drawn.write_text(f"<meta charset=utf-8><style>body{{margin:0}}svg{{display:block}}</style>{drawing}")
        await self._photograph("demo", drawn.as_uri(), round(down), "perdure", width=round(across))


@contextmanager
def demo(name: str, state: Path) -> Iterator[str]:
    """A demo on a terminal, played to its end and left when the block ends; yields what it has written."""
    master, slave = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(_COLUMNS), "LINES": "60", "TERM": "xterm-256color"}
    command = _perdure("demo", name, "--state", str(state))
    with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment) as running:
        os.close(slave)
        try:
            written = _until_left_running(master)
            if _SETTLED not in written:
                sys.exit(f"the demo {name} did not settle:\n{written[-2000:]}")
            yield written
        finally:
            running.terminate()
            running.wait()
            os.close(master)


def _until_left_running(terminal: int) -> str:
    """What a demo writes, until it has settled and waits for Ctrl-C, or has ended."""
    written, deadline = b"", time.monotonic() + _PATIENCE_SECONDS
    while _END.encode() not in written.partition(_SETTLED.encode())[2] and time.monotonic() < deadline:
        try:
            written += os.read(terminal, 65536)
        except OSError:  # its side of the terminal is closed
            break
    return written.decode(errors="replace")


def _perdure(*arguments: str) -> list[str]:
    return [str(Path(sys.executable).parent / "perdure"), *arguments]


async def _until(look: Callable[[], Awaitable[list[T]]]) -> T:
    """The first of what is looked for, once there is something."""
    async with asyncio.timeout(_PATIENCE_SECONDS):
        while not (found := await look()):  # noqa: ASYNC110 - neither browser nor server reports it
            await asyncio.sleep(1)
    return found[0]


def screen(written: str) -> list[str]:
    """What a terminal shows after this, colours included: rich moves by whole lines only."""
    lines, row = [""], 0
    for piece in _CURSOR.split(written):
        if piece == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif piece == "\x1b[1A":
            row = max(0, row - 1)
        elif piece == "\x1b[2K":
            lines[row] = ""
        elif not _CURSOR.fullmatch(piece):
            lines[row] += piece
    return lines


def _story(written: str) -> list[str]:
    """The demo's own lines: its title, its steps and the last table, without the start of the deployment."""
    lines = screen(written)
    plain = [Text.from_ansi(each).plain for each in lines]
    first = next(number for number, line in enumerate(plain) if " s  Applied" in line)
    last = next(number for number, line in enumerate(plain) if number > first and not line.strip())
    return ["$ ./run perdure demo accounts", lines[0], *lines[first:last]]


def _file(name: str) -> Path:
    return FOLDER / f"{name}.png"


def _report(name: str) -> None:
    size = _file(name).stat().st_size
    print(f"{name}.png: {size // 1000} kB", flush=True)
    if size > MOST_BYTES:
        sys.exit(f"{name}.png has more than {MOST_BYTES} bytes: take a smaller part of the page")


if __name__ == "__main__":
    main(sys.argv[1:])
