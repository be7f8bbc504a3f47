"""The cluster's instances: AWSMachines, AWSMachinePools, and Nodes if served, by instance id, host and group.

The instance of a deleted object is remembered for a while, because EC2 reports the instance's end at about the same
time. Without that, the event would wait for an object.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from sys import intern

from domain.instances import AWS_MACHINE, AWS_MACHINE_POOL, NODE
from domain.instances.event_routing import group_of
from domain.instances.events import InstanceEvent
from domain.instances.provider_ids import group_of_arn, instance_of_node, instance_of_provider_id, region_of_provider_id
from domain.instances.workflow_ids import GroupKey
from engine.kube.api import KubeApi
from engine.kube.indexer import Indexer
from engine.kube.json import JsonObject, at, sequence, text
from engine.kube.reflector import Followed, Name, Reflector, Timing

# More than the number of objects that are deleted while an event of an unknown instance is kept.
_GONE_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Holder:
    """The search keys of an AWSMachine, AWSMachinePool or Node."""

    name: Name
    resource_version: str
    instances: tuple[str, ...] = ()
    region: str = ""  # the region of a machine or Node; empty if unknown
    host: str = ""  # the dedicated host of a machine's instance
    group: GroupKey | None = None  # a pool's Auto Scaling group
    expectant: bool = False  # a machine that has no instance yet

    def lives_in(self, account: str, region: str) -> bool:
        """Whether the object may be in this account and region; True if the object does not say where it is."""
        if self.group is not None:
            return (self.group.account, self.group.region) == (account, region)
        return self.region in ("", region)


def machine(obj: JsonObject) -> Holder:
    provider_id = text(obj, "spec", "providerID")
    found = (text(obj, "spec", "instanceID"), instance_of_provider_id(provider_id))
    instances = tuple(dict.fromkeys(each for each in found if each))
    ending = at(obj, "metadata", "deletionTimestamp") or text(obj, "status", "failureReason")
    return Holder(
        name=_name(obj),
        resource_version=text(obj, "metadata", "resourceVersion"),
        instances=instances,
        region=intern(region_of_provider_id(provider_id)),
        host=text(obj, "status", "dedicatedHost", "id"),
        expectant=not (instances or ending),
    )


def pool(obj: JsonObject) -> Holder:
    listed = (
        instance_of_provider_id(each) for each in sequence(obj, "spec", "providerIDList") if isinstance(each, str)
    )
    return Holder(
        name=_name(obj),
        resource_version=text(obj, "metadata", "resourceVersion"),
        instances=tuple(dict.fromkeys(each for each in listed if each)),
        group=group_of_arn(text(obj, "spec", "providerID")),
    )


def node(obj: JsonObject) -> Holder:
    """A Node never counts as waiting for an instance, because it may belong to another cloud."""
    provider_id = text(obj, "spec", "providerID")
    instance = instance_of_node(provider_id)
    return Holder(
        name=_name(obj),
        resource_version=text(obj, "metadata", "resourceVersion"),
        instances=(instance,) if instance else (),
        region=intern(region_of_provider_id(provider_id)),
    )


def _name(obj: JsonObject) -> Name:
    return intern(text(obj, "metadata", "namespace")), text(obj, "metadata", "name")


class Index:
    def __init__(self) -> None:
        self.machines: Indexer[Holder] = Indexer(
            {
                "instance": lambda holder: holder.instances,
                "host": lambda holder: (holder.host,) if holder.host else (),
                "expectant": lambda holder: (True,) if holder.expectant else (),
            }
        )
        self.pools: Indexer[Holder] = Indexer(
            {
                "instance": lambda holder: holder.instances,
                "group": lambda holder: (holder.group,) if holder.group is not None else (),
            }
        )
        self.nodes: Indexer[Holder] = Indexer({"instance": lambda holder: holder.instances})
        self._gone: dict[str, None] = {}

    def knows(self, event: InstanceEvent) -> bool:
        group = group_of(event)
        holders = self._holders(event.instance_id)
        found = any(each.lives_in(event.account, event.region) for each in holders)
        return found or (group is not None and self.has_group(group))

    def remembers(self, instance_id: str) -> bool:
        return instance_id in self._gone

    def has_group(self, group: GroupKey) -> bool:
        return bool(self.pools.find("group", group))

    def on_host(self, host: str) -> tuple[str, ...]:
        return tuple(sorted({each for holder in self.machines.find("host", host) for each in holder.instances}))

    @property
    def may_appear(self) -> bool:
        return bool(self.machines.values_of("expectant"))

    def __len__(self) -> int:
        return len(self.machines) + len(self.pools) + len(self.nodes)

    def _holders(self, instance_id: str) -> list[Holder]:
        stores = (self.machines, self.pools, self.nodes)
        return [holder for each in stores for holder in each.find("instance", instance_id)]

    def changed(self, before: Holder | None, after: Holder | None) -> None:
        held = before.instances if before is not None else ()
        for instance_id in (each for each in held if not self._holders(each)):
            self._gone[instance_id] = None
            if len(self._gone) > _GONE_REMEMBERED:
                del self._gone[next(iter(self._gone))]
        for instance_id in after.instances if after is not None else ():
            self._gone.pop(instance_id, None)


class Feed:
    def __init__(self, api: KubeApi, index: Index, timing: Timing | None = None, *, nodes: bool = False) -> None:
        followed = [(AWS_MACHINE, machine, index.machines), (AWS_MACHINE_POOL, pool, index.pools)]
        followed += [(NODE, node, index.nodes)] if nodes else []
        self._reflectors = tuple(
            Reflector(api, Followed(kind), read, store, self, timing=timing) for kind, read, store in followed
        )
        self._index = index
        self._settled = asyncio.Event()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for reflector in self._reflectors:
                group.create_task(reflector.run(), name=f"reflector {reflector.followed.name}")

    async def settled(self) -> None:
        await self._settled.wait()

    # Events from the reflectors.

    def started(self, objects: list[Holder]) -> None:
        self._look()

    def changed(self, before: Holder | None, after: Holder | None, *, seen_live: bool) -> None:
        self._index.changed(before, after)

    def absent(self) -> None:
        self._look()

    def _look(self) -> None:
        if self.ready:
            self._settled.set()

    # State, for health checks.

    @property
    def ready(self) -> bool:
        return all(each.listed or not each.installed for each in self._reflectors)

    @property
    def doubtful(self) -> bool:
        """Whether an instance that is not indexed may still belong to an object."""
        return not self.ready or any(each.trouble and each.installed for each in self._reflectors)

    def unlisted(self) -> Iterable[str]:
        for each in self._reflectors:
            if not each.listed and each.installed:
                yield f"{each.followed.name} is not listed yet{f': {each.trouble}' if each.trouble else ''}"

    def notes(self) -> Iterable[str]:
        for each in self._reflectors:
            if not each.installed:
                yield f"{each.followed.name} is not installed in the cluster"
            elif each.listed and each.trouble:
                yield f"{each.followed.name}: {each.trouble}"
