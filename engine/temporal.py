"""Temporal's client for every process: one way to connect, one way to wake, the search attributes.

`wake` is signal-with-start: it means "observe again", and may name the versions to observe, so lost, doubled and
reordered wakes are harmless. `signal_with_start`, `ask` and `open_with` pass what an observation would not find, or
what the caller has just observed.
"""

from __future__ import annotations

import json
import logging
import os
import socket
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel
from temporalio.api.failure.v1 import Failure
from temporalio.client import (
    Client,
    Interceptor,
    WithStartWorkflowOperation,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
)
from temporalio.common import (
    Priority,
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
)
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.runtime import (
    LogForwardingConfig,
    LoggingConfig,
    PrometheusConfig,
    Runtime,
    TelemetryConfig,
    TelemetryFilter,
)
from temporalio.service import RPCError, RPCStatusCode

from domain.carried_memory import Carry
from domain.decision import Decision
from domain.identity import Key, all_kinds, task_queue
from domain.passes import PassedWorld
from domain.runner import State
from domain.urgency import is_urgent_lifecycle
from engine.encryption import data_converter
from engine.health import AddressUnusable
from engine.settings import Settings
from engine.telemetry import logs_json, version
from engine.temporal_connection import Connection
from engine.tracing import configure_tracing

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

WAKE = "wake"

# The priority of tasks that go first in their queue (`domain.urgency`).
URGENT = Priority(priority_key=1)

OP_KIND: SearchAttributeKey[str] = SearchAttributeKey.for_keyword("OpKind")
OP_NAMESPACE: SearchAttributeKey[str] = SearchAttributeKey.for_keyword("OpNamespace")
OP_NAME: SearchAttributeKey[str] = SearchAttributeKey.for_keyword("OpName")
OP_PHASE: SearchAttributeKey[str] = SearchAttributeKey.for_keyword("OpPhase")
OP_OWNER: SearchAttributeKey[str] = SearchAttributeKey.for_keyword("OpOwner")
OP_WAITS_FOR: SearchAttributeKey[Sequence[str]] = SearchAttributeKey.for_keyword_list("OpWaitsFor")
OP_DEADLINE: SearchAttributeKey[datetime] = SearchAttributeKey.for_datetime("OpDeadline")

# Temporal ends a workflow whose search attribute exceeds this many bytes as JSON, which the SDK writes in ASCII.
LONGEST_VALUE = 2048
LONGEST_NAME = 330  # characters, to which names are cut if the list is too long; as JSON at most six bytes each

# Temporal's own attribute, set once a workflow's tasks have failed five times in a row (server 1.30 on).
REPORTED_PROBLEMS: SearchAttributeKey[Sequence[str]] = SearchAttributeKey.for_keyword_list("TemporalReportedProblems")


async def connect(settings: Settings, process: str = "perdure", *, log_core: bool = False) -> Client:
    """Connect to Temporal.

    `process` is part of the identity in the web UI. With `log_core`, the SDK's core writes logs; on a terminal, they go
    to standard output.

    Raises:
        TemporalRefused: the server cannot be reached, or refuses us.
        KeysUnreadable: encryption is on, and no key can be read.
    """
    converter = data_converter(settings)
    interceptor = configure_tracing(settings.otel_endpoint, process, version())
    tracing: Sequence[Interceptor] = [interceptor] if interceptor else []
    connection = await Connection.open(
        settings,
        identity=f"{process}:{os.getpid()}@{socket.gethostname()}",
        runtime=_runtime(_metrics_address(settings), json_logs=logs_json() if log_core else None),
    )
    return Client(connection, namespace=connection.namespace, data_converter=converter, interceptors=tracing)


async def wake(client: Client, key: Key, seen: Mapping[str, str] | None = None) -> None:
    """Make the object's lifecycle observe again; starts it if it is not open.

    `seen` maps kinds to the resourceVersions that the informer cache must reach.

    Raises:
        KeyError: no area has this kind.
        RPCError: Temporal refused or did not answer within 10 s.
    """
    await signal_with_start(client, key, WAKE, *([dict(seen)] if seen else []))


async def wake_open(client: Client, key: Key, seen: Mapping[str, str] | None = None) -> None:
    """Wake an open lifecycle as `wake` does, but start none."""
    await _signal_open(client, key.workflow_id, WAKE, *([dict(seen)] if seen else []))


async def signal_if_open(client: Client, key: Key, signal: str, about: BaseModel) -> None:
    """Signal an open lifecycle, but start none: the object may be gone."""
    await _signal_open(client, key.workflow_id, signal, about)


async def wake_listed(client: Client, workflow_id: str) -> bool:
    """Wake a lifecycle by a workflow id from a list; False if it has ended."""
    return await _signal_open(client, workflow_id, WAKE)


async def _signal_open(client: Client, workflow_id: str, signal: str, *about: BaseModel | dict[str, str]) -> bool:
    try:
        await client.get_workflow_handle(workflow_id).signal(signal, args=about)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise
    return True


async def described(client: Client, key: Key) -> WorkflowExecutionDescription | None:
    return await unless_not_found(client.get_workflow_handle(key.workflow_id).describe())


async def unless_not_found(answer: Awaitable[T]) -> T | None:
    """Temporal's answer; None if Temporal does not have what was asked for."""
    try:
        return await answer
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise


async def decrypt(client: Client, failures: Iterable[Failure]) -> None:
    for each in failures:
        if each.HasField("encoded_attributes"):
            with suppress(KeyError, ValueError):  # this process lacks the keys
                each.message = getattr(await client.data_converter.decode_failure(each), "message", each.message)


async def is_open(client: Client, key: Key) -> bool:
    found = await described(client, key)
    return found is not None and found.status is WorkflowExecutionStatus.RUNNING


async def open_with(client: Client, key: Key, world: PassedWorld, *, signal: str = "") -> None:
    """Start the lifecycle with a first pass's result. If it is open, send the result as `signal`, if that is set."""
    known_by = _known_by(key, shown(State(world).phase(world.decision), world.decision))
    carry = Carry(key=key, world=world.model_dump(mode="json"))
    while True:
        try:
            await client.start_workflow(key.kind, carry, **known_by)
        except WorkflowAlreadyStartedError:
            if signal and not await _signal_open(client, key.workflow_id, signal, world):
                continue  # the lifecycle has ended meanwhile, so it can be started
        return


def shown(phase: str, decision: Decision) -> list[SearchAttributePair[Any]]:
    """The search attributes of a decision; those without a value are left out."""
    found: list[SearchAttributePair[Any]] = [
        SearchAttributePair(OP_PHASE, phase),
        SearchAttributePair(OP_WAITS_FOR, listed(decision.waits_for)),
    ]
    found += [SearchAttributePair(OP_DEADLINE, decision.deadline)] if decision.deadline else []
    return found + ([SearchAttributePair(OP_OWNER, decision.owner)] if decision.owner else [])


def listed(waits_for: Sequence[str]) -> list[str]:
    """The names as a search attribute: all names if they fit, else the first names and the number of the others.

    Names that fit are unchanged, because older histories have to replay.
    """
    if sum(_size(each) for each in waits_for) < LONGEST_VALUE:
        return list(waits_for)
    found: list[str] = []
    room = LONGEST_VALUE - len('["1000000 more"]')
    for each in waits_for:
        name = each[:LONGEST_NAME]
        room -= _size(name)
        if room < 0:
            return [*found, f"{len(waits_for) - len(found)} more"]
        found.append(name)
    return found


def _size(name: str) -> int:
    return len(json.dumps(name)) + len(",")


async def signal_with_start(client: Client, key: Key, signal: str, *about: BaseModel | dict[str, str]) -> None:
    await client.start_workflow(
        key.kind, Carry(key=key), start_signal=signal, start_signal_args=about, **_known_by(key)
    )


async def ask(client: Client, key: Key, update: str, about: BaseModel, *, id_: str, answer: type[M]) -> M:
    """Send an update to the object's lifecycle and wait for the answer. A lifecycle that is not open is started.

    A repeated request with the same id gets the first answer.

    Raises:
        RPCError: Temporal refused or did not answer.
        WorkflowUpdateFailedError: the lifecycle refused, or ended meanwhile.
        WorkflowUpdateRPCTimeoutOrCancelledError: the lifecycle gave no answer in time.
    """
    answered: M = await client.execute_update_with_start_workflow(
        update, about, start_workflow_operation=start_of(key), id=id_, result_type=answer
    )
    return answered


def start_of(key: Key) -> WithStartWorkflowOperation[Any, Any]:
    """A start to be sent together with an update. An open lifecycle gets only the update. Raises KeyError."""
    return WithStartWorkflowOperation(
        key.kind, Carry(key=key), id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING, **_known_by(key)
    )


def _known_by(key: Key, further: Sequence[SearchAttributePair[Any]] = ()) -> dict[str, Any]:
    """The options of a start. The workflow itself sets the search attributes that are missing here."""
    kind = all_kinds()[key.kind]
    return {
        "id": key.workflow_id,
        "task_queue": task_queue(kind.area, key.cluster),
        "priority": URGENT if is_urgent_lifecycle(kind) else Priority.default,
        "static_summary": key.path,
        "search_attributes": TypedSearchAttributes(
            [
                SearchAttributePair(OP_KIND, key.kind),
                SearchAttributePair(OP_NAMESPACE, key.namespace),
                SearchAttributePair(OP_NAME, key.name),
                *further,
            ]
        ),
    }


def _metrics_address(settings: Settings) -> str:
    return f"{settings.listen_host}:{settings.metrics_port}" if settings.metrics_port else ""


def silent_runtime() -> Runtime:
    """A runtime without logs and metrics, for replays, which return their failures."""
    return _runtime("", json_logs=None)


@cache
def _runtime(metrics_address: str, *, json_logs: bool | None) -> Runtime:
    """One runtime (and thread pool) per process; its core logs nothing if `json_logs` is None."""
    verbosity = TelemetryFilter(core_level="WARN", other_level="ERROR")
    # Forwarded lines become JSON. On a terminal the SDK writes its lines itself: to forward them, its threads call into
    # Python, and a process that ends without draining may then crash.
    forwarding = LogForwardingConfig(logger=logging.getLogger("temporalio.core")) if json_logs else None
    lines = None if json_logs is None else LoggingConfig(filter=verbosity, forwarding=forwarding)
    metrics = (
        PrometheusConfig(
            bind_address=metrics_address, durations_as_seconds=True, counters_total_suffix=True, unit_suffix=True
        )
        if metrics_address
        else None
    )
    try:
        return Runtime(telemetry=TelemetryConfig(logging=lines, metrics=metrics))
    except ValueError as error:
        raise AddressUnusable(
            f"cannot listen on {metrics_address} (PERDURE_LISTEN_HOST, PERDURE_METRICS_PORT): {error}"
        ) from error
