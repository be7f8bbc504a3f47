"""The backlog: tasks that no worker has taken yet, and late lifecycles that serve a whole area.

If a worker has a workflow in its cache, DescribeTaskQueue counts the workflow's task only after ten seconds. A
lifecycle without an object, such as the claims' binder, therefore reports in `OpWaitsFor` how long claims wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client, WorkflowExecutionStatus

from domain.backlog import Backlog
from domain.identity import Key
from engine.temporal import OP_WAITS_FOR, described

# A younger backlog is not reported: a worker with a free slot takes a task at once.
UNHURRIED = timedelta(seconds=2)
# An activity of a lifecycle without an object is late after this time: the binder ends its batches after 15 s.
LONG = timedelta(seconds=30)
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
        if not stats.approximate_backlog_count or age < UNHURRIED:
            return None
        return Backlog(
            what=f"{stats.approximate_backlog_count} {kind} tasks in the queue {queue}",
            since=now - age,
            why="workers start fewer tasks than arrive: they, Temporal or the API server lack CPU, or more workers are "
            "needed",
        )

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
    backlogs = [
        Backlog(what=f"{who}: {waits_for}", since=None, why="the lifecycle handles them in batches, one after another")
        for waits_for in found.typed_search_attributes.get(OP_WAITS_FOR) or ()
    ]
    task = raw.pending_workflow_task
    if raw.HasField("pending_workflow_task") and task.attempt > 1:
        since = task.original_scheduled_time.ToDatetime(UTC)
        why = f"attempt {task.attempt}: no worker has completed it in time, or its code failed"
        backlogs.append(Backlog(what=f"{who}: its next step", since=since, why=why))
    return [*backlogs, *(backlog for each in raw.pending_activities if (backlog := _of_activity(who, each, now)))]


def _of_activity(who: str, activity: PendingActivityInfo, now: datetime) -> Backlog | None:
    since = activity.scheduled_time.ToDatetime(UTC)
    if activity.attempt > 1:
        why = f"attempt {activity.attempt}; the previous one: {activity.last_failure.message or 'no answer in time'}"
    elif now - since > LONG:
        why = "it takes longer than usual: too little CPU, or the called API is slow"
    else:
        return None
    return Backlog(what=f"{who}: {activity.activity_type.name}", since=since, why=why)
