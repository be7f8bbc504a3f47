"""Detects whether a replaced operator still leads: two writers would undo each other's work.

While its leader lease is live, nothing is done for its objects. A lease expires without an event, so lifecycles check
it again.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from datetime import UTC, datetime, timedelta

from engine.errors import unless_absent
from engine.kube import LEASE, KubeApi, lease_is_live
from engine.kube.json import text

# Each answer is cached for this long, since many objects ask. An operator that returns is noticed within this time.
ASKED_EVERY_SECONDS = 30.0
HELD_FOR = timedelta(minutes=1)


class Leaders:
    def __init__(self, kube: KubeApi) -> None:
        self._kube = kube
        self._asking: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._known: dict[tuple[str, str], tuple[float, str]] = {}

    async def leads(self, operator: str, namespace: str, lease: str) -> str:
        """Why nothing may be done now; empty if the operator does not lead.

        Raises ApiError if the lease cannot be read; then nothing may be done either.
        """
        where = (namespace, lease)
        async with self._asking[where]:
            asked_at, leader = self._known.get(where, (float("-inf"), ""))
            if time.monotonic() - asked_at >= ASKED_EVERY_SECONDS:
                leader = await self._holder(namespace, lease)
                self._known[where] = (time.monotonic(), leader)
        if not leader:
            return ""
        return f"{operator} still leads ({leader}): scale it down and remove the lease {namespace}/{lease}"

    async def _holder(self, namespace: str, name: str) -> str:
        lease = await unless_absent(self._kube.get(LEASE, namespace, name)) or {}
        return text(lease, "spec", "holderIdentity") if lease_is_live(lease, datetime.now(UTC)) else ""
