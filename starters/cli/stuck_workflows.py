"""Lifecycles whose workflow tasks fail: a worker runs, but its code cannot replay their history, or has a bug.

Queries and updates to such a lifecycle time out. The cause is in the last WorkflowTaskFailed event and, from server
1.30 on, in the search attribute `TemporalReportedProblems`. If the history cannot be replayed, terminate and wake the
lifecycle: its next run observes the objects again.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest
from temporalio.client import Client
from temporalio.service import RPCError

from domain.identity import Key
from engine.temporal import decrypt
from starters.cli.output import CommandError

UNREPLAYABLE = "TMPRL1100"

_LOOK = timedelta(seconds=5)
_LATEST_EVENTS = 50
_ONWARD = {EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED}
_NON_DETERMINISM = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR


async def stuck(client: Client, key: Key) -> CommandError | None:
    """Why the workflow cannot continue. None if its last task did not fail, or if Temporal did not answer."""
    try:
        answer = await client.workflow_service.get_workflow_execution_history_reverse(
            GetWorkflowExecutionHistoryReverseRequest(
                namespace=client.namespace,
                execution=WorkflowExecution(workflow_id=key.workflow_id),
                maximum_page_size=_LATEST_EVENTS,
            ),
            timeout=_LOOK,
        )
    except RPCError:
        return None  # the caller reports the failure that made it ask
    events = answer.history.events
    await decrypt(client, (each.workflow_task_failed_event_attributes.failure for each in events))
    return stuck_error(key, events)


def stuck_error(key: Key, newest_first: Iterable[HistoryEvent]) -> CommandError | None:
    for event in newest_first:
        if event.event_type in _ONWARD:
            return None
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED:
            failed = event.workflow_task_failed_event_attributes
            if failed.cause == _NON_DETERMINISM:
                return unreplayable(key, failed.failure.message)
            return _raising(key, failed.failure.message or WorkflowTaskFailedCause.Name(failed.cause))
    return None


def unreplayable(key: Key, message: str) -> CommandError:
    return CommandError(
        f"{key.path}: the worker cannot continue its workflow, which ran with other code: {message}",
        f"terminate and wake it; nothing is lost:\n"
        f"  temporal workflow terminate --workflow-id '{key.workflow_id}' --reason '{UNREPLAYABLE}'\n"
        f"  perdure wake {key.kind} {key.namespace}/{key.name}\n"
        "or run the previous version of the worker",
    )


def _raising(key: Key, message: str) -> CommandError:
    return CommandError(
        f"{key.path}: the worker's code fails on its workflow: {message}",
        "this is a bug in Perdure; a corrected worker continues the workflow. "
        f"Temporal's web UI shows the error on the workflow {key.workflow_id}",
    )
