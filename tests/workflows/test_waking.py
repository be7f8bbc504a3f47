"""How lifecycles are woken: started for it, or only notified if they are open."""

from __future__ import annotations

from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowExecutionStatus
from temporalio.testing import WorkflowEnvironment

from domain.claims import RESOURCE_CLAIM
from domain.identity import Key
from engine.temporal import wake, wake_open

KEY = Key(kind=RESOURCE_CLAIM.name, namespace="users", name="mine", uid="u")


async def signals(env: WorkflowEnvironment) -> int:
    events = env.client.get_workflow_handle(KEY.workflow_id).fetch_history_events()
    wanted = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED
    return len([event async for event in events if event.event_type == wanted])


async def test_a_lifecycle_that_is_open_is_notified_and_no_other_is_started(env: WorkflowEnvironment) -> None:
    await wake_open(env.client, KEY)  # none has ever been there
    await wake(env.client, KEY)
    handle = env.client.get_workflow_handle(KEY.workflow_id)
    first = (await handle.describe()).run_id

    await wake_open(env.client, KEY)
    assert await signals(env) == 2

    await handle.terminate()
    await wake_open(env.client, KEY)  # it has ended: there is nothing to notify
    found = await handle.describe()
    assert (found.run_id, found.status) == (first, WorkflowExecutionStatus.TERMINATED)
    assert await signals(env) == 2
