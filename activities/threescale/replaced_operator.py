"""Whether the 3scale operator still leads.

It elects a leader only with `--enable-leader-election`, by a Lease in its own namespace.
"""

from __future__ import annotations

from activities.replaced_operator import Leaders
from engine.kube import KubeApi

LEADER_LEASE = "82355b9c.3scale.net"


class Predecessor:
    def __init__(self, kube: KubeApi, namespace: str = "") -> None:
        self._leaders = Leaders(kube)
        self._namespace = namespace

    async def leads(self, namespace: str) -> str:
        return await self._leaders.leads("the 3scale operator", self._namespace or namespace, LEADER_LEASE)
