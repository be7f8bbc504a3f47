"""Lifecycles of load balancers. `domain/loadbalancers/` decides.

| lifecycle | one for each |
|---|---|
| Service | Service of type LoadBalancer |
| LoadBalancer | LoadBalancer: its port, addresses, security group, and its sets |
| LoadBalancerSet | LoadBalancerSet: the number and health of its machines |
| LoadBalancerMachine | LoadBalancerMachine: its rights, port and server |
| OpenStackProjects | installation: all OpenStack projects in bulk |
"""

from __future__ import annotations

from typing import ClassVar

from domain.loadbalancers.balancer_lifecycle import decide_balancer
from domain.loadbalancers.balancer_world import BalancerWorld, ObserveBalancer
from domain.loadbalancers.machine.lifecycle import decide_machine
from domain.loadbalancers.machine.world import MachineWorld, ObserveMachine
from domain.loadbalancers.passes import RETRYABLE, LoadBalancerWorld, PassService, PassSet, SweepProjects
from domain.passes import SweptWorld
from workflows.durable_driver import Entity
from workflows.lifecycle_declaration import lifecycle
from workflows.passes import Passes


@lifecycle("Service", world=LoadBalancerWorld, observe=PassService)
class ServiceWorkflow(Passes[LoadBalancerWorld]):
    """A Service of type LoadBalancer: it gets a LoadBalancer and shows the LoadBalancer's address.

        Creating ──► Ready ──► Releasing ──► (end)
            └──► Unservable ◄──┘

    The lifecycle also ends when the Service continues without Perdure's load balancer, because its type or class
    changed. If type or class changes back just before the end, the lifecycle continues.
    """

    async def life(self) -> None:
        await self.live()
        while self.dirty and self.world.exists:
            await self.live()


@lifecycle("LoadBalancer", world=BalancerWorld, observe=ObserveBalancer, decide=decide_balancer)
class LoadBalancerWorkflow(Entity[BalancerWorld]):
    """A LoadBalancer: its objects in OpenStack and its sets.

    security group --> rules, port --> floating IP --> sets --> Starting --machines ready--> Ready --deleted--> gone
                                                         ^                                     |
                                                         +------------ new template -----------+
    """

    looks_at_deadline: ClassVar[bool] = True
    retryable_phases = RETRYABLE


@lifecycle("LoadBalancerSet", world=LoadBalancerWorld, observe=PassSet)
class LoadBalancerSetWorkflow(Passes[LoadBalancerWorld]):
    retryable_phases = RETRYABLE


@lifecycle("LoadBalancerMachine", world=MachineWorld, observe=ObserveMachine, decide=decide_machine)
class LoadBalancerMachineWorkflow(Entity[MachineWorld]):
    """A LoadBalancerMachine.

    rights, port --> server --> boots (10 minutes, then replaced) --> serves --deleted--> server gone --> gone
                                  ^                                     |
                                  +------- silent for 3 minutes --------+

    A machine that misses a deadline is replaced by its set. A machine without a set deletes itself.
    """

    looks_at_deadline: ClassVar[bool] = True
    retryable_phases = RETRYABLE


@lifecycle("OpenStackProjects", world=SweptWorld, observe=SweepProjects)
class OpenStackProjectsWorkflow(Passes[SweptWorld]):
    """Compares all OpenStack projects with the custom resources, every five minutes while there are load balancers.

        woken by a new LoadBalancer --> sweep (one activity, five list calls per project) --> wait for the next sweep

    The sweep annotates each object that differs, which wakes the object's lifecycle.
    """

    has_object: ClassVar[bool] = False
