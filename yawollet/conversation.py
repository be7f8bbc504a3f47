"""Turns LoadBalancers into snapshots for Envoy, handles its ACKs and NACKs, and keeps the accepted snapshot in a file.

A new snapshot is saved after Envoy has accepted all of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from domain.loadbalancers.envoy import envoy_configuration
from domain.loadbalancers.resources import LoadBalancer
from domain.notices import Notice
from yawollet.ads import AdsServer, Answer
from yawollet.delivery import Delivery
from yawollet.options import Options
from yawollet.snapshot import SnapshotFile

# Envoy accepts or refuses within milliseconds, or after the 5 seconds of a dead backend's health check. An earlier
# report would show an outdated Envoy, and the virtual address would move needlessly.
_ANSWER = timedelta(seconds=6)
_ROUNDS = 3  # Envoy may refuse clusters, then listeners; then the rest is served

log = logging.getLogger(__name__)


class Conversation:
    def __init__(self, options: Options, on_answer: Callable[[], None]) -> None:
        self._file = SnapshotFile(options.snapshot_file, f"{options.namespace}/{options.load_balancer}")
        self.delivery = Delivery(self._file.read())
        self._answered = asyncio.Event()
        self._on_answer = on_answer
        self._waiting = False
        self._last_served = self.delivery.served
        self.ads = AdsServer(options.ads, self._hear)
        if self.delivery.served:
            log.info("serving version %d, which Envoy has accepted before", self.delivery.served.version)
            self.ads.serve(self.delivery.served)

    def _hear(self, answer: Answer) -> None:
        if answer.refusal:
            log.warning("Envoy refuses version %d: %s", answer.version, answer.refusal)
            self.delivery.refuse(answer.type_url, answer.version, answer.refusal, datetime.now(UTC))
        else:
            self.delivery.taken(answer.type_url, answer.version)
        if self.delivery.settled and self.delivery.served is not self._last_served:
            self._last_served = self.delivery.served
            if self._last_served is not None:
                self._file.write(self._last_served)
        self._answered.set()
        if not self._waiting:
            self._on_answer()

    async def serve(self, balancer: LoadBalancer, listen_address: str, cpus: int) -> tuple[bool, tuple[Notice, ...]]:
        """Serve the LoadBalancer to Envoy. Returns whether anything was new, with notices about what was left out.

        If Envoy refuses resources, they are set aside, and the rest is served.
        """
        configuration = envoy_configuration(balancer, listen_address=listen_address, cpus=cpus)
        changed = False
        for _ in range(_ROUNDS):
            snapshot = self.delivery.want(configuration, datetime.now(UTC))
            if snapshot is None:
                break
            changed = True
            self._answered.clear()
            self.ads.serve(snapshot)
            if self.ads.connected:
                await self._answer()
        return changed, configuration.notices

    async def _answer(self) -> None:
        refusals = self.delivery.refusals
        self._waiting = True
        try:
            async with asyncio.timeout(_ANSWER.total_seconds()):
                while not self.delivery.settled and self.delivery.refusals == refusals:
                    await self._answered.wait()
                    self._answered.clear()
        except TimeoutError:
            return
        finally:
            self._waiting = False
