"""The objects of instances as one worker process knows them, found by the instance or the group without a request.

    watch streams, own writes --> mirrors --> by instance id, by group

A mirror is some milliseconds behind the API server. A look says in which version its AWSMachine was seen last, and is
given nothing older; what a write answered is put in at once. A mirror whose stream is broken is not read: whoever hands
events over is told that Kubernetes is unavailable, and keeps them. A kind that is not installed (pools are optional in
the AWS provider) has no objects.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import TypeVar

from activities.instances.cluster_accounts import ClusterAccounts
from domain.identity import Kind
from domain.instances import AWS_MACHINE, AWS_MACHINE_POOL, MACHINE
from domain.instances.names import GroupKey, InstanceKey, group_of_arn, instance_of_provider_id, region_of_provider_id
from domain.instances.resources import AWSMachine, AWSMachinePool, Machine
from domain.reading import read_all
from engine.errors import Absent, Unavailable
from engine.kube import KubeApi
from engine.kube.json import JsonObject, sequence, text
from engine.kube.reflector import Name, newer
from engine.kube.store import Followed, Mirror, Store

# Which instances, or groups, an object names.
_Id = TypeVar("_Id", bound=Hashable)
_Ids = Callable[[JsonObject], tuple[_Id, ...]]

_KINDS = (AWS_MACHINE, AWS_MACHINE_POOL, MACHINE)
_FIRST_LIST = 20.0
# Looks are part of workflow tasks, which are not to take five seconds.
_STREAM_BACK = 4.0


class KnownInstances:
    """AWSMachines, AWSMachinePools and Machines, mirrored and indexed."""

    def __init__(self, api: KubeApi, store: Store) -> None:
        self._api = api
        self._mirrors: dict[str, Mirror] = {kind.name: store.follow(Followed(kind)) for kind in _KINDS}
        # Not waited for: while they cannot be listed the account is unknown, and labels go on.
        self._accounts = ClusterAccounts(store)
        self._machines: defaultdict[str, set[Name]] = defaultdict(set)
        self._pools: defaultdict[str, set[Name]] = defaultdict(set)
        self._groups: defaultdict[GroupKey, set[Name]] = defaultdict(set)
        self._mirrors[AWS_MACHINE.name].listen(lambda before, after: _move(self._machines, _machine_ids, before, after))
        pools = self._mirrors[AWS_MACHINE_POOL.name]
        pools.listen(lambda before, after: _move(self._pools, _pool_ids, before, after))
        pools.listen(lambda before, after: _move(self._groups, _pool_groups, before, after))

    async def ready(self) -> None:
        """Until everything is known; one patience for all lists, and one for all streams.

        Raises:
            Unavailable: a list has not come, or a stream is broken and stays so.
        """
        clock = asyncio.get_running_loop().time
        listed_by = clock() + _FIRST_LIST
        for mirror in self._mirrors.values():
            if not mirror.listed:
                await _until(mirror, mirror.settled(), listed_by, "cannot be listed")
        back_by = clock() + _STREAM_BACK
        for mirror in self._mirrors.values():
            if mirror.listed and mirror.trouble:
                # Most breaks are over in seconds: whoever waits goes on at once, who fails only after a growing pause.
                await _until(mirror, mirror.current(), back_by, "is not followed")

    @property
    def may_appear(self) -> bool:
        """Whether an AWSMachine has no instance yet: events of an unknown one may be its."""
        return bool(self._machines.get(""))

    def instances(self) -> dict[str, AWSMachine]:
        """Every AWSMachine that has an instance, by its id."""
        found = (_oldest(self._objects(AWS_MACHINE, names)) for each, names in self._machines.items() if each)
        readable, _ = read_all(AWSMachine, (obj for obj in found if obj is not None))
        return {each.instance_id: each for each in readable}

    def pools(self) -> tuple[AWSMachinePool, ...]:
        """Every AWSMachinePool."""
        return read_all(AWSMachinePool, self._mirrors[AWS_MACHINE_POOL.name].all())[0]

    def pools_of(self, group: GroupKey) -> tuple[AWSMachinePool, ...]:
        """Every AWSMachinePool that has this group."""
        found = (self._mirrors[AWS_MACHINE_POOL.name].get(*name) for name in sorted(self._groups.get(group, ())))
        return read_all(AWSMachinePool, (each for each in found if each is not None))[0]

    async def machine(self, key: InstanceKey, version: str = "") -> AWSMachine | None:
        """The AWSMachine of an instance, no older than it was seen last."""
        found = _oldest(self._machines_of(key))
        if found is None:
            return None
        if version and newer(version, text(found, "metadata", "resourceVersion")):
            found = await self.fresh(AWS_MACHINE, text(found, "metadata", "namespace"), text(found, "metadata", "name"))
        return AWSMachine.model_validate(found) if found else None

    def namesakes(self, key: InstanceKey, machine: AWSMachine) -> tuple[AWSMachine, ...]:
        """Further AWSMachines that name the same instance: their labels are to be true, too."""
        itself = (machine.metadata.namespace, machine.metadata.name)
        return read_all(AWSMachine, (each for each in self._machines_of(key) if _name(each) != itself))[0]

    def pool(self, key: InstanceKey) -> AWSMachinePool | None:
        """The AWSMachinePool that has the instance in its list."""
        pools = self._objects(AWS_MACHINE_POOL, self._pools.get(key.instance_id, set()))
        found = _oldest([each for each in pools if _pool_in(each, key)])
        return AWSMachinePool.model_validate(found) if found else None

    def owner(self, machine: AWSMachine) -> Machine | None:
        """The Machine of an AWSMachine."""
        found = self._mirrors[MACHINE.name].get(machine.metadata.namespace, machine.machine)
        return Machine.model_validate(found) if found and machine.machine else None

    def account_of(self, machine: AWSMachine) -> str:
        """The account of the machine's cluster, empty if it is not known."""
        return self._accounts.account_of(machine)

    def learn(self, kind: Kind, obj: JsonObject) -> None:
        """What a write of ours has answered."""
        self._mirrors[kind.name].learn(obj)

    async def fresh(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        """An object as the API server has it now; None if it is gone."""
        try:
            found = await self._api.get(kind, namespace, name)
        except Absent:
            return None
        self.learn(kind, found)
        return found

    def _machines_of(self, key: InstanceKey) -> list[JsonObject]:
        found = self._objects(AWS_MACHINE, self._machines.get(key.instance_id, set()))
        return [each for each in found if self._machine_in(each, key)]

    def _machine_in(self, obj: JsonObject, key: InstanceKey) -> bool:
        """Whether a machine is in the instance's account and region, as far as it and its cluster say.

        Anybody who may send to a queue may name any id in an event.
        """
        if region_of_provider_id(text(obj, "spec", "providerID")) not in ("", key.region):
            return False
        readable, _ = read_all(AWSMachine, (obj,))
        return all(self.account_of(each) in ("", key.account) for each in readable)

    def _objects(self, kind: Kind, names: set[Name]) -> list[JsonObject]:
        return [each for name in sorted(names) if (each := self._mirrors[kind.name].get(*name)) is not None]


async def _until(mirror: Mirror, so: Awaitable[None], deadline: float, otherwise: str) -> None:
    try:
        async with asyncio.timeout_at(deadline):
            await so
    except TimeoutError:
        raise Unavailable(f"{mirror.followed.name} {otherwise}: {mirror.trouble}") from None


def _move(
    index: defaultdict[_Id, set[Name]],
    ids: _Ids[_Id],
    before: JsonObject | None,
    after: JsonObject | None,
) -> None:
    for each in ids(before) if before else ():
        index[each].discard(_name(before))
        if not index[each]:
            del index[each]
    for each in ids(after) if after else ():
        index[each].add(_name(after))


def _oldest(objects: Sequence[JsonObject]) -> JsonObject | None:
    """Of several objects that name one instance the oldest that is not being deleted."""
    return min(objects, key=_precedence, default=None)


def _precedence(obj: JsonObject) -> tuple[bool, str]:
    return bool(text(obj, "metadata", "deletionTimestamp")), text(obj, "metadata", "creationTimestamp")


def _name(obj: JsonObject | None) -> Name:
    return text(obj, "metadata", "namespace"), text(obj, "metadata", "name")


def _machine_ids(obj: JsonObject) -> tuple[str, ...]:
    """Its one instance, or the empty text for one that has none yet."""
    return (text(obj, "spec", "instanceID") or instance_of_provider_id(text(obj, "spec", "providerID")),)


def _pool_ids(obj: JsonObject) -> tuple[str, ...]:
    named = (instance_of_provider_id(each) for each in sequence(obj, "spec", "providerIDList") if isinstance(each, str))
    return tuple(each for each in named if each)


def _pool_in(obj: JsonObject, key: InstanceKey) -> bool:
    """Whether a pool is in the instance's account and region, as far as it says."""
    return all((each.account, each.region) == (key.account, key.region) for each in _pool_groups(obj))


def _pool_groups(obj: JsonObject) -> tuple[GroupKey, ...]:
    """A pool's one group, if it has one."""
    found = group_of_arn(text(obj, "spec", "providerID"))
    return (found,) if found else ()
