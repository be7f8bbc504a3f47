"""The backlog: tasks that no worker has taken yet, and late tasks of lifecycles without a Kubernetes object.

If a worker has a workflow in its cache, DescribeTaskQueue counts the workflow's task only after ten seconds. This is
too late for the claims' binder, which has no object. The binder itself reports in `OpWaitsFor` how long claims wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client, WorkflowExecutionStatus

from domain.backlog_report import Backlog, of_activity, of_batches, of_queue, of_step
from domain.identity import Key
from engine.temporal import OP_WAITS_FOR, decrypt, described

_TYPES = {"workflow": TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW, "activity": TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY}


async def of_queues(client: Client, queues: Iterable[tuple[str, str]], now: datetime) -> list[Backlog]:
    """The backlog of queues, each given as its name and `workflow` or `activity`; raises RPCError."""

    async def one(queue: str, kind: str) -> Backlog | None:
        request = DescribeTaskQueueRequest(
            namespace=client.namespace,
            task_queue=TaskQueue(name=queue),
            task_queue_type=_TYPES[kind],
            report_stats=True,
        )
        stats = (await client.workflow_service.describe_task_queue(request)).stats
        age = stats.approximate_backlog_age.ToTimedelta()
        return of_queue(queue, kind, stats.approximate_backlog_count, age, now)

    found = await asyncio.gather(*(one(queue, kind) for queue, kind in sorted(queues)))
    return [each for each in found if each is not None]


async def of_objectless(client: Client, keys: Iterable[Key], now: datetime) -> list[Backlog]:
    """What lifecycles without an object wait for, and which of their tasks are late; raises RPCError."""
    return [backlog for key in keys for backlog in await _of_one(client, key, now)]


async def _of_one(client: Client, key: Key, now: datetime) -> list[Backlog]:
    found = await described(client, key)
    if found is None or found.status is not WorkflowExecutionStatus.RUNNING:
        return []
    raw, who = found.raw_description, key.path
    task = raw.pending_workflow_task
    await decrypt(client, (each.last_failure for each in raw.pending_activities))
    late = [of_step(who, task.attempt, task.original_scheduled_time.ToDatetime(UTC))]
    for each in raw.pending_activities:
        since, failure = each.scheduled_time.ToDatetime(UTC), each.last_failure.message
        late.append(of_activity(who, each.activity_type.name, each.attempt, failure, since, now))
    batches = [of_batches(who, each) for each in found.typed_search_attributes.get(OP_WAITS_FOR) or ()]
    return [*batches, *(each for each in late if each is not None)]
