"""Whether the 3scale operator still leads.

It elects a leader only where it is told to (`--enable-leader-election`), by a Lease in the namespace that it runs in,
which is that of the objects where it is installed for one namespace.
"""

from __future__ import annotations

from activities.leaders import Leaders
from engine.kube import KubeApi

LEADER_LEASE = "82355b9c.3scale.net"


class Predecessor:
    """The operator, in whichever namespace it runs."""

    def __init__(self, kube: KubeApi, namespace: str = "") -> None:
        self._leaders = Leaders(kube)
        self._namespace = namespace

    async def leads(self, namespace: str) -> str:
        """Why nothing may be done for objects of a namespace now, empty if it does not lead."""
        return await self._leaders.leads("the 3scale operator", self._namespace or namespace, LEADER_LEASE)
