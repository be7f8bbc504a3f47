"""Connections of one command to Temporal and Kubernetes.

Commands that only write to the cluster must work while Temporal is down (`perform_on_cluster`). Refusals become
`CommandError`, with advice; a bug shows its traceback.
"""

from __future__ import annotations

import asyncio
import getpass
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from kubernetes.aio.config import ConfigException
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from domain.identity import Kind
from domain.refusal import ErrorType
from engine.encryption import KeysUnreadable
from engine.errors import ApiError
from engine.kube import KubeApi
from engine.kube.clusters import served_cluster
from engine.settings import Settings, settings
from engine.temporal import connect
from engine.temporal_connection import TemporalRefused, temporal_address
from starters.cli.output import CommandError

S = TypeVar("S")
T = TypeVar("T")

# The field manager of people's writes, which the watcher must not ignore as it ignores Perdure's own writes.
FIELD_MANAGER = "perdure-cli"

_ADVICE = {
    ErrorType.ABSENT: "`perdure list` lists the objects",
    ErrorType.CONFLICT: "another client changed the object at the same time: try again",
    ErrorType.DENIED: "these credentials may not do that in the cluster; deploy/rbac has roles for people",
    ErrorType.UNAVAILABLE: "is the cluster up, and is KUBECONFIG right? For a local deployment: perdure status",
}


@dataclass(frozen=True)
class ClusterSession:
    settings: Settings
    kube: KubeApi
    served: KubeApi | None = None  # the cluster whose Services are served, if it is not `kube`

    def cluster_of(self, kind: Kind) -> KubeApi:
        return self.served or self.kube if kind.served else self.kube


@dataclass(frozen=True)
class Session(ClusterSession):
    temporal: Client = field(kw_only=True)


def perform(work: Callable[[Session], Awaitable[T]]) -> T:
    """Do the work with Temporal and the cluster. Raises CommandError if one of them cannot be reached, or refuses."""
    return _run(_within(session(), work))


def perform_on_cluster(work: Callable[[ClusterSession], Awaitable[T]]) -> T:
    return _run(_within(cluster_session(), work))


def perform_on_temporal(work: Callable[[Settings, Client], Awaitable[T]]) -> T:
    async def connected() -> T:
        found = _for_people()
        return await work(found, await _temporal(found))

    return _run(connected())


async def _within(connection: AbstractAsyncContextManager[S], work: Callable[[S], Awaitable[T]]) -> T:
    async with connection as opened:
        return await work(opened)


def _run(work: Coroutine[object, object, T]) -> T:
    try:
        return asyncio.run(work)
    except ApiError as error:
        raise CommandError(error.message, _ADVICE.get(error.type, "")) from error
    except RPCError as error:
        raise CommandError(refusal(error), _rpc(error)) from error


def refusal(error: ApiError | RPCError) -> str:
    if isinstance(error, ApiError):
        return error.message
    return f"Temporal at {temporal_address()}: {error.status.name}: {error.message}"


@asynccontextmanager
async def session() -> AsyncIterator[Session]:
    async with cluster_session() as opened:
        temporal = await _temporal(opened.settings)
        yield Session(opened.settings, opened.kube, opened.served, temporal=temporal)


@asynccontextmanager
async def cluster_session() -> AsyncIterator[ClusterSession]:
    found = _for_people()
    async with AsyncExitStack() as stack:
        try:
            kube = await stack.enter_async_context(await KubeApi.open(found, "cli"))
        except ConfigException as error:
            raise CommandError(
                f"no Kubernetes cluster is configured: {error}",
                "set KUBECONFIG, or start a local deployment with `perdure up`; --state DIR names another state "
                "directory",
            ) from error
        try:
            served = await stack.enter_async_context(served_cluster(found, kube, "cli"))
        except ConfigException as error:
            raise CommandError(f"PERDURE_LOADBALANCERS_TARGET_KUBECONFIG: {error}") from error
        yield ClusterSession(found, kube, served)


def _for_people() -> Settings:
    return settings().model_copy(update={"metrics_port": 0, "otel_endpoint": ""})


async def _temporal(found: Settings) -> Client:
    try:
        return await connect(found, "cli")
    except KeysUnreadable as error:
        raise CommandError(
            str(error), "set PERDURE_TEMPORAL_KEYS to the directory of keys that the workers use"
        ) from error
    except TemporalRefused as error:
        raise CommandError(
            str(error),
            "is Temporal up, and are TEMPORAL_ADDRESS and TEMPORAL_TLS_* right? For a local deployment: perdure status",
        ) from error


def person() -> str:
    named = os.environ.get("PERDURE_USER")
    if named:
        return named
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (KeyError, OSError):  # a container whose user has no name
        return f"uid {os.getuid()}@{socket.gethostname()}"


def _rpc(error: RPCError) -> str:
    if error.status is RPCStatusCode.PERMISSION_DENIED:
        return "these credentials may not do that in this Temporal namespace"
    if error.status is RPCStatusCode.NOT_FOUND:
        return "is TEMPORAL_NAMESPACE right?"
    if error.status is RPCStatusCode.INVALID_ARGUMENT:
        return "correct --query, if one was given: a condition as in the web UI, such as \"OpPhase = 'Failed'\""
    return "is Temporal up, and is TEMPORAL_ADDRESS right? For a local deployment: perdure status"
