"""A fresh deployment in a temporary directory for measurements, with counters (docs/benchmarks.md says which)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import psutil
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client

from domain.accounts.constants import OPERATOR_NAMESPACE
from domain.identity import Kind
from engine.kube.api import KubeApi
from engine.kube.json import JsonObject, text
from engine.settings import Settings
from engine.temporal import connect
from localcloud import environment
from localcloud.aws.control import Emulator
from localcloud.deployment import Deployment
from localcloud.objects import Objects
from localcloud.services import API_SERVER, AWS, ETCD, EVENTS, LOCAL_SETTINGS, POSTGRES, TEMPORAL, WATCH, WORKER
from localcloud.state import Cloud

FIELD_MANAGER = "perdure-bench"
PRODUCT_AGENTS = ("(worker)", "(watch)", "(events)")
_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
# Not counted where a goal says that nothing is written.
_LEADER_LEASE_AND_EVENTS = frozenset({"leases", "events"})
_HISTORIES_AT_ONCE = 8
# An idle worker polls, which takes less CPU than this; a single pass takes about ten milliseconds.
_IDLE_CPU_SECONDS = 0.04
# The timeout of every wait.
PATIENCE_SECONDS = 300.0


class Event(NamedTuple):
    type: str
    at: datetime


@dataclass(frozen=True)
class History:
    events: tuple[Event, ...] = ()

    @property
    def types(self) -> Counter[str]:
        return Counter(event.type for event in self.events)


class Laboratory:
    def __init__(self, deployment: Deployment, kube: KubeApi, temporal: Client, emulator: Emulator | None) -> None:
        self.deployment = deployment
        self.kube = kube
        self.temporal = temporal
        self._emulator = emulator
        self.objects = Objects(kube)

    @property
    def emulator(self) -> Emulator:
        assert self._emulator is not None, "the deployment has no AWS"
        return self._emulator

    # Counters.

    def audit_mark(self) -> int:
        return self.deployment.log("audit").stat().st_size

    def requests_since(self, mark: int) -> Counter[str]:
        found: Counter[str] = Counter()
        with self.deployment.log("audit").open("rb") as log:
            log.seek(mark)
            for line in log:
                if not line.endswith(b"\n"):
                    break
                entry = json.loads(line)
                agent = text(entry, "userAgent")
                ended_watch = text(entry, "verb") == "watch" and text(entry, "stage") == "ResponseComplete"
                if agent.startswith("perdure/") and agent.endswith(PRODUCT_AGENTS) and not ended_watch:
                    found[_request_name(entry)] += 1
        return found

    async def histories(self, *kinds: Kind) -> dict[str, History]:
        ids = [row.id async for row in self.temporal.list_workflows("ExecutionStatus = 'Running'")]
        wanted = [id_ for id_ in ids if not kinds or id_.split("/", maxsplit=1)[0] in {kind.name for kind in kinds}]
        permits = asyncio.Semaphore(_HISTORIES_AT_ONCE)

        async def one(id_: str) -> History:
            async with permits:
                found = self.temporal.get_workflow_handle(id_).fetch_history_events()
                return History(tuple([event_of(each) async for each in found]))

        return dict(zip(wanted, await asyncio.gather(*map(one, wanted)), strict=True))

    def cpu(self) -> dict[str, float]:
        services = [WORKER, WATCH, TEMPORAL, API_SERVER, ETCD, *((AWS,) if self._emulator is not None else ())]
        services += [name for name in (EVENTS, POSTGRES) if name in self.deployment.state.plan().services]
        return {service: self._cpu_seconds(service) for service in services}

    async def quiet(self) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            before = self._cpu_seconds(WORKER)
            while True:
                await asyncio.sleep(1)
                after = self._cpu_seconds(WORKER)
                if after - before < _IDLE_CPU_SECONDS:
                    return
                before = after

    def _cpu_seconds(self, service: str) -> float:
        pid = self.deployment.service(service).pid
        if pid is None:
            return 0.0
        process = psutil.Process(pid)
        times = process.cpu_times()
        used = float(times.user + times.system)
        if service != POSTGRES:
            return used
        used += times.children_user + times.children_system
        for session in process.children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):  # it has just ended, and counts among the children's time
                of_session = session.cpu_times()
                used += of_session.user + of_session.system
        return used

    async def workflow_tasks(self) -> int:
        return sum(each.types["workflow_task_completed"] for each in (await self.histories()).values())

    @asynccontextmanager
    async def frozen(self, *services: str) -> AsyncIterator[None]:
        """Stop these services (SIGSTOP) within the context: connections hang instead of breaking."""
        try:
            for each in services:
                await asyncio.to_thread(self.deployment.kill, each, signal.SIGSTOP)
            yield
        finally:
            for each in services:
                await asyncio.to_thread(self.deployment.kill, each, signal.SIGCONT)

    @asynccontextmanager
    async def in_one_process(self, *services: str, **settings: str) -> AsyncIterator[asyncio.subprocess.Process]:
        """Run `perdure run` with these settings, while these services are stopped (SIGSTOP)."""
        environment = self.deployment.program_env() | {"PERDURE_STATE": "", "PERDURE_HEALTH_PORT": "0"} | settings
        async with self.frozen(*services):
            with self.deployment.log("run").open("ab") as log:
                command = (sys.executable, "-m", "starters.cli.main", "run")
                process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=log, stderr=log)
            try:
                yield process
            finally:
                process.terminate()
                await process.wait()

    @asynccontextmanager
    async def nobody_at_work(self, *, ready_seconds: float) -> AsyncIterator[None]:
        """Stop worker and watcher (SIGSTOP) within the context; afterwards both are killed and restart.

        Raises:
            DeploymentError: one of the two made no progress for `ready_seconds` after its restart.
        """
        frozen = {name: self.deployment.kill(name, signal.SIGSTOP) for name in (WATCH, WORKER)}
        try:
            yield
        finally:
            for name in frozen:
                self.deployment.kill(name)
        for name, pid in frozen.items():
            await asyncio.to_thread(
                self.deployment.wait_service, name, other_than_pid=pid, standstill_seconds=ready_seconds
            )

    async def audit(self, area: str) -> list[str]:
        command = (sys.executable, "-m", "starters.cli.main", "audit", area)
        running = await asyncio.create_subprocess_exec(
            *command, env=self.deployment.program_env(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        output, _ = await running.communicate()
        return output.decode().splitlines() if running.returncode != 0 else []

    # Acting as a user.

    async def create_namespaces(self, names: Iterable[str], kind: Kind) -> None:
        await asyncio.gather(*(self.kube.create(kind, {"metadata": {"name": name}}) for name in names))

    async def patch(self, kind: Kind, namespace: str, name: str, patch: JsonObject, *, subresource: str = "") -> None:
        await self.kube.patch(kind, namespace, name, patch, subresource=subresource, field_manager=FIELD_MANAGER)

    async def create_pool(self, kind: Kind, size: int) -> None:
        await self.kube.create(
            kind, {"metadata": {"name": "default"}, "spec": {"poolSize": size}}, namespace=OPERATOR_NAMESPACE
        )


def production_settings() -> dict[str, str]:
    defaults = Settings.model_fields
    changed = [name for name in LOCAL_SETTINGS if name.endswith(("_POLL", "_RATE"))]
    found = {name: defaults[name.removeprefix("PERDURE_").lower()].default for name in changed}
    return {
        name: f"{value.total_seconds() if isinstance(value, timedelta) else value:g}" for name, value in found.items()
    }


@asynccontextmanager
async def laboratory(clouds: tuple[Cloud, ...], *kinds: Kind, **emulated: object) -> AsyncIterator[Laboratory]:
    """A fresh deployment whose objects of these kinds are watched; `emulated` are the emulator's settings."""
    async with laboratory_with(None, clouds, *kinds, emulated=emulated) as lab:
        yield lab


@asynccontextmanager
async def laboratory_with(
    only: Sequence[str] | None,
    clouds: tuple[Cloud, ...],
    *kinds: Kind,
    emulated: Mapping[str, object] | None = None,
    api: type[KubeApi] = KubeApi,
    directory: Path | None = None,
) -> AsyncIterator[Laboratory]:
    """A laboratory with only these services (None: all) and a client of the class `api`. Raises DeploymentError."""
    with environment.restored(), tempfile.TemporaryDirectory(prefix="perdure-bench-", dir=directory) as temporary:
        for name, value in production_settings().items():
            os.environ.setdefault(name, value)
        deployment = Deployment(Path(temporary) / "state")
        deployment.up(clouds=clouds, only=only, tether=True)
        try:
            environment.enter(deployment)
            settings = Settings().model_copy(update={"metrics_port": 0, "otel_endpoint": ""})
            async with await api.open(settings, "bench", deployment.env()["KUBECONFIG"]) as kube:
                with ExitStack() as opened:
                    emulator = None
                    if Cloud.AWS in clouds:
                        emulator = opened.enter_context(Emulator(deployment.service(AWS).url or ""))
                        emulator.config(**(emulated or {}))
                    lab = Laboratory(deployment, kube, await connect(settings, "bench"), emulator)
                    async with lab.objects.followed(*kinds):
                        yield lab
        finally:
            deployment.down(wipe=True)


def writes(requests: Mapping[str, int]) -> int:
    return sum(
        count
        for name, count in requests.items()
        if name.split(" ")[0] in _WRITES and name.split(" ")[1].split("/")[0] not in _LEADER_LEASE_AND_EVENTS
    )


def memory_mib(lab: Laboratory, service: str) -> float:
    pid = lab.deployment.service(service).pid
    return memory_of_mib(pid) if pid is not None else 0.0


def memory_of_mib(pid: int) -> float:
    total = 0.0
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for each in (process, *process.children(recursive=True)):
            total += float(each.memory_full_info().pss)
    return total / 2**20


def _request_name(entry: JsonObject) -> str:
    resource = text(entry, "objectRef", "resource") or text(entry, "requestURI").partition("?")[0]
    subresource = text(entry, "objectRef", "subresource")
    return f"{text(entry, 'verb')} {resource}{'/' + subresource if subresource else ''}"


def event_of(event: HistoryEvent) -> Event:
    name = EventType.Name(event.event_type).removeprefix("EVENT_TYPE_").lower()
    return Event(name, event.event_time.ToDatetime(UTC))
