"""One boto3 client per service and region, shared by every account, since a client costs 15 ms of CPU.

Callers hold a *twin*: the shared client with its own `_make_api_call`, which signs with the caller's keys and maps
errors. botocore's retries are off: CreateAccount must not be sent again after a lost answer.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.client import BaseClient
from botocore.config import Config
from botocore.credentials import Credentials, ReadOnlyCredentials
from botocore.paginate import PageIterator, Paginator
from botocore.session import Session

from activities.aws.error_codes import UNAUTHENTICATED, Call, api_error
from activities.aws.service_models import ServiceModels
from domain.refusal import OBSERVE_MODE
from engine import metrics
from engine.errors import ApiError, Denied, Unavailable
from engine.kube.json import at
from engine.pauses import refuse_if_paused

# An answer of boto3, whose exact types exist only in its stubs.
Answer = Mapping[str, object]

CONNECT_TIMEOUT_SECONDS = 5
READ_TIMEOUT_SECONDS = 30
_READING = ("Describe", "List", "Get", "Head")

_CALLER: ContextVar[ReadOnlyCredentials] = ContextVar("aws_caller")


@contextmanager
def held(lock: threading.Lock, what: str) -> Iterator[None]:
    """Hold a lock under which a thread calls AWS. Raises Unavailable if the thread that holds it gets no answer."""
    if not lock.acquire(timeout=READ_TIMEOUT_SECONDS):
        message = f"not requested, because another thread's request has had no answer for {READ_TIMEOUT_SECONDS} s"
        raise Unavailable(f"{what}: {message}", code="Busy")
    try:
        yield
    finally:
        lock.release()


class NoCallerError(RuntimeError):
    """A shared client was called outside of a caller's context: a bug."""


class _CallersCredentials(Credentials):
    def __init__(self) -> None:
        super().__init__("caller", "caller", method="perdure-caller")

    def get_frozen_credentials(self) -> ReadOnlyCredentials:
        caller = _CALLER.get(None)
        if caller is None:
            raise NoCallerError("an AWS client was used without a caller")
        return caller


class _CallersCredentialProvider:
    def load_credentials(self) -> Credentials:
        return _CallersCredentials()


def reading(operation: str) -> bool:
    return operation.startswith(_READING) or operation == "AssumeRole"


class Clients:
    """The shared clients, made when first needed. Above `most` clients, those least recently used are dropped.

    The session that makes clients is not thread-safe (boto3's guide on multithreading), hence the lock.
    """

    def __init__(self, *, connections: int = 64, most: int = 256) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._clients: OrderedDict[tuple[str, str], BaseClient] = OrderedDict()
        session = Session()
        session.register_component("credential_provider", _CallersCredentialProvider())
        session.get_component("data_loader").file_loader = ServiceModels()
        self._session = boto3.Session(botocore_session=session)
        self._config = Config(
            connect_timeout=CONNECT_TIMEOUT_SECONDS,
            read_timeout=READ_TIMEOUT_SECONDS,
            max_pool_connections=connections,
            retries={"mode": "standard", "total_max_attempts": 1},
            user_agent_extra="perdure",
        )

    def shared(self, service: str, region: str) -> BaseClient:
        key = (service, region)
        with self._lock:
            client = self._clients.get(key)
            if client is None:
                # The stubs have an overload for each service name; this call takes any name.
                client = self._session.client(service, region, config=self._config)  # type: ignore[call-overload]
                self._clients[key] = client
                while len(self._clients) > self._most:
                    self._clients.popitem(last=False)
            self._clients.move_to_end(key)
            return client


class Caller:
    def __init__(self, clients: Clients, name: str, *, partition: str = "aws", observing: bool) -> None:
        self.partition = partition
        self._clients = clients
        self._name = name
        self._observing = observing

    def __str__(self) -> str:
        return self._name

    def credential(self) -> ReadOnlyCredentials:
        """The caller's credentials; raises an ApiError if there are none."""
        raise NotImplementedError

    def refused(self, credential: ReadOnlyCredentials, error: Denied) -> bool:
        """Whether a call that was refused as unauthenticated can be repeated with new credentials."""
        return False

    def client(self, service: str, region: str) -> BaseClient:
        with mapped(Call(service=service, operation="(its client)", caller=self._name, region=region)):
            shared = self._clients.shared(service, region)
        twin = object.__new__(type(shared))
        twin.__dict__.update(shared.__dict__)
        twin.__dict__["_make_api_call"] = self._funnel(_operations(shared), service, region)
        twin.__dict__["get_paginator"] = self._paginators(twin, service, region)
        return twin

    def _paginators(self, twin: BaseClient, service: str, region: str) -> Callable[[str], Paginator[Any]]:
        make = twin.get_paginator

        def paginator(operation: str) -> Paginator[Any]:
            made = make(operation)
            what = Call(service=service, operation=operation, caller=self._name, region=region)
            made.PAGE_ITERATOR_CLS = partial(_Pages, what)  # type: ignore[assignment]  # botocore only calls it
            return made

        return paginator

    def guarded(self) -> AbstractContextManager[None]:
        return nullcontext()

    def _funnel(
        self, make: Callable[[str, dict[str, object]], Answer], service: str, region: str
    ) -> Callable[[str, dict[str, object]], Answer]:
        def call(operation: str, parameters: dict[str, object]) -> Answer:
            what = Call.of(service, operation, self._name, region, parameters)
            if self._observing and not reading(operation):
                raise Denied(f"{what}: not sent, Perdure runs in observe mode", code=OBSERVE_MODE)
            if not reading(operation):
                refuse_if_paused(what)
            with self.guarded():
                return self._ask(make, what, parameters)

        return call

    def _ask(
        self, make: Callable[[str, dict[str, object]], Answer], what: Call, parameters: dict[str, object]
    ) -> Answer:
        credential = self.credential()
        started = time.monotonic()
        try:
            return _send(make, what, parameters, credential)
        except Unavailable:
            if not reading(what.operation) or time.monotonic() > started + CONNECT_TIMEOUT_SECONDS:
                raise
        except Denied as error:
            # A request whose signature was refused has had no effect.
            if error.code not in UNAUTHENTICATED or not self.refused(credential, error):
                raise
        return _send(make, what, parameters, self.credential())


class _Pages(PageIterator):  # type: ignore[type-arg]  # it has no type arguments at runtime
    """Also maps errors that botocore itself raises between two pages."""

    def __init__(self, what: Call, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._what = what

    def __iter__(self) -> Iterator[Any]:
        pages = super().__iter__()
        while True:
            with mapped(self._what):
                page = next(pages, None)
            if page is None:
                return
            yield page


def _operations(client: BaseClient) -> Callable[[str, dict[str, object]], Answer]:
    made: Callable[[str, dict[str, object]], Answer] = client._make_api_call  # type: ignore[attr-defined]
    host, service = urlsplit(client.meta.endpoint_url).netloc, client.meta.service_model.service_name

    def measured(operation: str, parameters: dict[str, object]) -> Answer:
        method = str(client.meta.service_model.operation_model(operation).http.get("method", "POST"))
        with metrics.requesting(method, host, f"aws {service}.{operation}") as request:
            answer = made(operation, parameters)
            status = at(answer, "ResponseMetadata", "HTTPStatusCode")
            request.status = status if isinstance(status, int) else 0
        return answer

    return measured


def _send(
    make: Callable[[str, dict[str, object]], Answer],
    what: Call,
    parameters: dict[str, object],
    credential: ReadOnlyCredentials,
) -> Answer:
    with _calling_as(credential), mapped(what):
        return make(what.operation, parameters)


@contextmanager
def _calling_as(credential: ReadOnlyCredentials) -> Iterator[None]:
    token = _CALLER.set(credential)
    try:
        yield
    finally:
        _CALLER.reset(token)


@contextmanager
def mapped(what: Call) -> Iterator[None]:
    try:
        yield
    except (ApiError, NoCallerError):
        raise
    except Exception as error:
        raise api_error(what, error) from error
