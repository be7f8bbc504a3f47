"""The agent's process: it serves Envoy first, then tries to connect to Kubernetes until that succeeds.

Envoy gets its last accepted snapshot before the kubeconfig is read. If the kubeconfig is unusable, a warning is
logged and the kubeconfig is read again later, because ending the process would not help. The process ends only at a
signal, or if one of its addresses is in use; Envoy then continues, and waits for the next agent.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager

import psutil
from kubernetes.aio.config import ConfigException

from engine.health import Health, serve
from engine.kube import KubeApi
from engine.process import first_of, stopped_by_signals
from engine.settings import Settings
from yawollet.admin import EnvoyAdmin
from yawollet.agent import Agent
from yawollet.conversation import Conversation
from yawollet.options import Address, Options

_RETRY_SECONDS = 5.0

log = logging.getLogger(__name__)


async def run(options: Options, settings: Settings, stop: asyncio.Event | None = None) -> None:
    process = _Process(options, settings)
    async with stopped_by_signals(stop) as stopped, process.serving():
        await first_of(stopped.wait(), process.work())


class _Process:
    def __init__(self, options: Options, settings: Settings) -> None:
        self._options = options
        self._settings = settings
        self._agent: Agent | None = None
        self._conversation = Conversation(options, self._wake)
        self._health = Health()
        # yawol's four checks.
        self._health.add("readyz")
        self._health.add("informer-sync", unready=lambda: self._faults_of(Agent.unsynced))
        self._health.add("loadbalancer-heartbeat", unready=lambda: self._faults_of(Agent.silent))
        self._health.add("loadbalancer-revision", unready=lambda: self._faults_of(Agent.outdated))

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as servers:
            await self._conversation.ads.start()
            servers.push_async_callback(self._conversation.ads.stop)
            for address in {self._options.health, self._options.metrics} - {None}:
                await servers.enter_async_context(serve(self._health, self._at(address)))
            yield

    async def work(self) -> None:
        admin = EnvoyAdmin(self._options.admin)
        try:
            async with await self._cluster() as api:
                host, cpus = socket.gethostname(), psutil.cpu_count() or 1
                self._agent = Agent(self._options, api, self._conversation, admin, host, cpus)
                await self._agent.run()
        finally:
            await admin.close()

    async def _cluster(self) -> KubeApi:
        while True:
            try:
                return await KubeApi.open(self._settings, "yawollet", self._options.kubeconfig)
            except (ConfigException, OSError, ValueError) as error:
                log.warning("the Kubernetes cluster cannot be found, trying again: %s", error)
            await asyncio.sleep(_RETRY_SECONDS)

    def _wake(self) -> None:
        if self._agent is not None:
            self._agent.wake()

    def _faults_of(self, check: Callable[[Agent], Iterable[str]]) -> Iterable[str]:
        return check(self._agent) if self._agent else ["the agent has not found a Kubernetes cluster yet"]

    def _at(self, address: Address | None) -> Settings:
        assert address is not None  # noqa: S101
        return self._settings.model_copy(update={"listen_host": address.host, "health_port": address.port})
