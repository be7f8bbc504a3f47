"""The steps of load balancers in OpenStack as activities: one for each action of
`domain/loadbalancers/cloud/steps.py`.

A step runs on a thread, which cannot be stopped: a cancelled activity waits until the thread ends, to know the result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

from temporalio import activity

from activities.activity_class import Activities
from activities.loadbalancers.pass_context import PassContext
from activities.openstack.observation import observe_load_balancer, observe_machine, observe_security_group
from activities.openstack.server_user_data import birth
from activities.openstack.session import Project
from activities.openstack.steps import EFFECTS, await_server, carry_out
from domain.loadbalancers.balancer_world import LookAtBalancer, SeenBalancer
from domain.loadbalancers.cloud import steps
from domain.loadbalancers.cloud.folded_results import Brought
from domain.loadbalancers.machine.world import AwaitServer, LookAtMachine, SeenMachine
from domain.loadbalancers.project import ProjectReference
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerMachine
from engine.clock import now
from engine.errors import Absent

T = TypeVar("T")


class CloudActivities(Activities):
    def __init__(self, context: PassContext) -> None:
        self._context = context

    def all(self) -> Sequence[Callable[..., object]]:
        return (*map(self._of, EFFECTS), *super().all())

    def _of(self, kind: type[steps.Step]) -> Callable[..., object]:
        async def take(step: steps.Step) -> Brought:
            return await self._in_project(step.project, partial(carry_out, step=step))

        take.__annotations__ = {"step": kind, "return": Brought}  # by this, Temporal decodes the input
        return activity.defn(name=kind.activity)(take)

    @activity.defn(name=steps.CreateServer.activity)
    async def create_server(self, step: steps.CreateServer) -> Brought:
        context = self._context
        of = step.load_balancer
        machine = await context.read(LoadBalancerMachine, step.namespace, step.name)
        balancer = await context.read(LoadBalancer, of.namespace, of.name)
        if machine is None or balancer is None:
            raise Absent(f"machine {step.namespace}/{step.name} or its LoadBalancer {of.namespace}/{of.name} is gone")
        born = partial(birth, context.blocking, context.settings, machine, balancer, step.virtual_address)
        return await self._in_project(step.project, partial(carry_out, step=step, user_data=born))

    @activity.defn(name=LookAtBalancer.activity)
    async def look_at_load_balancer(self, look: LookAtBalancer) -> SeenBalancer:
        observe = observe_security_group if look.groups_only else observe_load_balancer
        found = await self._in_project(look.project, partial(observe, balancer=look.balancer))
        return SeenBalancer(cloud=found, at=now())

    @activity.defn(name=LookAtMachine.activity)
    async def look_at_machine(self, look: LookAtMachine) -> SeenMachine:
        found = await self._in_project(look.project, partial(observe_machine, machine=look.machine))
        return SeenMachine(cloud=found, at=now())

    @activity.defn(name=AwaitServer.activity)
    async def await_server(self, look: AwaitServer) -> Brought:
        found = await self._in_project(look.project, partial(await_server, server_id=look.id))
        return Brought(server=found, gone="" if found else look.id)

    async def _in_project(self, where: ProjectReference | None, call: Callable[[Project], T]) -> T:
        assert where is not None  # noqa: S101 - a decision names the project
        projects = self._context.projects
        return await to_its_end(asyncio.to_thread(lambda: call(projects.project(where))))


async def to_its_end(made: Coroutine[Any, Any, T]) -> T:
    """Wait for the result even if the activity is cancelled, but not if its worker shuts down."""
    task = asyncio.ensure_future(made)
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            details = activity.cancellation_details()
            if details is None or not details.cancel_requested:
                raise
        except Exception:
            break
    return await task
