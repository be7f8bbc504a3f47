"""Row i of `perdure bench instances`: simulates what other systems do during the storm.

Cluster API, MachineSets and a MachineHealthCheck replace and delete Machines, Auto Scaling replaces instances, and AWS
completes reboots and maintenance.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial

from domain.instances import AWS_MACHINE, MACHINE
from domain.instances.constants import DELETE_FIRST_ANNOTATION
from domain.instances.interruption_policy import Reaction
from engine.errors import Absent, Unavailable
from engine.kube import NODE, POD
from engine.kube.json import mapping, text
from localcloud.bench.instances_storm_fleet import CONTROL_PLANE, OF_NODES, POOL, RETURNS, Member, Storm
from localcloud.services import REGION

_UNHEALTHY_SECONDS = 10
_DRAIN_SECONDS = 2
_PREPARED_SECONDS = 5


class ClusterApi:
    def __init__(self, on: Storm) -> None:
        self._on = on
        self._making: Counter[tuple[str, str]] = Counter()
        self._begun: set[str] = set()
        self._failed: set[str] = set()
        self._over: set[str] = set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            while True:
                for member in tuple(self._on.members.values()):
                    self._consider(member, group)
                for where, wanted in tuple(self._on.seen.replicas.items()):
                    await self._scale(where, wanted, group)
                await asyncio.sleep(0.2)

    def _consider(self, member: Member, group: asyncio.TaskGroup) -> None:
        seen, name = self._on.seen, member.instance
        if name in self._begun:
            return
        if name in seen.deleted:
            self._begun.add(name)
            group.create_task(self._end(member))
            return
        # Only members with a cause: a forged event's label is corrected by EC2's answer half a minute later.
        ended = member.cause and member.cause != "launch" and self._on.state(name) in ("stopped", "terminated")
        if ended and name not in self._failed:
            self._failed.add(name)
            group.create_task(self._remedy(member))
        if member.cause in RETURNS and name not in self._over and self._prepared(member):
            self._over.add(name)
            group.create_task(self._complete(member))

    def _prepared(self, member: Member) -> bool:
        seen, name = self._on.seen, member.instance
        return bool(seen.tainted[name] if member.reaction is Reaction.TAINT else seen.cordoned[name])

    async def _complete(self, member: Member) -> None:
        on, name = self._on, member.instance
        if member.reaction is Reaction.DRAIN:
            while await on.exists(POD, member.cluster, name):  # noqa: ASYNC110 - a rare look at one Pod
                await asyncio.sleep(0.5)
        await asyncio.sleep(_PREPARED_SECONDS)
        code, event, start = on.planned[name]
        over = {"code": code, "event": event, "start": start, "status": "closed", "entity_status": "RESOLVED"}
        announce = on.lab.emulator.announce
        await asyncio.to_thread(announce, "health", member.account, REGION, name, **over)

    async def _remedy(self, member: Member) -> None:
        await asyncio.sleep(_UNHEALTHY_SECONDS)
        if member.cluster == OF_NODES:
            self._begun.add(member.instance)
            await self._end(member)
            return
        await _insist(partial(self._on.lab.kube.delete, MACHINE, member.cluster, member.instance))

    async def _end(self, member: Member) -> None:
        on, kube, name = self._on, self._on.lab.kube, member.instance
        on.emptied[name] = not await on.exists(POD, member.cluster, name)
        await asyncio.sleep(_DRAIN_SECONDS)
        await _insist(partial(kube.delete, POD, member.cluster, name))
        await asyncio.to_thread(on.client("ec2", member.account).terminate_instances, InstanceIds=[name])
        await _insist(partial(kube.delete, NODE, "", name))
        for kind in () if member.cluster == OF_NODES else (AWS_MACHINE, MACHINE):
            await _insist(partial(on.lab.patch, kind, member.cluster, name, {"metadata": {"finalizers": None}}))
            await _insist(partial(kube.delete, kind, member.cluster, name))
        on.replaced += 1
        if member.group == CONTROL_PLANE or (member.cluster == OF_NODES and member.group != POOL):
            await self._make(member.cluster, member.account, member.group)

    async def _make(self, cluster: str, account: str, group: str) -> None:
        (instance,) = await asyncio.to_thread(self._on.launch, account, 1, spot=False)
        await self._on.joins(Member(instance, cluster, account, group))

    async def _scale(self, where: tuple[str, str], wanted: int, group: asyncio.TaskGroup) -> None:
        seen = self._on.seen
        own = [each for each in self._on.members.values() if (each.cluster, each.group) == where]
        there = [each for each in own if each.instance not in seen.gone]
        for _ in range(wanted - len(there) - self._making[where]):
            self._making[where] += 1
            group.create_task(self._replica(where))
        staying = [each for each in there if each.instance not in seen.deleted]
        if len(staying) > wanted:
            await self._shrink(staying, len(staying) - wanted)

    async def _replica(self, where: tuple[str, str]) -> None:
        account = self._on.accounts[where[0]]
        (instance,) = await asyncio.to_thread(self._on.launch, account, 1, spot=False)
        member = Member(instance, where[0], account, where[1])
        self._on.members[instance] = member
        self._making[where] -= 1
        await self._on.joins(member)

    async def _shrink(self, staying: Sequence[Member], surplus: int) -> None:
        kube, annotated = self._on.lab.kube, defaultdict[bool, list[Member]](list)
        for each in staying:
            with suppress(Absent):
                found = await kube.get(MACHINE, each.cluster, each.instance)
                if text(found, "metadata", "deletionTimestamp"):
                    surplus -= 1
                    continue
                annotated[DELETE_FIRST_ANNOTATION in mapping(found, "metadata", "annotations")].append(each)
        # Without an annotation the youngest goes first: a replacement that is not needed any more.
        for each in [*annotated[True], *reversed(annotated[False])][: max(0, surplus)]:
            await _insist(partial(kube.delete, MACHINE, each.cluster, each.instance))


async def _insist(call: Callable[[], Awaitable[object]]) -> None:
    while True:
        try:
            await call()
        except Absent:
            return
        except Unavailable:
            await asyncio.sleep(1)
        else:
            return
