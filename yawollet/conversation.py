"""The agent's conversation with Envoy: LoadBalancers in, snapshots out, answers back, and the file that outlives both.

It begins with what Envoy accepted last, from the file, before anything else is known. Once Envoy has taken a whole
snapshot, that one is kept.
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

# Envoy answers within milliseconds, or after the 5 seconds for which it waits for the health of a dead backend. Who
# reported earlier would report a machine that is behind, and the virtual address would move for nothing.
_ANSWER = timedelta(seconds=6)
_ROUNDS = 3  # a refusal of clusters, one of listeners, and what remains

log = logging.getLogger(__name__)


class Conversation:
    """What Envoy is served, what it says, and what is kept of it."""

    def __init__(self, options: Options, told: Callable[[], None]) -> None:
        self._file = SnapshotFile(options.snapshot_file, f"{options.namespace}/{options.load_balancer}")
        self.delivery = Delivery(self._file.read())
        self._answered = asyncio.Event()
        self._told = told
        self._waiting = False
        self._kept = self.delivery.served
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
        if self.delivery.settled and self.delivery.served is not self._kept:
            self._kept = self.delivery.served
            if self._kept is not None:
                self._file.write(self._kept)
        self._answered.set()
        if not self._waiting:
            self._told()

    async def serve(self, balancer: LoadBalancer, listen_address: str, cpus: int) -> tuple[bool, tuple[Notice, ...]]:
        """Serve the LoadBalancer; whether there was something new, and what had to be left out.

        What Envoy refuses is put aside and the rest served before this returns.
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
        """Until Envoy has taken all that is served, or refused some of it, or the time is over."""
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
