"""A Machine's deletion whose worker was killed: tried again, it is asked for once."""

from __future__ import annotations

import dataclasses
from typing import Any

from instance_scenes import ACCOUNT, ID, REGION
from memory_kube import MemoryKube
from temporalio.testing import ActivityEnvironment

from activities.instances.cache import InstanceCache
from activities.instances.disruption_budget import Disruptions
from activities.instances.machine_replacement import MachineActivities
from domain.identity import Kind
from domain.instances import MACHINE
from domain.instances.actions import DeleteOwner
from domain.instances.workflow_ids import InstanceKey

KEY = InstanceKey(account=ACCOUNT, region=REGION, instance_id=ID).lifecycle


class Counted(MemoryKube):
    """Machines, and how often one was to be deleted."""

    def __init__(self) -> None:
        super().__init__()
        self.deletions = 0

    async def delete(self, kind: Kind, namespace: str, name: str, **more: Any) -> dict[str, Any]:
        self.deletions += 1
        return await super().delete(kind, namespace, name, **more)


async def tried(kube: Counted, uid: str, attempt: int) -> None:
    known = InstanceCache(kube, kube)  # type: ignore[arg-type]
    turns = Disruptions(kube, "perdure", 1)  # type: ignore[arg-type]
    machines = MachineActivities(kube, known, turns)  # type: ignore[arg-type]
    server = ActivityEnvironment()
    server.info = dataclasses.replace(server.info, attempt=attempt)
    await server.run(machines.delete_machine, DeleteOwner(key=KEY, cause="ended", namespace="c", name="m", uid=uid))


async def made(kube: Counted) -> str:
    metadata = {"name": "m", "finalizers": ["machine.cluster.x-k8s.io"]}
    uid: str = (await kube.create(MACHINE, {"metadata": metadata}, "c"))["metadata"]["uid"]
    return uid


async def test_a_deletion_that_was_heard_is_not_asked_for_again() -> None:
    kube = Counted()
    uid = await made(kube)
    await tried(kube, uid, 1)
    await tried(kube, uid, 2)
    assert kube.deletions == 1


async def test_a_deletion_that_was_not_heard_is_asked_for_again() -> None:
    kube = Counted()
    await tried(kube, await made(kube), 2)
    assert kube.deletions == 1


async def test_a_namesake_made_since_is_none_of_ours() -> None:
    kube = Counted()
    await made(kube)
    await tried(kube, "another", 2)
    assert kube.deletions == 0
