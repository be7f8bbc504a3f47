"""Versions of the workers side by side: which code a lifecycle runs on, and how it moves to newer code.

docs/temporal.md describes how they are used. A run stays on its version, so only the code that wrote a history replays
it. A waiting lifecycle may have no task for months, so making a version current also wakes the lifecycles on older
versions (`wake_pinned`).

    v1 current ── v2's workers poll ── v2 made current ── v1's lifecycles are woken ── v1 drained ── v1's workers end
                                       new runs: v2       each continues on v2

Workflows that began without versions belong to no version; the current version has to replay them.
"""

# Rejected: auto-upgrade, where every open history has to fit every new version; and running the old version until all
# its lifecycles have moved by themselves, which some never do.

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from enum import StrEnum

from temporalio.api.deployment.v1 import WorkerDeploymentVersion as WireVersion
from temporalio.api.enums.v1 import TaskQueueType, WorkerDeploymentVersionStatus
from temporalio.api.workflowservice.v1 import (
    DescribeWorkerDeploymentRequest,
    DescribeWorkerDeploymentVersionRequest,
    SetWorkerDeploymentCurrentVersionRequest,
)
from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.worker import WorkerDeploymentConfig

from domain.model import Model
from engine.settings import Settings
from engine.temporal import unless_not_found, wake_listed

UNVERSIONED = "unversioned"
_KINDS = {
    TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW: "workflow",
    TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY: "activity",
}


class VersionStatus(StrEnum):
    INACTIVE = "inactive"
    CURRENT = "current"
    RAMPING = "ramping"
    DRAINING = "draining"
    DRAINED = "drained"
    CREATED = "created"
    UNKNOWN = "unknown"


class Version(Model):
    deployment: str
    build_id: str
    status: VersionStatus
    open: int = 0
    """The number of open lifecycles that are pinned to this version."""


def deployment_config(settings: Settings) -> WorkerDeploymentConfig:
    """The workers' version. Without a build id in the settings, any worker takes any task.

    Even then the SDK gets a build id. Without one it would hash every imported module at each start, which takes half a
    second of CPU.
    """
    versioned = bool(settings.worker_build_id)
    return WorkerDeploymentConfig(
        version=WorkerDeploymentVersion(settings.worker_deployment, settings.worker_build_id or UNVERSIONED),
        use_worker_versioning=versioned,
        default_versioning_behavior=VersioningBehavior.PINNED if versioned else VersioningBehavior.UNSPECIFIED,
    )


async def versions(client: Client, deployment: str) -> list[Version]:
    return [
        Version(
            deployment=deployment,
            build_id=build_id,
            status=status,
            open=await count_pinned(client, deployment, build_id),
        )
        for build_id, status in await _statuses(client, deployment)
    ]


async def versions_in_use(client: Client, deployment: str) -> list[str]:
    """All versions that are not drained: lifecycles may be open on them."""
    return [each for each, status in await _statuses(client, deployment) if status is not VersionStatus.DRAINED]


async def _statuses(client: Client, deployment: str) -> list[tuple[str, VersionStatus]]:
    request = DescribeWorkerDeploymentRequest(namespace=client.namespace, deployment_name=deployment)
    found = await unless_not_found(client.workflow_service.describe_worker_deployment(request))
    if found is None:
        return []
    summaries = sorted(
        found.worker_deployment_info.version_summaries, key=lambda each: each.create_time.ToDatetime(), reverse=True
    )
    return [(each.deployment_version.build_id, _status(each.status)) for each in summaries]


async def polled_queues(client: Client, deployment: str, build_id: str) -> set[tuple[str, str]]:
    """The task queues that the version polls, each with `workflow` or `activity`."""
    version = WireVersion(deployment_name=deployment, build_id=build_id)
    request = DescribeWorkerDeploymentVersionRequest(namespace=client.namespace, deployment_version=version)
    found = await unless_not_found(client.workflow_service.describe_worker_deployment_version(request))
    if found is None:
        return set()
    return {(each.name, _KINDS.get(each.type, "other")) for each in found.version_task_queues}


async def make_current(client: Client, deployment: str, build_id: str) -> str:
    """Make the version current, so that it gets new runs. Returns the previous version's build id.

    Raises RPCError: `FAILED_PRECONDITION` if workers of `build_id` do not poll all queues of the previous version.
    """
    answer = await client.workflow_service.set_worker_deployment_current_version(
        SetWorkerDeploymentCurrentVersionRequest(
            namespace=client.namespace,
            deployment_name=deployment,
            build_id=build_id,
            identity=client.identity,
        )
    )
    before: str = answer.previous_deployment_version.build_id
    return before


async def count_pinned(client: Client, deployment: str, build_id: str, queue: str = "") -> int:
    """The number of open lifecycles pinned to the version; if `queue` is given, only lifecycles in that task queue."""
    query = _pinned_to(deployment, build_id) + (f" AND TaskQueue = '{queue}'" if queue else "")
    return (await client.count_workflows(query)).count


async def wake_pinned(client: Client, deployment: str, build_ids: Iterable[str], *, per_second: float) -> int:
    """Wake every lifecycle pinned to these versions, so that it moves to the current one; returns how many were woken.

    A lifecycle that ends meanwhile is no failure.
    """
    woken = 0
    for build_id in build_ids:
        async for each in client.list_workflows(_pinned_to(deployment, build_id)):
            woken += await wake_listed(client, each.id)
            await asyncio.sleep(1 / per_second)
    return woken


def _pinned_to(deployment: str, build_id: str) -> str:
    return f"ExecutionStatus = 'Running' AND TemporalWorkerDeploymentVersion = '{deployment}:{build_id}'"


def _status(wire: WorkerDeploymentVersionStatus.ValueType) -> VersionStatus:
    word = WorkerDeploymentVersionStatus.Name(wire).removeprefix("WORKER_DEPLOYMENT_VERSION_STATUS_").lower()
    return VersionStatus(word) if word in set(VersionStatus) else VersionStatus.UNKNOWN
