"""The lifecycles of load balancers. What should happen is decided in `domain/loadbalancers/`.

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

from domain.loadbalancers.balancer import decide_balancer
from domain.loadbalancers.balancer_world import BalancerWorld, ObserveBalancer
from domain.loadbalancers.machine.lifecycle import decide_machine
from domain.loadbalancers.machine.world import MachineWorld, ObserveMachine
from domain.loadbalancers.passes import (
    RETRYABLE,
    LoadBalancerWorld,
    PassService,
    PassSet,
    SweepProjects,
    SweptProjects,
)
from workflows.entity import Entity
from workflows.lifecycle import lifecycle
from workflows.passes import Passes


@lifecycle("Service", world=LoadBalancerWorld, observe=PassService)
class ServiceWorkflow(Passes[LoadBalancerWorld]):
    """A Service of type LoadBalancer: it is given a LoadBalancer, whose address it shows.

        Creating ──► Ready ──► Releasing ──► (end)
            └──► Unservable ◄──┘

    The lifecycle ends when the Service is gone, and also when the Service lives on without a load balancer of ours: its
    type or class has changed. If that changes back in the moment of the end, the wake is heard before the end.
    """

    async def life(self) -> None:
        """Until nothing is left to look after."""
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
    """A LoadBalancerSet: the number of its machines, and the replacement of unhealthy ones."""

    retryable_phases = RETRYABLE


@lifecycle("LoadBalancerMachine", world=MachineWorld, observe=ObserveMachine, decide=decide_machine)
class LoadBalancerMachineWorkflow(Entity[MachineWorld]):
    """A LoadBalancerMachine.

    rights, port --> server --> boots (10 minutes, then replaced) --> serves --deleted--> server gone --> gone
                                  ^                                     |
                                  +------- silent for 3 minutes --------+

    Its deadlines are its set's as well, which replaces it; a machine of no set gives itself up.
    """

    looks_at_deadline: ClassVar[bool] = True
    retryable_phases = RETRYABLE


@lifecycle("OpenStackProjects", world=SweptProjects, observe=SweepProjects)
class OpenStackProjectsWorkflow(Passes[SweptProjects]):
    """The sweep over all OpenStack projects, every five minutes while there are load balancers.

        woken by a new LoadBalancer --> sweep (one activity, five lists a project) --> wait for the next one

    An object that differs from its project is woken by an annotation that the sweep writes.
    """

    has_object: ClassVar[bool] = False
