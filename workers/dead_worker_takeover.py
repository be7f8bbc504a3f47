"""Takes over the work of a dead earlier process of this machine, without waiting for timeouts.

A starting worker does this for lifecycles without a custom resource, such as ClaimBinder, because many objects wait for
them. The worker fails the activities that ran in the dead process, so that the server retries them at once, and resets
the lifecycles' sticky task queues, so that any worker may take their workflow tasks.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterable
from datetime import timedelta

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflowservice.v1 import ResetStickyTaskQueueRequest
from temporalio.client import Client
from temporalio.service import RPCError

from domain.identity import Key
from engine.errors import Unavailable, to_application_error
from engine.temporal import described

WORKER_DIED = "WorkerDied"
_AT_ONCE = timedelta(milliseconds=1)

log = logging.getLogger(__name__)


async def take_over(client: Client, keys: Iterable[Key]) -> None:
    """Take over these lifecycles before this process polls. A lifecycle for which an RPCError occurs is skipped."""
    for key in keys:
        try:
            await _take_over(client, key)
        except RPCError as error:
            log.warning("%s cannot be taken over and waits for its timeouts: %s", key, error)


async def _take_over(client: Client, key: Key) -> None:
    found = await described(client, key)
    if found is None or found.close_time is not None:
        return
    execution = WorkflowExecution(workflow_id=key.workflow_id, run_id=found.run_id)
    await client.workflow_service.reset_sticky_task_queue(
        ResetStickyTaskQueueRequest(namespace=client.namespace, execution=execution)
    )
    for each in found.raw_description.pending_activities:
        started = each.state == PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
        if started and is_dead(each.last_worker_identity):
            log.info(
                "%s: %s is retried; its worker %s has died", key, each.activity_type.name, each.last_worker_identity
            )
            handle = client.get_async_activity_handle(
                workflow_id=key.workflow_id, run_id=found.run_id, activity_id=each.activity_id
            )
            died = Unavailable(
                "the worker has died; another worker retries the activity", code=WORKER_DIED, delay=_AT_ONCE
            )
            await handle.fail(to_application_error(died))


def is_dead(identity: str) -> bool:
    """Whether the worker with this identity was a process of this machine that has ended.

    Our own process id counts as ended too: a restarted container's process may have the same id.
    """
    process, _, host = identity.partition("@")
    pid = process.rpartition(":")[2]
    if host != socket.gethostname() or not pid.isdigit():
        return False
    if int(pid) == os.getpid():
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
