"""Whether one of yawol's controllers still leads.

Each of its four controllers has a leader election of its own, and each kind is left alone while its controller leads:
neither the objects nor their resources in the cloud are changed or observed.
"""

from __future__ import annotations

from activities.leaders import Leaders
from domain.identity import Kind
from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET, SERVICE
from domain.loadbalancers.constants import LOAD_BALANCER_LEASE, MACHINE_LEASE, SERVICE_LEASE, SET_LEASE
from engine.kube import KubeApi

LEASES = {
    SERVICE.name: SERVICE_LEASE,
    LOAD_BALANCER.name: LOAD_BALANCER_LEASE,
    LOAD_BALANCER_SET.name: SET_LEASE,
    LOAD_BALANCER_MACHINE.name: MACHINE_LEASE,
}


class Predecessor:
    """The controller of one kind, known by its leader Lease."""

    def __init__(self, kube: KubeApi, namespace: str, kind: Kind) -> None:
        self._leaders = Leaders(kube)
        self._namespace = namespace
        self._lease = LEASES[kind.name]

    async def leads(self) -> str:
        """Why its objects must be left alone now, empty if it does not lead."""
        return await self._leaders.leads("yawol", self._namespace, self._lease)
