"""Lifecycles that no worker can run: no worker polls their task queue, or no worker of their version does.

A worker polls each minute; a poller that DescribeTaskQueue has not seen for 90 s is gone. The number of requests grows
with areas and versions, never with objects.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from temporalio.api.enums.v1 import TaskQueueType, WorkerVersioningMode
from temporalio.api.taskqueue.v1 import PollerInfo, TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest, DescribeTaskQueueResponse
from temporalio.client import Client

from domain.identity import Key, all_kinds, task_queue
from domain.model import Model
from engine.temporal import described
from engine.worker_versions import count_pinned, versions_in_use

# A poll lasts up to a minute, then the worker begins the next one.
QUIET_AFTER = timedelta(seconds=90)

_UNVERSIONED = ("", "")


class MissingWorker(Model):
    area: str
    queue: str
    build_id: str = ""
    """The version whose workers are needed; empty for workers without a version."""
    open: int | None = None
    """The number of open lifecycles pinned to this version; counted only for older versions, else None."""

    @property
    def message(self) -> str:
        of_version = f" of version {self.build_id}" if self.build_id else ""
        waiting = f"; open lifecycles of this version: {self.open}" if self.open is not None else ""
        return f"no worker for {self.area}: none{of_version} polls the task queue {self.queue}{waiting}"


async def missing_workers(
    client: Client, areas: Iterable[str], cluster: str, deployment: str, quiet_after: timedelta = QUIET_AFTER
) -> list[MissingWorker]:
    """The missing workers of the version that takes new lifecycles, and of older versions in use.

    The queues' names begin with `cluster`. A poller last seen longer than `quiet_after` ago is gone. Raises RPCError.
    """
    missing: list[MissingWorker] = []
    in_use: dict[str, list[str]] = {}
    for area in areas:
        queue = task_queue(area, cluster)
        description = await _describe(client, queue)
        polling = _polling(description, quiet_after)
        current = _current(description)
        if current not in polling:
            missing.append(MissingWorker(area=area, queue=queue, build_id=current[1]))
        name = current[0] or deployment
        if name not in in_use:
            in_use[name] = await versions_in_use(client, name)
        for build_id in in_use[name]:
            if (name, build_id) in polling or (name, build_id) == current:
                continue
            if number := await count_pinned(client, name, build_id, queue):
                missing.append(MissingWorker(area=area, queue=queue, build_id=build_id, open=number))
    return missing


async def missing_worker_of(client: Client, key: Key) -> MissingWorker | None:
    """The missing worker of a lifecycle; None if none is missing or the lifecycle does not exist. Raises RPCError."""
    area = all_kinds()[key.kind].area
    queue = task_queue(area, key.cluster)
    found = await described(client, key)
    if found is None:
        return None
    description = await _describe(client, queue)
    pinned = found.raw_description.workflow_execution_info.versioning_info.deployment_version
    needed = (pinned.deployment_name, pinned.build_id) if pinned.build_id else _current(description)
    if needed in _polling(description, QUIET_AFTER):
        return None
    return MissingWorker(area=area, queue=queue, build_id=needed[1])


async def _describe(client: Client, queue: str) -> DescribeTaskQueueResponse:
    return await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=client.namespace,
            task_queue=TaskQueue(name=queue),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
        )
    )


def _current(description: DescribeTaskQueueResponse) -> tuple[str, str]:
    current = description.versioning_info.current_deployment_version
    return (current.deployment_name, current.build_id)


def _polling(description: DescribeTaskQueueResponse, quiet_after: timedelta) -> set[tuple[str, str]]:
    since = datetime.now(UTC) - quiet_after
    return {_version(each) for each in description.pollers if each.last_access_time.ToDatetime(UTC) >= since}


def _version(poller: PollerInfo) -> tuple[str, str]:
    options = poller.deployment_options
    if options.worker_versioning_mode != WorkerVersioningMode.WORKER_VERSIONING_MODE_VERSIONED:
        return _UNVERSIONED
    return (options.deployment_name, options.build_id)
