"""Access to one object's lifecycle: finding its workflow, explaining its state, retry, wake.

The workflow's id contains the object's uid. If the object is gone, search attributes find the workflow. The commands
start a lifecycle that is not open, which is always harmless.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from contextlib import suppress
from datetime import UTC, timedelta
from typing import NoReturn, TypeVar
from uuid import uuid4

from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import (
    Client,
    WorkflowExecution,
    WorkflowExecutionStatus,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import ApplicationError
from temporalio.exceptions import TimeoutError as ActivityTimeout
from temporalio.service import RPCError, RPCStatusCode

from domain.control_annotations import RETRY
from domain.identity import Key, all_kinds, key_found, objectless
from domain.pauses import why_paused
from domain.refusal import ErrorType
from domain.why import Blocker, Why
from engine.errors import Absent
from engine.kube import JsonObject
from engine.kube.errors import NO_SUCH_KIND
from engine.kube.json import key_of
from engine.missing_workers import missing_worker_of
from engine.temporal import decrypt, is_open, start_of, wake
from starters.cli import machines
from starters.cli.object_reference import Target
from starters.cli.output import CommandError
from starters.cli.pause_areas import current_pauses
from starters.cli.records import annotate
from starters.cli.session import ClusterSession, Session
from starters.cli.stuck_workflows import UNREPLAYABLE, stuck, unreplayable

T = TypeVar("T")

# How long a command waits for a worker: a first pass observes several objects and, perhaps, a cloud.
ANSWER = timedelta(seconds=30)
_QUERY = timedelta(seconds=10)
_LOOK_AGAIN = timedelta(milliseconds=200)
_MOST_DESCRIBED = 50  # lifecycles of objects that had the same name one after the other

# The phase of a lifecycle that has not observed its object yet.
UNDECIDED = "Unknown"

_START_WORKER = "start one with `perdure worker`, or with `perdure up` on a local deployment; see docs/runbooks.md"
_NO_WORKER = "is a worker running? On a local deployment: perdure status; elsewhere: the log of `perdure worker`"


async def find_object(session: ClusterSession, target: Target) -> JsonObject:
    """The object. Raises CommandError if it does not exist, or if Kubernetes has no resource of this kind."""
    if not target.kind.plural:
        raise CommandError(
            f"{target} is not a custom resource",
            f"`perdure why` and `wake` work on it; to pause its whole area: perdure pause --area {target.kind.area}",
        )
    found = await look_for_object(session, target)
    if found is None:
        raise CommandError(f"{target} does not exist", _shown_by(target))
    return found


async def look_for_object(session: ClusterSession, target: Target) -> JsonObject | None:
    try:
        return await session.cluster_of(target.kind).get(target.kind, target.namespace, target.name)
    except Absent as error:
        if error.code == NO_SUCH_KIND:
            raise CommandError(
                f"the cluster at {session.cluster_of(target.kind).host} knows no {target.kind.name}",
                "it is installed with Cluster API and its provider"
                if machines.others(target)
                else "install the definitions: perdure crds | kubectl apply -f -",
            ) from error
        return None


async def find_key(session: Session, target: Target) -> Key:
    """The key of the object's lifecycle. Raises CommandError if there is neither the object nor an open lifecycle."""
    obj = await look_for_object(session, target) if target.kind.plural else None
    if obj is not None:
        return await key_of_object(session, target, obj)
    key, last = await _last_lifecycle(session, target)
    if key is not None and last is not None:
        standing = objectless(key.kind, key.cluster, session.settings.claims_domain)
        if last.status is WorkflowExecutionStatus.RUNNING or key in standing:
            return key
    ended = f"; its last lifecycle ended at {last.close_time:%Y-%m-%d %H:%M:%SZ}" if last and last.close_time else ""
    raise CommandError(f"{target} does not exist{ended}", _shown_by(target))


async def key_of_object(session: Session, target: Target, obj: JsonObject) -> Key:
    """The key of the object's lifecycle. A Node or an object of Cluster API has the lifecycle of its instance or group
    (`machines.py`). Raises CommandError if the lifecycle cannot be determined.
    """
    if machines.others(target):
        return await machines.lifecycle_behind(session, target, obj)
    return key_of(target.kind.name, obj, session.settings.cluster)


def _shown_by(target: Target) -> str:
    return machines.SHOWN_BY if machines.others(target) else f"`perdure list {target.kind.name}` lists all"


async def why(session: Session, key: Key) -> Why:
    """Ask the lifecycle for its state. A lifecycle that is not open is started, and answers after its first pass."""
    if not await is_open(session.temporal, key):
        await wake(session.temporal, key)
    handle = session.temporal.get_workflow_handle(key.workflow_id)
    patience = asyncio.get_running_loop().time() + ANSWER.total_seconds()
    while True:
        answer = await _query(session.temporal, handle.query("why", result_type=Why, rpc_timeout=_QUERY), key)
        if answer.phase != UNDECIDED or asyncio.get_running_loop().time() > patience:
            return await _completed(session, key, answer)
        await asyncio.sleep(_LOOK_AGAIN.total_seconds())


async def plan(session: Session, key: Key) -> Why:
    """What the lifecycle would do now. The lifecycle observes again, but does not act."""
    return await _completed(session, key, await _update(session.temporal, key, "plan", Why))


async def _completed(session: Session, key: Key, answer: Why) -> Why:
    """Add what the lifecycle may not know: failed actions that Temporal is retrying, and a recent pause of its area."""
    hindrances = (*answer.hindrances, *await attempts_of(session.temporal, key))
    paused = why_paused(await current_pauses(session), all_kinds()[key.kind].area)
    return answer.model_copy(update={"hindrances": hindrances, "hold": answer.hold or paused})


async def attempts_of(client: Client, key: Key) -> tuple[Blocker, ...]:
    pending = (await client.get_workflow_handle(key.workflow_id).describe()).raw_description.pending_activities
    await decrypt(client, (each.last_failure for each in pending))
    return attempts(pending)


def attempts(pending: Iterable[PendingActivityInfo]) -> tuple[Blocker, ...]:
    return tuple(
        Blocker(
            action=activity.activity_type.name,
            type=activity.last_failure.application_failure_info.type or "Unavailable",
            message=activity.last_failure.message,
            attempts=activity.attempt - 1,
            retry_at=activity.scheduled_time.ToDatetime(UTC),
        )
        for activity in pending
        if activity.attempt > 1 and activity.HasField("last_failure")
    )


async def retry(session: Session, key: Key, reason: str) -> str:
    """Ask the lifecycle for a retry, and return its answer.

    While Temporal retries an action, the lifecycle does not know of the failure and would refuse. In that case the
    retry is written to the object as an annotation, and the action starts over. Raises CommandError if the lifecycle
    refuses, if its area is paused, or if no worker answers.
    """
    kind = all_kinds()[key.kind]
    if kind.plural and await is_open(session.temporal, key):
        tried = await attempts_of(session.temporal, key)
        if any(attempt.type != ErrorType.PENDING for attempt in tried):
            if paused := why_paused(await current_pauses(session), kind.area):
                raise CommandError(f"retry {key.path}: not sent, {paused}")
            await annotate(session, Target(kind, key.namespace, key.name), {RETRY: f"{uuid4()} {reason}".strip()[:200]})
            await wake(session.temporal, key)
            return f"tried again: {', '.join(sorted({attempt.action for attempt in tried}))}"
    return await _update(session.temporal, key, "retry", str, reason)


async def _update(client: Client, key: Key, update: str, result: type[T], *arguments: str) -> T:
    call = client.execute_update_with_start_workflow(
        update, args=arguments, start_workflow_operation=start_of(key), result_type=result
    )
    try:
        async with asyncio.timeout(ANSWER.total_seconds()):
            answer: T = await call
            return answer
    except WorkflowUpdateFailedError as error:
        message, advice = _why_failed(error)
        raise CommandError(
            f"{update} refused: {message}" if key.path in message else f"{update} {key.path}: {message}", advice
        ) from error
    except (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError) as error:
        raise await _unanswered(client, key, update) from error
    except RPCError as error:
        await _refused(client, key, update, error)


def _why_failed(error: WorkflowUpdateFailedError) -> tuple[str, str]:
    cause: BaseException = error.cause
    while not isinstance(cause, ApplicationError) and cause.__cause__ is not None:
        cause = cause.__cause__
    if isinstance(cause, ApplicationError):
        return cause.message, ""
    return str(cause), _NO_WORKER if isinstance(cause, ActivityTimeout) else ""


async def _query(client: Client, query: Awaitable[Why], key: Key) -> Why:
    try:
        return await query
    except WorkflowQueryFailedError as error:
        if UNREPLAYABLE in str(error):
            raise unreplayable(key, str(error)) from error
        raise CommandError(f"why {key.path}: {error}", f"more on the workflow's page: {key.workflow_id}") from error
    except RPCError as error:
        if error.status in (RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED):
            raise await _unanswered(client, key, "why") from error
        await _refused(client, key, "why", error)


async def _refused(client: Client, key: Key, request: str, error: RPCError) -> NoReturn:
    if error.status is not RPCStatusCode.FAILED_PRECONDITION:
        raise error
    # No worker has polled recently, or the workflow's tasks fail.
    raise await _why_unanswered(client, key, request, error.message) from error


async def _unanswered(client: Client, key: Key, request: str) -> CommandError:
    return await _why_unanswered(client, key, request, f"no worker has answered within {ANSWER.total_seconds():g} s")


async def _why_unanswered(client: Client, key: Key, request: str, symptom: str) -> CommandError:
    """An error that says why no answer came: workflow tasks fail, or no worker polls. If the reason is unknown, the
    error contains only the symptom.
    """
    if found := await stuck(client, key):
        return found
    with suppress(RPCError):
        if missing := await missing_worker_of(client, key):
            return CommandError(f"{request} {key.path}: {missing.message}", _START_WORKER)
    return CommandError(f"{request} {key.path}: {symptom}", _NO_WORKER)


async def _last_lifecycle(session: Session, target: Target) -> tuple[Key | None, WorkflowExecution | None]:
    kind, namespace, name = target.kind.name, target.namespace, target.name
    query = f"OpKind = '{kind}' AND OpNamespace = '{namespace}' AND OpName = '{name}'"
    ours: list[tuple[Key, WorkflowExecution]] = []
    async for each in session.temporal.list_workflows(query):  # lifecycles of other clusters may match
        if (key := key_found(each.id, kind, namespace, name, session.settings.cluster)) is not None:
            ours.append((key, each))
        if len(ours) == _MOST_DESCRIBED:
            break
    return max(ours, key=lambda item: (item[1].close_time is None, item[1].start_time), default=(None, None))
