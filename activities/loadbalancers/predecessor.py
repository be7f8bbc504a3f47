"""Whether one of yawol's controllers still leads: two that serve the same objects would undo each other's work."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime

from engine.errors import Absent
from engine.kube import LEASE, KubeApi, lease_is_live
from engine.kube.json import text

# Its lease lives for a minute: a controller that comes back is seen within half of it.
ASKED_EVERY_SECONDS = 30.0


class Predecessor:
    """One controller, by its leader lease; asked for seldom, by one for all who want to know."""

    def __init__(self, kube: KubeApi, namespace: str, lease: str) -> None:
        self._kube = kube
        self._namespace = namespace
        self._lease = lease
        self._asking = asyncio.Lock()
        self._asked = float("-inf")
        self._leader = ""

    async def leads(self) -> str:
        """Why nothing may be done instead of it now, empty if it does not lead."""
        async with self._asking:
            if time.monotonic() - self._asked >= ASKED_EVERY_SECONDS:
                self._leader = await self._holder()
                self._asked = time.monotonic()
        if not self._leader:
            return ""
        return f"yawol still leads ({self._leader}): scale it down and remove the lease {self._namespace}/{self._lease}"

    async def _holder(self) -> str:
        try:
            lease = await self._kube.get(LEASE, self._namespace, self._lease)
        except Absent:
            return ""
        return text(lease, "spec", "holderIdentity") if lease_is_live(lease, datetime.now(UTC)) else ""
