"""Permits the disruption of a machine only within its node group's limit. Disruptions in progress are recorded in an
annotation of one Lease in Perdure's own namespace: of two workers that write at the same time, one has to read again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from pydantic import ValidationError

from domain.built_in_kinds import LEASE, POD
from domain.instances import MACHINE, NODE
from domain.instances.constants import (
    CLUSTER_LABEL,
    DISRUPTIONS_ANNOTATION,
    NODE_CONTROL_PLANE_LABEL,
    NODE_GROUP_LABELS,
)
from domain.instances.disruption_budget import Disruption, Ledger, Limit, Turn, group_size, node_group, waits_for
from domain.instances.resources import Machine, Node
from domain.reading import read_all
from engine.clock import now
from engine.errors import Absent, ApiError, Conflict, Unavailable, unless_absent
from engine.kube import KubeApi
from engine.kube.json import JsonObject, sequence, text

Members = Callable[[], Awaitable[Sequence[Machine] | Sequence[Node]]]

LEASE_NAME = "perdure-instance-disruptions"
_ATTEMPTS = 10
# The seconds that a machine which AWS is reclaiming waits for its entry in the ledger: it never waits for a turn.
TAKEN_WAITS = 5.0

log = logging.getLogger(__name__)


class Disruptions:
    def __init__(self, kube: KubeApi, namespace: str, most: int) -> None:
        self._kube = kube
        self._namespace = namespace
        self._most = most

    async def begin(
        self,
        machine: Machine | Node,
        instance: str,
        *,
        taken: bool,
        most: int | None = None,
        policy: str = "",
        members: Members | None = None,
    ) -> Turn:
        """Enter the machine into the ledger, or return what the machine waits for.

        A machine that is already in the ledger may be disrupted; in a control plane only while the other machines are
        healthy.

        Args:
            machine: the Machine, or else the Node.
            instance: the id of its instance; a new Machine does not name the instance yet.
            taken: whether AWS is reclaiming the instance.
            most: the limit; None if the setting applies.
            policy: the InterruptionPolicy that sets `most`.
            members: lists the machines of a group in another cluster.

        Raises:
            ApiError: the machines cannot be listed, or the ledger cannot be written. If AWS is reclaiming the instance
                of a machine outside a control plane, the error or a timeout is only logged.
        """
        limit = Limit(most=most, policy=policy) if most else Limit(most=self._most)
        hurried = taken and not machine.control_plane
        listing = members or partial(self._members, machine)
        try:
            async with asyncio.timeout(TAKEN_WAITS if hurried else None):
                return await self._begin(machine, instance, limit, listing, taken=taken)
        except (ApiError, TimeoutError) as error:
            if not hurried:
                raise
            why = str(error) or f"no answer within {TAKEN_WAITS:g} s"
            log.warning("%s is disrupted without being recorded in the Lease: %s", machine.key.path, why)
            return Turn(at=now())

    async def end(self, instance: str) -> None:
        """Remove an instance from the ledger, because its machine stays in use."""
        for _ in range(_ATTEMPTS):
            lease, ledger = await self._read()
            if lease is None or ledger.ended(instance) == ledger:
                return
            if await self._written(lease, ledger.ended(instance)):
                return
        raise self._busy()

    async def _begin(
        self, machine: Machine | Node, instance: str, limit: Limit, listing: Members, *, taken: bool
    ) -> Turn:
        group = node_group(machine)
        for _ in range(_ATTEMPTS):
            lease, ledger = await self._read()
            known = ledger.has(group, machine.metadata.uid, now())
            # Perhaps only its Node has been cordoned so far: in a control plane the other machines are checked again
            # before the deletion.
            if known and not machine.control_plane:
                return Turn(at=now())
            # The machines are listed after the ledger was read: if another disruption begins in between, the ledger
            # changes, and the write below conflicts.
            members = await listing()
            moment = now()
            why = waits_for(machine, members, ledger.of(group), limit, moment, taken=taken)
            if why or known:
                return Turn(at=moment, why=why)
            meta = machine.metadata
            one = Disruption(
                instance=instance, name=meta.name, uid=meta.uid, at=moment, size=group_size(machine, members)
            )
            if await self._written(lease, ledger.begun(group, one)):
                return Turn(at=moment)
        raise self._busy()

    def _busy(self) -> Unavailable:
        return Unavailable(f"Lease {self._namespace}/{LEASE_NAME} is written by other clients all the time")

    async def _members(self, machine: Machine | Node) -> list[Machine] | list[Node]:
        if isinstance(machine, Node):
            nodes = await self._kube.list(NODE, label_selector=_alike(machine))
            found = [each for each in read_all(Node, nodes.items)[0] if node_group(each) == node_group(machine)]
            return await self._with_etcd(found) if machine.control_plane else found
        selector = f"{CLUSTER_LABEL}={machine.cluster}"
        listed = await self._kube.list(MACHINE, machine.metadata.namespace, label_selector=selector)
        group = node_group(machine)
        return [each for each in read_all(Machine, listed.items)[0] if node_group(each) == group]

    async def _with_etcd(self, nodes: list[Node]) -> list[Node]:
        """The Nodes with the health of their etcd members, which are static Pods if kubeadm made the cluster.

        If any Node has such a Pod, a Node without one is unhealthy. If no Node has one, etcd runs elsewhere, and all
        members count as healthy.
        """
        pods = await self._kube.list(POD, "kube-system", label_selector="component=etcd")
        healthy = {text(pod, "spec", "nodeName"): is_ready(pod) for pod in pods.items}
        stacked = any(each.metadata.name in healthy for each in nodes)
        return [
            each.model_copy(update={"etcd_healthy": not stacked or healthy.get(each.metadata.name, False)})
            for each in nodes
        ]

    async def _read(self) -> tuple[JsonObject | None, Ledger]:
        lease = await unless_absent(self._kube.get(LEASE, self._namespace, LEASE_NAME))
        try:
            return lease, Ledger.model_validate_json(
                text(lease, "metadata", "annotations", DISRUPTIONS_ANNOTATION) or "{}"
            )
        except ValidationError:
            log.warning("Lease %s/%s: its annotation cannot be read and is replaced", self._namespace, LEASE_NAME)
            return lease, Ledger()

    async def _written(self, lease: JsonObject | None, ledger: Ledger) -> bool:
        annotations = {DISRUPTIONS_ANNOTATION: ledger.model_dump_json()}
        try:
            if lease is None:
                meta = {"name": LEASE_NAME, "annotations": annotations}
                await self._kube.create(LEASE, {"metadata": meta, "spec": {}}, self._namespace)
            else:
                patch = {"metadata": {"annotations": annotations}}
                version = text(lease, "metadata", "resourceVersion")
                await self._kube.patch(LEASE, self._namespace, LEASE_NAME, patch, resource_version=version)
        except Conflict:
            return False
        except Absent:
            if lease is None:
                raise  # the namespace does not exist
            return False
        return True


def is_ready(obj: JsonObject) -> bool:
    return readiness(obj) == "True"


def readiness(obj: JsonObject) -> str:
    """The status of the condition Ready: `True`, `False` or `Unknown`; empty if the condition is absent."""
    conditions = sequence(obj, "status", "conditions")
    return next((text(each, "status") for each in conditions if text(each, "type") == "Ready"), "")


def _alike(node: Node) -> str:
    if node.control_plane:
        return NODE_CONTROL_PLANE_LABEL
    name = node.pool_label
    return f"{name}={node.pool}" if name else ",".join(f"!{each}" for each in NODE_GROUP_LABELS)
