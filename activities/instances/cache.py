"""The informer cache of instances' objects, with the indexes by which a pass finds them without a request.

    AWSMachine by the id of its instance · AWSMachinePool by the ids of its instances and by its group
    Machine by name and by its MachineDeployment · MachineDeployment by the instances that it replaces
    Node by the id of its instance, where Nodes are served · InterruptionPolicy, all of them

No pass gets an earlier version of an AWSMachine than the instance's previous pass. While a watch is broken, passes fail
as Unavailable. Passes do not wait for MachineDeployments: until MachineDeployments are listed, no replacement is seen.
Actions that change a MachineDeployment read it from the API server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

from activities.instances.cluster_accounts import ClusterAccounts
from domain.instances import AWS_MACHINE, AWS_MACHINE_POOL, INTERRUPTION_POLICY, MACHINE, MACHINE_DEPLOYMENT, NODE
from domain.instances.constants import DEPLOYMENT_LABEL, REPLACING_ANNOTATION
from domain.instances.interruption_policy import ReactionPolicy
from domain.instances.policy_selection import Choice, Selected, choose
from domain.instances.provider_ids import group_of_arn, instance_of_node, instance_of_provider_id, region_of_provider_id
from domain.instances.replacements import Replacement, marked, replacement_of
from domain.instances.resources import AWSMachine, AWSMachinePool, InterruptionPolicy, Machine, MachineDeployment, Node
from domain.instances.workflow_ids import GroupKey, InstanceKey
from domain.reading import read_all
from engine.errors import Unavailable
from engine.kube import KubeApi
from engine.kube.informer_cache import InformerCache, Mirror, Store
from engine.kube.json import JsonObject, mapping, sequence, text
from engine.kube.reflector import Followed, newer

_NODES = Followed(NODE, without=frozenset({"images"}))
_FIRST_LIST = 20.0
# Seconds for which a pass waits for a broken watch. Passes are part of workflow tasks, which must not take five
# seconds.
STREAM_BACK = 4.0


def _machine_instance(obj: JsonObject) -> tuple[str]:
    return (text(obj, "spec", "instanceID") or instance_of_provider_id(text(obj, "spec", "providerID")),)


def _pool_instances(obj: JsonObject) -> set[str]:
    listed = (each for each in sequence(obj, "spec", "providerIDList") if isinstance(each, str))
    return {instance for each in listed if (instance := instance_of_provider_id(each))}


def _pool_group(obj: JsonObject) -> tuple[GroupKey, ...]:
    found = group_of_arn(text(obj, "spec", "providerID"))
    return (found,) if found else ()


def _node_instance(obj: JsonObject) -> tuple[str, ...]:
    found = instance_of_node(text(obj, "spec", "providerID"))
    return (found,) if found else ()


def _machine_deployment(obj: JsonObject) -> tuple[tuple[str, str]]:
    meta = mapping(obj, "metadata")
    return ((text(meta, "namespace"), text(meta, "labels", DEPLOYMENT_LABEL)),)


def _replaced_instances(obj: JsonObject) -> set[InstanceKey]:
    written = text(obj, "metadata", "annotations", REPLACING_ANNOTATION)
    return {each.key for each in marked({REPLACING_ANNOTATION: written})} if written else set()


class InstanceCache(InformerCache):
    def __init__(self, api: KubeApi, store: Store, *, nodes: bool = False) -> None:
        self._machines = store.follow(Followed(AWS_MACHINE), {"instance": _machine_instance})
        self._pools = store.follow(Followed(AWS_MACHINE_POOL), {"instance": _pool_instances, "group": _pool_group})
        self._owners = store.follow(Followed(MACHINE), {"deployment": _machine_deployment})
        self._policies = store.follow(Followed(INTERRUPTION_POLICY))
        self._nodes = store.follow(_NODES, {"instance": _node_instance}) if nodes else None
        self._deployments = store.follow(Followed(MACHINE_DEPLOYMENT), {"instance": _replaced_instances})
        needed = (self._machines, self._pools, self._owners, self._policies, self._nodes)
        self._needed = tuple(each for each in needed if each is not None)  # an empty Mirror is false
        super().__init__(api, (*self._needed, self._deployments))
        # Passes do not wait for the clusters: until they are listed, accounts are unknown, but labels are written.
        self._accounts = ClusterAccounts(store)

    async def ready(self) -> None:
        """Wait until every needed kind is listed. Raises Unavailable if a watch stays broken."""
        clock = asyncio.get_running_loop().time
        listed_by = clock() + _FIRST_LIST
        for mirror in self._needed:
            if not mirror.listed:
                await _until(mirror, mirror.settled(), listed_by, "cannot be listed")
        back_by = clock() + STREAM_BACK
        for mirror in self._needed:
            if mirror.listed and mirror.trouble:
                # Most interruptions end within seconds, while a failed pass is retried only after a growing pause.
                await _until(mirror, mirror.current(), back_by, "has a broken watch")

    @property
    def empty(self) -> bool:
        return not any(len(each) for each in (self._machines, self._pools, self._nodes) if each is not None)

    @property
    def may_appear(self) -> bool:
        """Whether an AWSMachine has no instance yet, so that events of an unknown instance may belong to it."""
        return bool(self._machines.find("instance", ""))

    def instances(self) -> dict[str, AWSMachine | Node]:
        """The AWSMachine of each instance by instance id, or the Node if no AWSMachine or pool names the instance."""
        ids = [str(each) for each in self._machines.values_of("instance") if each]
        found = (min(self._machines.find("instance", each), key=_precedence) for each in ids)
        nodes = self._nodes.values_of("instance") if self._nodes else ()
        alone = (str(each) for each in nodes if not self._named(str(each)))
        joined = (max(self._nodes_of(each), key=_newest) for each in alone)
        listed: tuple[AWSMachine | Node, ...] = (*read_all(AWSMachine, found)[0], *read_all(Node, joined)[0])
        return {each.instance_id: each for each in listed}

    def pools(self) -> tuple[AWSMachinePool, ...]:
        return read_all(AWSMachinePool, self._pools.all())[0]

    def pools_of(self, group: GroupKey) -> tuple[AWSMachinePool, ...]:
        return read_all(AWSMachinePool, self._pools.find("group", group))[0]

    async def machine(self, key: InstanceKey, version: str = "") -> AWSMachine | None:
        found: JsonObject | None = min(self._machines_of(key), key=_precedence, default=None)
        if found is not None and version and newer(version, text(found, "metadata", "resourceVersion")):
            found = await self.fresh(AWS_MACHINE, text(found, "metadata", "namespace"), text(found, "metadata", "name"))
        return AWSMachine.model_validate(found) if found else None

    def siblings(self, key: InstanceKey, machine: AWSMachine) -> tuple[AWSMachine, ...]:
        found = read_all(AWSMachine, self._machines_of(key))[0]
        return tuple(each for each in found if each.key.path != machine.key.path)

    def pool(self, key: InstanceKey) -> AWSMachinePool | None:
        listed = (each for each in self._pools.find("instance", key.instance_id) if _pool_in(each, key))
        found = min(listed, key=_precedence, default=None)
        return AWSMachinePool.model_validate(found) if found else None

    async def node(self, key: InstanceKey, version: str = "") -> Node | None:
        """The Node of an instance that neither an AWSMachine nor a pool names."""
        nodes = () if self._named(key.instance_id) else self._nodes_of(key.instance_id)
        listed = [each for each in nodes if region_of_provider_id(text(each, "spec", "providerID")) in ("", key.region)]
        found: JsonObject | None = max(listed, key=_newest, default=None)
        if found is not None and version and newer(version, text(found, "metadata", "resourceVersion")):
            found = await self.fresh(NODE, "", text(found, "metadata", "name"))
        node = Node.model_validate(found) if found else None
        return node if node is not None and node.instance_id == key.instance_id else None

    def owner(self, machine: AWSMachine) -> Machine | None:
        found = self._owners.get(machine.metadata.namespace, machine.machine)
        return Machine.model_validate(found) if found and machine.machine else None

    def members(self, namespace: str, deployment: str) -> tuple[Machine, ...]:
        return read_all(Machine, self._owners.find("deployment", (namespace, deployment)))[0]

    def replacement(self, key: InstanceKey) -> Replacement | None:
        for each in read_all(MachineDeployment, self._deployments.find("instance", key))[0]:
            return replacement_of(key, each, self.members(each.metadata.namespace, each.metadata.name))
        return None

    def replaced(self) -> set[InstanceKey]:
        return {each for each in self._deployments.values_of("instance") if isinstance(each, InstanceKey)}

    def choice(self, whom: Selected, default: ReactionPolicy) -> Choice:
        """An InterruptionPolicy that cannot be parsed is ignored."""
        return choose(read_all(InterruptionPolicy, self._policies.all())[0], whom, default)

    def policy(self, name: str) -> InterruptionPolicy | None:
        found = self._policies.get("", name)
        return next(iter(read_all(InterruptionPolicy, (found,) if found else ())[0]), None)

    def account_of(self, machine: AWSMachine | Node) -> str:
        return self._accounts.account_of(machine)

    def _named(self, instance: str) -> bool:
        return bool(self._machines.find("instance", instance) or self._pools.find("instance", instance))

    def _nodes_of(self, instance: str) -> Sequence[JsonObject]:
        return self._nodes.find("instance", instance) if self._nodes else ()

    def _machines_of(self, key: InstanceKey) -> Sequence[JsonObject]:
        return [each for each in self._machines.find("instance", key.instance_id) if self._machine_in(each, key)]

    def _machine_in(self, obj: JsonObject, key: InstanceKey) -> bool:
        """False if the machine is known to be in another account or region than the instance."""
        # The instance id alone proves nothing: an event may name any id.
        if region_of_provider_id(text(obj, "spec", "providerID")) not in ("", key.region):
            return False
        readable, _ = read_all(AWSMachine, (obj,))
        return all(self.account_of(each) in ("", key.account) for each in readable)


async def _until(mirror: Mirror, so: Awaitable[None], deadline: float, otherwise: str) -> None:
    try:
        async with asyncio.timeout_at(deadline):
            await so
    except TimeoutError:
        raise Unavailable(f"{mirror.followed.name} {otherwise}: {mirror.trouble}") from None


def _precedence(obj: JsonObject) -> tuple[bool, str]:
    """The sort key of objects that name the same instance. The lowest is the oldest that is not being deleted."""
    return bool(text(obj, "metadata", "deletionTimestamp")), text(obj, "metadata", "creationTimestamp")


def _newest(obj: JsonObject) -> tuple[bool, str]:
    """The sort key of Nodes with the same provider id. The highest is the newest that is not being deleted."""
    return not text(obj, "metadata", "deletionTimestamp"), text(obj, "metadata", "creationTimestamp")


def _pool_in(obj: JsonObject, key: InstanceKey) -> bool:
    return all((each.account, each.region) == (key.account, key.region) for each in _pool_group(obj))
