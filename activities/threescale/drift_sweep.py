"""The sweep compares tenants with their objects (`domain/threescale/drift_schedule.py`).

An object that differs gets an annotation, which wakes it. Its pass then compares and corrects all of its entries; until
then the sweep skips the object. Tenants are compared concurrently, each with its own limit of calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime

from temporalio import activity

from activities.activity_class import Activities
from activities.threescale import metrics
from activities.threescale.drift_comparison import Comparison
from activities.threescale.errors import of_known_shape
from activities.threescale.pass_context import PassContext
from activities.threescale.secrets import Secrets
from activities.threescale.tenant_members import Members, members_of_tenants, permitted_answer
from domain.model import Model
from domain.passes import swept
from domain.refusal import ErrorType
from domain.resource import CustomResource, timestamp
from domain.threescale.drift import (
    COMPARED,
    Lists,
    differences,
    in_step,
    in_turn,
    is_listed,
    lists_for,
    with_list,
    without_owner,
)
from domain.threescale.drift_schedule import COMPARED_PER_SWEEP, COMPARES_FOR, DRIFT, SWEEP, drift_noted, no_sweep
from domain.threescale.observed import Memory
from domain.threescale.passes import SweepTenants, ThreescaleWorld
from engine.clock import now
from engine.errors import ApiError, unless_absent
from engine.pauses import held

# Errors of one object that every other object of the tenant would get, too.
_OF_THE_TENANT = frozenset({ErrorType.THROTTLED, ErrorType.UNAVAILABLE})


class Swept(Model):
    differing: int = 0
    troubles: tuple[str, ...] = ()


class SweepActivities(Activities):
    def __init__(self, context: PassContext) -> None:
        self._context = context

    @activity.defn(name=SweepTenants.activity)
    async def sweep_tenants(self, look: SweepTenants) -> ThreescaleWorld:
        await self._context.cache.reached({})
        moment, interval = now(), self._context.settings.sweep or SWEEP
        objects = self._context.cache.everything(*COMPARED)
        if early := no_sweep(look.memory, objects, moment, interval):
            return _world(look, *early)
        secrets = self._context.secrets()
        tenants, closed = await members_of_tenants(objects, secrets)
        unread = {each.message for each in closed.values() if isinstance(each, ApiError)}
        found = await asyncio.gather(*(self._swept(each, secrets, moment, look) for each in tenants))
        differed = sum(each.differing for each in found)
        troubles = sorted(unread.union(*(each.troubles for each in found)))
        why = f"{len(tenants)} tenants were compared, {differed} of {len(objects)} objects differed"
        return _world(look, "; ".join((why, *troubles)), moment + interval, sweeps=look.memory.sweeps + 1)

    async def _swept(self, tenant: Members, secrets: Secrets, moment: datetime, look: SweepTenants) -> Swept:
        lists, unread = await self._lists(tenant, secrets)
        differing = [each.resource for each in differences(tenant.objects, lists)]
        below, uncompared = await self._compared(tenant, lists, differing, look)
        differing += below
        unread += uncompared
        failure = "" if look.dry_run else await self._wake_all(differing, moment)
        if not unread:
            lost = without_owner(tenant.objects, lists)
            url = tenant.accounts[0].url
            metrics.swept(url, moment, differing=len(differing), without_owner=len(lost))
        return Swept(differing=len(differing), troubles=tuple(filter(None, (*unread, failure))))

    async def _lists(self, tenant: Members, secrets: Secrets) -> tuple[Lists, list[str]]:
        lists: Lists = {}
        unread: list[str] = []
        slot = self._context.tenants.calls(tenant.accounts[0].url, "", insecure=tenant.insecure).slot()
        try:
            async with slot:
                for read in lists_for(each for each in tenant.objects if in_step(each)):
                    try:
                        answer = await permitted_answer(self._context.tenants, tenant, read, secrets)
                        with of_known_shape(read.named(tenant.accounts[0].url)):
                            lists = with_list(lists, read, answer)
                    except ApiError as error:
                        unread.append(error.message)
        except ApiError as error:  # no free slot
            unread.append(error.message)
        return lists, unread

    async def _compared(
        self, tenant: Members, lists: Lists, differing: Sequence[CustomResource], look: SweepTenants
    ) -> tuple[list[CustomResource], list[str]]:
        """Compare this sweep's share of Products and Backends. Return those that differ, and the errors."""
        comparison, found, unread = Comparison(self._context, lists), list[CustomResource](), list[str]()
        known, ends = {each.metadata.uid for each in differing}, now() + COMPARES_FOR
        for each in in_turn(tenant.objects, look.memory.sweeps, COMPARED_PER_SWEEP):
            if each.metadata.uid in known or not is_listed(each, lists) or await self._is_left_alone(each):
                continue
            if now() > ends:
                unread.append(f"{tenant.accounts[0].url} was not compared completely within {COMPARES_FOR}")
                break
            try:
                if await comparison.differs(each):
                    found.append(each)
            except ApiError as error:
                unread.append(error.message)
                if error.type in _OF_THE_TENANT:
                    break
        return found, unread

    async def _wake_all(self, differing: Iterable[CustomResource], moment: datetime) -> str:
        trouble = ""
        for each in differing:
            try:
                await self._wake(each, moment)
            except ApiError as error:
                trouble = error.message
        return trouble

    async def _wake(self, differs: CustomResource, moment: datetime) -> None:
        meta = differs.metadata
        if await self._is_left_alone(differs):
            return
        patch: dict[str, object] = {"metadata": {"annotations": {DRIFT: timestamp(moment)}}}
        answer = await unless_absent(self._context.kube.patch(differs.kind_of, meta.namespace, meta.name, patch))
        if answer is not None:
            self._context.cache.learn(differs.kind_of, answer)

    async def _is_left_alone(self, each: CustomResource) -> bool:
        """Whether the sweep skips the object: its own pass will compare it, or it must not be changed."""
        meta = each.metadata
        hold = held(each.kind_of.area, meta.annotations, self._context.settings)
        return drift_noted(meta) or bool(hold) or bool(await self._context.operator_leads(meta.namespace))


def _world(look: SweepTenants, why: str, due: datetime | None, sweeps: int | None = None) -> ThreescaleWorld:
    memory = Memory(next_sweep=due, sweeps=look.memory.sweeps if sweeps is None else sweeps)
    return ThreescaleWorld(key=look.key, known=memory, decision=swept(why, due, over="tenants"))
