"""Whether the 3scale operator still leads: two that serve the same objects would undo each other's work.

It elects a leader only where it is told to (`--enable-leader-election`), by a Lease in the namespace that it runs in,
which is that of the objects where it is installed for one namespace. While that Lease is live nothing is done for the
objects; that it is no more sends no event, so they look again.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta

from engine.errors import Absent
from engine.kube import LEASE, KubeApi, lease_is_live
from engine.kube.json import text

LEADER_LEASE = "82355b9c.3scale.net"
# Its lease lives for 15 s; many objects ask.
ASKED_EVERY_SECONDS = 30.0
HELD_FOR = timedelta(minutes=1)


class Predecessor:
    """The operator, in whichever namespace it runs; asked for seldom, by one for all who want to know."""

    def __init__(self, kube: KubeApi, namespace: str = "") -> None:
        self._kube = kube
        self._namespace = namespace
        self._asking = asyncio.Lock()
        self._known: dict[str, tuple[float, str]] = {}

    async def leads(self, namespace: str) -> str:
        """Why nothing may be done for objects of a namespace now, empty if it does not lead."""
        where = self._namespace or namespace
        async with self._asking:
            asked, leader = self._known.get(where, (float("-inf"), ""))
            if time.monotonic() - asked >= ASKED_EVERY_SECONDS:
                leader = await self._holder(where)
                self._known[where] = (time.monotonic(), leader)
        if not leader:
            return ""
        return f"the 3scale operator still leads ({leader}): scale it down and remove the lease {where}/{LEADER_LEASE}"

    async def _holder(self, namespace: str) -> str:
        try:
            lease = await self._kube.get(LEASE, namespace, LEADER_LEASE)
        except Absent:
            return ""
        return text(lease, "spec", "holderIdentity") if lease_is_live(lease, datetime.now(UTC)) else ""
