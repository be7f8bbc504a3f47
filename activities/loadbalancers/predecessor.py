"""Whether one of yawol's controllers still leads: two that serve the same objects would undo each other's work.

Each of its four controllers elects a leader of its own, and each kind is left alone while its controller leads: neither
the objects nor what they have in the cloud are touched or looked at.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta

from domain.identity import Kind
from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET, SERVICE
from domain.loadbalancers.constants import LOAD_BALANCER_LEASE, MACHINE_LEASE, SERVICE_LEASE, SET_LEASE
from engine.errors import Absent
from engine.kube import LEASE, KubeApi, lease_is_live
from engine.kube.json import text

# Its lease lives for a minute: a controller that comes back is seen within half of it.
ASKED_EVERY_SECONDS = 30.0
# That another controller has stopped leading sends no event.
HELD_FOR = timedelta(minutes=1)

LEASES = {
    SERVICE.name: SERVICE_LEASE,
    LOAD_BALANCER.name: LOAD_BALANCER_LEASE,
    LOAD_BALANCER_SET.name: SET_LEASE,
    LOAD_BALANCER_MACHINE.name: MACHINE_LEASE,
}


class Predecessor:
    """The controller of one kind, by its leader lease; asked for seldom, by one for all who want to know."""

    def __init__(self, kube: KubeApi, namespace: str, kind: Kind) -> None:
        self._kube = kube
        self._namespace = namespace
        self._lease = LEASES[kind.name]
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
