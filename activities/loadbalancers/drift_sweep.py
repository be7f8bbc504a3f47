"""The sweep compares every project with its load balancers and machines, because changes in the cloud send no event.

An annotation wakes the lifecycle of an object that differs. The lifecycle removes the annotation when everything is
correct; until then the sweep skips the object.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from temporalio import activity

from activities.activity_class import Activities
from activities.loadbalancers import metrics
from activities.loadbalancers.pass_context import PassContext
from activities.openstack.observation import ProjectCloud, observe_project
from activities.openstack.session import Project
from activities.replaced_operator import HELD_FOR
from domain.loadbalancers import LOAD_BALANCER
from domain.loadbalancers.cloud.drift_sweep import (
    SWEEP_INTERVAL,
    difference_of_balancer,
    difference_of_machine,
    orphans,
    owned_by,
    to_be_compared,
)
from domain.loadbalancers.constants import DRIFT_ANNOTATION
from domain.loadbalancers.passes import SweepProjects
from domain.loadbalancers.project import ProjectReference
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerMachine
from domain.passes import SweptWorld
from domain.resource import timestamp
from domain.writes import JsonPatch
from engine.clock import now
from engine.errors import ApiError, Denied

# How many objects are compared before yielding to the event loop.
TOGETHER = 100

Owner = LoadBalancer | LoadBalancerMachine


class SweepActivities(Activities):
    def __init__(self, context: PassContext) -> None:
        self._context = context

    @activity.defn(name=SweepProjects.activity)
    async def sweep_projects(self, look: SweepProjects) -> SweptWorld:
        interval = self._context.settings.sweep or SWEEP_INTERVAL
        moment, due = now(), look.memory.next_sweep
        if due is not None and moment < due:
            return look.swept("all projects have been compared", due)
        context = self._context
        if not (look.dry_run or context.settings.observing) and (leader := await context.leads(LOAD_BALANCER)):
            return look.swept(leader, moment + HELD_FOR)
        balancers = await context.everywhere(LoadBalancer)
        machines = await context.everywhere(LoadBalancerMachine)
        if not balancers and not machines:
            return look.swept("there is no load balancer", None)
        objects: tuple[Owner, ...] = (*balancers, *machines)
        projects, troubles = await self._projects(objects)
        owners = {(each.metadata.namespace, each.metadata.name): each for each in balancers}
        owned = owned_by(objects)
        found: dict[str, metrics.Swept] = {}
        for place, (opened, members) in projects.items():
            cloud = await _observed(opened, troubles)
            if cloud is None:
                continue
            differing = 0
            for number, each in enumerate(members, 1):
                if number % TOGETHER == 0:
                    await asyncio.sleep(0)  # let heartbeats of other activities go out
                difference = _difference(each, cloud, owners, moment)
                differing += bool(difference)
                if difference and not (look.dry_run or context.hold(each.metadata)):
                    try:
                        await self._wake(each, moment)
                    except ApiError as error:
                        troubles.append(error.message)
            lost = orphans(cloud.security_groups, cloud.ports, cloud.servers, owned)
            found[place[-1]] = metrics.Swept(differing=differing, orphans=lost)
        metrics.SWEEPS.swept(found, interval)
        differed = sum(each.differing for each in found.values())
        why = f"{len(projects)} projects were compared, {differed} of {len(objects)} objects differed"
        return look.swept("; ".join((why, *sorted(set(troubles)))), moment + interval)

    async def _projects(
        self, objects: Iterable[Owner]
    ) -> tuple[dict[tuple[str, ...], tuple[list[Project], list[Owner]]], list[str]]:
        by_reference: defaultdict[ProjectReference, list[Owner]] = defaultdict(list)
        for each in objects:
            if to_be_compared(each):
                by_reference[ProjectReference.of(each)].append(each)
        found: dict[tuple[str, ...], tuple[list[Project], list[Owner]]] = {}
        troubles = []
        for reference, members in by_reference.items():
            try:
                project = await asyncio.to_thread(self._context.projects.project, reference)
            except ApiError as error:
                troubles.append(error.message)
                continue
            opened, owners = found.setdefault(project.place, ([], []))
            opened.append(project)
            owners.extend(members)
        return found, troubles

    async def _wake(self, differs: Owner, moment: datetime) -> None:
        meta = differs.metadata
        patch: JsonPatch = {"metadata": {"annotations": {DRIFT_ANNOTATION: timestamp(moment)}}}
        await self._context.patch(differs.kind_of, meta.namespace, meta.name, patch)


async def _observed(opened: Iterable[Project], troubles: list[str]) -> ProjectCloud | None:
    for project in opened:
        try:
            return await asyncio.to_thread(observe_project, project)
        except ApiError as error:
            troubles.append(error.message)
            if not isinstance(error, Denied):
                break
    return None


def _difference(each: Owner, cloud: ProjectCloud, owners: dict[tuple[str, str], LoadBalancer], moment: datetime) -> str:
    if isinstance(each, LoadBalancer):
        return difference_of_balancer(each, cloud.of_load_balancer(each), moment)
    reference = each.spec.load_balancer_ref
    owner = owners.get((reference.namespace, reference.name))
    return difference_of_machine(each, cloud.of_machine(each), owner) if owner else ""
