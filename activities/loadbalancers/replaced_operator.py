"""Whether yawol's controller of a kind still leads; each of yawol's four controllers has its own leader election.

While a controller leads, Perdure's lifecycles of its kind change nothing in the cluster or the cloud.
"""

from __future__ import annotations

from activities.replaced_operator import Leaders
from domain.identity import Kind
from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET, SERVICE
from engine.kube import KubeApi

LEASES = {
    SERVICE.name: "4c878ae2.stackit.cloud",
    LOAD_BALANCER.name: "3a7ac996.stackit.cloud",
    LOAD_BALANCER_SET.name: "rgp5vg43.stackit.cloud",
    LOAD_BALANCER_MACHINE.name: "tanf7ges.stackit.cloud",
}


class Predecessor:
    def __init__(self, kube: KubeApi, namespace: str) -> None:
        self._leaders = Leaders(kube)
        self._namespace = namespace

    async def leads(self, kind: Kind) -> str:
        """Why Perdure may not act on the kind: yawol's controller still leads. Empty if Perdure may act."""
        return await self._leaders.leads("yawol", self._namespace, LEASES[kind.name])
