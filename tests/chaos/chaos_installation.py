"""Servers to break, and a worker and a watcher that can be killed alone: the base of every sweep.

The worker reaches the API server through a proxy, so that every call of it can be stopped at a chosen moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import httpx
from botocore.exceptions import BotoCoreError, ClientError
from chaos_cluster import Cluster, Workflows, administrator, until
from chaos_effects import Effect
from chaos_proxy import Break, Interception, KubeProxy, Request
from temporalio.service import RPCError

from localcloud.deployment import Deployment
from localcloud.processes import tethered
from localcloud.state import Cloud, choose_ports
from tests.running.temporal_client import temporal_of

ROOT = Path(__file__).parents[2]
READY_SECONDS = 180.0
STRIKE_SECONDS = 180.0
HEARTBEAT_SECONDS = float(os.environ.get("CHAOS_HEARTBEAT", "6"))

# Notes what a case tries (effects, or lifecycle and what was broken), and the fault.
Record = Callable[[Sequence[Effect | tuple[str, str]], str], None]


# A process in reserve has imported what takes seconds when it receives the signal to begin. Its workflows
# miss a heartbeat after some seconds at most: most of the time of a case would be spent waiting for those of the dead.
_RESERVE = f"""
import importlib, sys
from datetime import timedelta
from temporalio import workflow
for name in sys.argv.pop(1).split(","):
    importlib.import_module(name)
start_activity, soon = workflow.start_activity, timedelta(seconds={HEARTBEAT_SECONDS})
def start_activity_with_heartbeat(*arguments, heartbeat_timeout=None, **more):
    shorter = heartbeat_timeout and min(heartbeat_timeout, soon)
    return start_activity(*arguments, heartbeat_timeout=shorter, **more)
workflow.start_activity = start_activity_with_heartbeat
sys.stdin.readline() or sys.exit()
importlib.import_module("starters.cli.main").main()
"""


class Process:
    """One of the product's processes, as its service would run it, started again by the test.

    With `reserve`, names of modules, the next one has imported them before it is needed, as most of a start goes there.
    What lies in the directory `code` is imported first.
    """

    def __init__(
        self,
        deployment: Deployment,
        command: Sequence[str],
        environ: dict[str, str],
        label: str = "",
        reserve: Sequence[str] = (),
        code: Path = ROOT,
    ) -> None:
        self._deployment = deployment
        self._code = code
        self._command = command
        self._environ = environ
        self._imports = reserve
        self.log = deployment.log(f"chaos-{label or command[0]}")
        self._running: subprocess.Popen[bytes] | None = None
        self._reserve: tuple[subprocess.Popen[bytes], int] | None = None
        self.port = 0

    def start(self) -> None:
        """Start it; it becomes ready later."""
        if not self._imports:
            self._running, self.port = self._spawn("-m", "starters.cli.main")
            return
        (self._running, self.port), self._reserve = self._reserve or self._reserved(), None
        assert self._running.stdin is not None
        self._running.stdin.write(b"begin\n")
        self._running.stdin.close()

    def _reserved(self) -> tuple[subprocess.Popen[bytes], int]:
        return self._spawn("-c", _RESERVE, ",".join(self._imports))

    def _spawn(self, *program: str) -> tuple[subprocess.Popen[bytes], int]:
        """A process, and the port of its health endpoint."""
        ports, _ = choose_ports((self._command[0],), {})
        port = ports[self._command[0]]
        arguments = [sys.executable, *program, *self._command]
        with self.log.open("ab") as output:
            started = subprocess.Popen(
                tethered(arguments, signal.SIGKILL),
                cwd=self._code,
                env=self._deployment.program_env() | self._environ | {"PERDURE_HEALTH_PORT": str(port)},
                stdin=subprocess.PIPE if self._imports else subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        return started, port

    def await_ready(self) -> None:
        """Wait until it says that it is ready."""
        until(self.is_ready, f"{self._command[0]} ready; its log is {self.log}", READY_SECONDS)
        if self._imports and self._reserve is None:
            self._reserve = self._reserved()

    def is_ready(self) -> bool:
        """Whether it says so.

        Raises:
            AssertionError: it has ended by itself.
        """
        assert self._running is not None
        code = self._running.poll()
        assert code is None, f"{self._command[0]} ended with {code}; its log is {self.log}"
        try:
            return self._readyz().status_code == 200
        except httpx.TransportError:
            return False

    def stands_by(self) -> bool:
        """Whether it says that another watcher leads."""
        return "standing by" in self._readyz().text

    def _readyz(self) -> httpx.Response:
        return httpx.get(f"http://127.0.0.1:{self.port}/readyz", verify=False, trust_env=False)

    def kill(self) -> None:
        """SIGKILL."""
        assert self._running is not None
        self._running.kill()
        self._running.wait()

    def send(self, number: signal.Signals) -> None:
        """Signal it."""
        assert self._running is not None
        self._running.send_signal(number)

    def ended(self) -> bool:
        """Whether it has ended by itself."""
        assert self._running is not None
        return self._running.poll() is not None

    def stop(self) -> None:
        """End it, whatever state it is in."""
        if self._reserve is not None:
            spare, self._reserve = self._reserve[0], None
            spare.communicate()  # it reads that it is not needed
        if self._running is not None and self._running.poll() is None:
            self.kill()


@dataclass
class Armed:
    """An effect at which something will happen."""

    name: str
    struck: Callable[[], bool]


class Installation:
    """The deployment's servers, a worker and a watcher."""

    def __init__(
        self,
        state: Path,
        services: Sequence[str],
        settings: dict[str, str],
        worker: Sequence[str] = ("worker",),
        *,
        clouds: Sequence[Cloud] = (Cloud.AWS,),
        reserve: bool = False,
    ) -> None:
        self.deployment = Deployment(state)
        self.deployment.up(clouds=clouds, only=services, tether=True)
        self.cluster = Cluster(self.deployment)
        self.workflows = Workflows(self.deployment)
        self.proxy = KubeProxy(self.cluster.url, administrator(self.deployment))
        # The state directory's own file of variables would win over the way through the proxy.
        kubeconfig = self.proxy.write_kubeconfig(self.deployment.log("chaos-kubeconfig"))
        self.through_proxy = {"KUBECONFIG": str(kubeconfig), "PERDURE_STATE": ""}
        self.settings = settings
        of_worker, of_watcher = (("workers.main",), ("starters.watch.main",)) if reserve else ((), ())
        self.worker = Process(self.deployment, worker, settings | self.through_proxy, reserve=of_worker)
        self.watch = Process(self.deployment, ("watch",), settings, reserve=of_watcher)

    def start(self) -> None:
        """Start worker and watcher; where that fails, nothing of the installation is left behind."""
        try:
            for process in (self.worker, self.watch):
                process.start()
            for process in (self.worker, self.watch):
                process.await_ready()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop all of it and remove its data."""
        self.worker.stop()
        self.watch.stop()
        self.deployment.down(wipe="CHAOS_KEEP" not in os.environ)
        self.proxy.close()
        self.cluster.close()
        self.workflows.close()

    def find_again(self) -> None:
        """After an `up`: a port that another program took meanwhile is another one now."""
        for client in (self.cluster, self.workflows):
            client.close()
        self.cluster = Cluster(self.deployment)
        self.workflows = Workflows(self.deployment)
        self.proxy.turn_to(self.cluster.url)

    # --- settling ---

    quiet_seconds: ClassVar[float] = 1.5
    """Without a change for so long nothing is at work any more."""

    def violations(self) -> list[str]:
        """What is not as it should be, on either side."""
        raise NotImplementedError

    def changes(self) -> object:
        """What differs once something has been changed, on either side."""
        return self.proxy.changes

    def story(self) -> str:
        """What each lifecycle says about itself."""
        return self.command("list").stdout.decode()

    def agree(self, seconds: float) -> float:
        """Wait until both sides agree and nothing changes any more; how many seconds it took.

        Raises:
            AssertionError: with everything that is still wrong.
        """
        began = time.monotonic()
        wrong, observed = ["not looked at"], 0.0
        while wrong and time.monotonic() < began + seconds:
            time.sleep(
                max(0.2, observed)
            )  # a look at hundreds of objects takes the servers' time from those who settle
            look = time.monotonic()
            try:
                wrong = self.violations() or self._moving()
            except (httpx.HTTPError, BotoCoreError, ClientError) as error:  # a server that was killed is not back yet
                wrong = [f"a server does not answer: {type(error).__name__}: {error}"]
            observed = time.monotonic() - look
        took = time.monotonic() - began
        if wrong:
            print("\n".join(wrong))  # the story may take longer than a test has
        assert not wrong, f"after {took:.0f} s:\n  " + "\n  ".join(wrong) + "\n" + self.story()
        return took

    def _moving(self) -> list[str]:
        if self.proxy.held:
            return ["a request is still without an answer"]
        before = self.changes()
        time.sleep(self.quiet_seconds)
        after = self.changes()
        return [f"still at work: {before} and then {after} changes"] if before != after else self.violations()

    # --- breaking ---

    def intercept(self, matches: Callable[[Request], bool], kind: Break) -> Interception:
        """Break the next request that matches."""
        return self.proxy.intercept(matches, kind)

    def await_struck(self, armed: Sequence[Armed]) -> None:
        """Wait until every one of them has happened (all are held at this moment, then)."""
        waiting = list(armed)

        def all_struck() -> bool:
            waiting[:] = [each for each in waiting if not each.struck()]
            return not waiting

        try:
            until(all_struck, "every effect reached", STRIKE_SECONDS)
        except AssertionError:
            missed = ", ".join(each.name for each in waiting)
            raise AssertionError(f"never reached, so nothing was tried: {missed}") from None
        time.sleep(0.15)  # the fault is counted when the call comes in; its effect follows within this

    def lift(self) -> None:
        """Break nothing any more."""
        self.proxy.clear()

    def scheduled(self, activity: str) -> set[tuple[str, int]]:
        """Runs and events by which open workflows have scheduled the activity."""
        return asyncio.run(self._scheduled(activity))

    async def _scheduled(self, activity: str) -> set[tuple[str, int]]:
        client, found = await temporal_of(self.deployment), set[tuple[str, int]]()
        async for each in client.list_workflows("ExecutionStatus='Running'"):
            events = (await client.get_workflow_handle(each.id, run_id=each.run_id).fetch_history()).events
            names = ((e.event_id, e.activity_task_scheduled_event_attributes.activity_type.name) for e in events)
            found |= {(each.run_id, number) for number, name in names if name == activity}
        return found

    def terminate_all(self) -> int:
        """Terminate every workflow that runs; how many."""
        return asyncio.run(self._terminate_all())

    async def _terminate_all(self) -> int:
        client = await temporal_of(self.deployment)
        ids = [found.id async for found in client.list_workflows("ExecutionStatus='Running'")]
        for id_ in ids:
            with contextlib.suppress(RPCError):  # it may have ended meanwhile
                await client.get_workflow_handle(id_).terminate("chaos")
        return len(ids)

    def command(self, *arguments: str, seconds: float = 60) -> subprocess.CompletedProcess[bytes]:
        """One of the product's commands, run to its end."""
        return subprocess.run(
            [sys.executable, "-m", "starters.cli.main", *arguments],
            cwd=ROOT,
            env=self.deployment.program_env() | self.settings,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
