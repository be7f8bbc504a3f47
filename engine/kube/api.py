"""The client: get, list, create, patch, replace, delete and watch objects of any kind, as plain JSON.

It raises the errors of `engine.errors`. Requests have timeouts, and silent watches end. Mutating methods send nothing
in observe mode (`Denied`) and for a paused area (`Unavailable`).
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple, Self
from urllib.parse import quote

import aiohttp
from kubernetes.aio.config import ConfigException
from yarl import URL

from domain.built_in_kinds import SELF_SUBJECT_ACCESS_REVIEW
from domain.identity import Kind, is_possible_name
from domain.refusal import OBSERVE_MODE
from engine import metrics
from engine.errors import Absent, Denied, Unavailable
from engine.kube.connection import Connection
from engine.kube.errors import Expired, api_error, no_answer
from engine.kube.json import JsonObject, at, mapping, parsed, sequence, text
from engine.pauses import refuse_if_paused
from engine.settings import Settings
from engine.telemetry import version

FIELD_MANAGER = "perdure"
REQUEST_TIMEOUT = timedelta(seconds=30)
CONNECTIONS = 100  # for requests; watches have connections of their own
# How many of the starved watches are named; there may be hundreds.
MOST_NAMED = 10

_MERGE_PATCH = "application/merge-patch+json"
_JSON_PATCH = "application/json-patch+json"
_APPLY = "application/apply-patch+yaml"
_JSON = "application/json"
# For lists and watches of metadata alone: the API server leaves out the rest of each object.
_METADATA = "application/json;as={};g=meta.k8s.io;v=v1"
_METADATA_LIST = _METADATA.format("PartialObjectMetadataList")
_METADATA_OBJECT = _METADATA.format("PartialObjectMetadata")
_NO_OBJECT = "the answer contains no object, so it is not from an API server"
# ValueError: an answer that is not JSON, from a proxy between us and the API server.
_NO_ANSWER = (aiohttp.ClientError, TimeoutError, OSError, ValueError)


class Request(NamedTuple):
    """A request. `attempt` says in errors what was tried; `accept` is JSON if empty."""

    method: str
    attempt: str
    path: str
    parameters: Mapping[str, str] | None = None
    body: Mapping[str, object] | Sequence[object] | None = None
    content_type: str = _JSON
    accept: str = ""


class Listing(NamedTuple):
    items: list[JsonObject]
    resource_version: str


class WatchEvent(NamedTuple):
    """`type` is ADDED, MODIFIED, DELETED or BOOKMARK."""

    type: str
    object: JsonObject


class KubeApi:
    """One cluster's API; one instance per process, because it holds the connections."""

    def __init__(
        self,
        connection: Connection,
        *,
        process: str,
        operator_domain: str,
        connections: int = CONNECTIONS,
        request_timeout: timedelta = REQUEST_TIMEOUT,
        observing: bool = False,
    ) -> None:
        """`operator_domain` is OPERATOR_DOMAIN, the API group of some kinds."""
        self._connection = connection
        self._process = process
        self.operator_domain = operator_domain
        self._timeout = request_timeout
        self._observing = observing
        self._heard = time.monotonic()
        self._failed = 0.0
        self._watches: dict[object, tuple[Callable[[], Iterable[str]], Callable[[], Iterable[str]]]] = {}
        headers = {"User-Agent": f"perdure/{version()} ({process})", "Accept": _JSON}
        if connection.local:
            headers["Accept-Encoding"] = "identity"
        # A stream holds its connection for minutes: many streams would leave none for requests.
        self._session, self._streams = (
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=limit),
                timeout=aiohttp.ClientTimeout(total=request_timeout.total_seconds()),
                headers=headers,
            )
            for limit in (connections, 0)
        )

    @classmethod
    async def open(
        cls, settings: Settings, process: str = "perdure", kubeconfig: str = "", *, connections: int = CONNECTIONS
    ) -> Self:
        """Find the cluster and make its client; close it with `close` or use it in `async with`.

        Args:
            settings: observe mode and OPERATOR_DOMAIN.
            process: part of the User-Agent.
            kubeconfig: a file to use instead of the environment's.
            connections: the limit for requests; watches have connections of their own.
        """
        connection = Connection(kubeconfig)
        await connection.load()
        return cls(
            connection,
            process=process,
            operator_domain=settings.claims_domain,
            connections=connections,
            observing=settings.observing,
        )

    def beside(self, connection: Connection, *, connections: int) -> KubeApi:
        return KubeApi(
            connection,
            process=self._process,
            operator_domain=self.operator_domain,
            connections=connections,
            observing=self._observing,
        )

    async def close(self) -> None:
        await self._session.close()
        await self._streams.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def host(self) -> str:
        return self._connection.host

    # For the health checks.

    @property
    def quiet(self) -> float:
        """Seconds since the API server last sent something."""
        return time.monotonic() - self._heard

    @property
    def failed_since_answer(self) -> bool:
        return self._failed > self._heard

    async def ready(self) -> None:
        """Raises Unavailable if the API server cannot serve."""
        attempt = "get /readyz of the API server"
        try:
            async with await self._answered(Request("GET", attempt, "/readyz")):
                pass
        except _NO_ANSWER as error:
            raise no_answer(attempt, error, self._timeout) from error

    def add_watch(
        self, watch: object, stalled: Callable[[], Iterable[str]], starved: Callable[[], Iterable[str]]
    ) -> None:
        self._watches[watch] = stalled, starved

    def remove_watch(self, watch: object) -> None:
        self._watches.pop(watch, None)

    def stalled_watches(self) -> list[str]:
        """Messages about watches that only a restart of the process revives."""
        return [reason for stalled, _ in self._watches.values() for reason in stalled()]

    def starved_watches(self) -> list[str]:
        """Messages about watches that the API server has not served for too long."""
        reasons = [reason for _, starved in self._watches.values() for reason in starved()]
        named, more = reasons[:MOST_NAMED], len(reasons) - MOST_NAMED
        return [*named, f"and {more} more watches"] if more > 0 else named

    # Reading.

    async def get(self, kind: Kind, namespace: str, name: str) -> JsonObject:
        """Read the object; raises Absent if it does not exist. Namespace is empty for cluster-scoped kinds."""
        return await self._send(self._request_to("get", "GET", kind, namespace, name))

    async def list(
        self, kind: Kind, namespace: str = "", *, label_selector: str = "", field_selector: str = "", limit: int = 500
    ) -> Listing:
        """All objects of a kind, in one namespace or in all, read in pages of `limit` objects (0: in one page)."""
        pages = partial(self.pages, kind, namespace, label_selector=label_selector, field_selector=field_selector)
        try:
            found = [page async for page in pages(limit=limit)]
        except Expired:
            # The continue token has expired: etcd keeps old versions for five minutes. A single page cannot expire.
            found = [page async for page in pages(limit=0)]
        return Listing([item for page in found for item in page.items], found[-1].resource_version)

    async def pages(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 500,
        metadata_only: bool = False,
    ) -> AsyncGenerator[Listing, None]:
        """A list, page by page; raises Expired if it takes too long.

        With `metadata_only` the server sends no content, not even that of Secrets.
        """
        accept = _METADATA_LIST if metadata_only else ""
        following = ""
        while True:
            parameters = _parameters(
                labelSelector=label_selector,
                fieldSelector=field_selector,
                limit=str(limit) if limit else "",
                **{"continue": following},
            )
            request = self._request_to_all("list", "GET", kind, namespace, parameters=parameters, accept=accept)
            answer = await self._send(request)
            items = [item for item in sequence(answer, "items") if isinstance(item, dict)]
            yield Listing(items, text(answer, "metadata", "resourceVersion"))
            following = text(answer, "metadata", "continue")
            if not following:
                return

    async def watch(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        duration: timedelta = timedelta(seconds=300),
        silence: timedelta = timedelta(seconds=70),
        opened: Callable[[], None] | None = None,
        metadata_only: bool = False,
    ) -> AsyncGenerator[WatchEvent, None]:
        """Events after a resource version, until the server ends the stream after `duration`.

        `opened` is called when the server accepts the watch.

        Raises:
            Expired: the version is too old, or an ERROR event came; list again.
            Unavailable: the stream broke, or was silent for `silence`; continue from the last version.
        """
        parameters = _parameters(
            watch="true",
            allowWatchBookmarks="true",
            resourceVersion=resource_version,
            labelSelector=label_selector,
            fieldSelector=field_selector,
            timeoutSeconds=str(int(duration.total_seconds())),
        )
        accept = _METADATA_OBJECT if metadata_only else ""
        request = self._request_to_all("watch", "GET", kind, namespace, parameters=parameters, accept=accept)
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=self._timeout.total_seconds(), sock_read=silence.total_seconds()
        )
        try:
            async with await self._answered(request, timeout) as response:
                if opened is not None:
                    opened()
                try:
                    async for line in _lines(response.content):
                        self._heard = time.monotonic()
                        event = parsed(line)
                        if text(event, "type") == "ERROR":
                            raise _watch_error(request.attempt, at(event, "object"))
                        if not text(event, "object", "metadata", "resourceVersion"):
                            raise Unavailable(f"{request.attempt}: {_NO_OBJECT}")
                        yield WatchEvent(text(event, "type"), dict(mapping(event, "object")))
                finally:
                    _hang_up(response)
        except _NO_ANSWER as error:
            self._failed = time.monotonic()
            raise no_answer(request.attempt, error, silence) from error

    async def may(self, verbs: Iterable[str], kind: Kind, namespace: str = "") -> bool:
        """Whether we may use all these verbs on the kind; without a namespace, in the whole cluster."""
        attempt = _attempt("ask for our rights to", kind, namespace)
        group = kind.under(self.operator_domain).group
        for verb in verbs:
            asked = {"verb": verb, "group": group, "resource": kind.plural, "namespace": namespace}
            review = self._typed(SELF_SUBJECT_ACCESS_REVIEW, {"spec": {"resourceAttributes": asked}})
            path = self.path(SELF_SUBJECT_ACCESS_REVIEW, "")
            answer = await self._send(Request("POST", attempt, path, body=review))
            if at(answer, "status", "allowed") is not True:
                return False
        return True

    async def applied(
        self, kind: Kind, obj: Mapping[str, object], namespace: str = "", *, field_manager: str = FIELD_MANAGER
    ) -> JsonObject:
        """The object as a server-side apply would write it, validated and with defaults (a dry run)."""
        name = text(obj, "metadata", "name")
        request = self._request_to("apply (dry run)", "PATCH", kind, namespace, name, content_type=_APPLY)
        parameters = {"fieldManager": field_manager, "dryRun": "All", "force": "true"}
        return await self._send(request._replace(parameters=parameters, body=self._typed(kind, obj)))

    # Writing.

    async def create(
        self, kind: Kind, obj: Mapping[str, object], namespace: str = "", *, field_manager: str = FIELD_MANAGER
    ) -> JsonObject:
        """Create the object; raises Conflict with code `AlreadyExists` if its name is taken. `obj` may lack
        `apiVersion` and `kind`.
        """
        name = text(obj, "metadata", "name") or text(obj, "metadata", "generateName")
        request = self._request_to_all("create", "POST", kind, namespace, name)
        return await self._write(request._replace(parameters=_written_by(field_manager), body=self._typed(kind, obj)))

    async def create_under(
        self, kind: Kind, namespace: str, name: str, subresource: str, obj: Mapping[str, object]
    ) -> JsonObject:
        return await self._write(self._request_to("create", "POST", kind, namespace, name, subresource, body=obj))

    async def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        patch: Mapping[str, object],
        *,
        subresource: str = "",
        resource_version: str = "",
        field_manager: str = FIELD_MANAGER,
    ) -> JsonObject:
        """JSON merge patch: null removes a field, a list replaces the list.

        With `resource_version`, raises Conflict if the object has another version. `field_manager` becomes the change's
        owner in `metadata.managedFields`.
        """
        body = dict(patch)
        if resource_version:
            body["metadata"] = {**mapping(patch, "metadata"), "resourceVersion": resource_version}
        request = self._request_to("patch", "PATCH", kind, namespace, name, subresource, content_type=_MERGE_PATCH)
        return await self._write(request._replace(parameters=_written_by(field_manager), body=body))

    async def json_patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        operations: Sequence[Mapping[str, object]],
        *,
        resource_version: str = "",
        field_manager: str = FIELD_MANAGER,
    ) -> JsonObject:
        """A JSON Patch (RFC 6902); with `resource_version`, only if the object is still at that version."""
        expected = {"op": "add", "path": "/metadata/resourceVersion", "value": resource_version}
        body = [*operations, expected] if resource_version else [*operations]
        request = self._request_to("patch", "PATCH", kind, namespace, name, content_type=_JSON_PATCH)
        return await self._write(request._replace(parameters=_written_by(field_manager), body=body))

    async def replace(
        self, kind: Kind, namespace: str, name: str, obj: Mapping[str, object], *, subresource: str = ""
    ) -> JsonObject:
        """Replace the object. A `metadata.resourceVersion` in `obj` must be the stored object's."""
        request = self._request_to("replace", "PUT", kind, namespace, name, subresource)
        return await self._write(request._replace(parameters=_written_by(FIELD_MANAGER), body=self._typed(kind, obj)))

    async def delete(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        resource_version: str = "",
        grace_period: int | None = None,
    ) -> JsonObject | None:
        """Delete the object; raises Absent if it does not exist, Conflict if its uid or version differs.

        `grace_period` (seconds) replaces the object's own. Returns the object if finalizers delay its deletion; None
        if it is gone.
        """
        preconditions = _parameters(uid=uid, resourceVersion=resource_version)
        body: JsonObject = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        if preconditions:
            body["preconditions"] = preconditions
        if grace_period is not None:
            body["gracePeriodSeconds"] = grace_period
        left = await self._write(self._request_to("delete", "DELETE", kind, namespace, name, body=body))
        return left if text(left, "kind") == kind.name else None

    # The wire.

    def _request_to(
        self, verb: str, method: str, kind: Kind, namespace: str, name: str, subresource: str = "", **more: Any
    ) -> Request:
        """The request for one object; `more` are further fields. Raises Absent if no object can have the name."""
        attempt = _attempt(verb, kind, namespace, name, subresource)
        if kind.plural and not name:  # the path would be that of all objects, and a deletion would delete them
            raise Absent(f"{attempt}: no {kind.name} can exist without a name", code="NotFound")
        return Request(method, attempt, self.path(kind, namespace, name, subresource), **more)

    def _request_to_all(
        self, verb: str, method: str, kind: Kind, namespace: str, name: str = "", **more: Any
    ) -> Request:
        """The request to the path of all objects of a kind. Errors show the `name`; the path does not."""
        return Request(method, _attempt(verb, kind, namespace, name), self.path(kind, namespace), **more)

    async def _write(self, request: Request) -> JsonObject:
        if self._observing:
            raise Denied(f"{request.attempt}: not sent, Perdure runs in observe mode", code=OBSERVE_MODE)
        refuse_if_paused(request.attempt)
        return await self._send(request)

    def _typed(self, kind: Kind, obj: Mapping[str, object]) -> JsonObject:
        return {"apiVersion": kind.under(self.operator_domain).api_version, "kind": kind.name, **obj}

    def path(self, kind: Kind, namespace: str, name: str = "", subresource: str = "") -> str:
        return path_of(kind.under(self.operator_domain), namespace, name, subresource)

    async def _send(self, request: Request) -> JsonObject:
        try:
            async with await self._answered(request) as response:
                answer = parsed(await response.read())
        except _NO_ANSWER as error:
            raise no_answer(request.attempt, error, self._timeout) from error
        if not isinstance(answer, dict) or not answer.get("kind"):
            # An API server names the kind of everything. Anything else would look like an empty list or object.
            raise Unavailable(f"{request.attempt}: {_NO_OBJECT}")
        return answer

    async def _answered(self, request: Request, stream: aiohttp.ClientTimeout | None = None) -> aiohttp.ClientResponse:
        """A successful answer, its body still to be read. A first 401 loads new credentials and repeats the request.

        `stream`: the timeouts of a watch; None for other requests.
        """
        seen = self._connection.generation
        response = await self._request(request, stream)
        if response.status == 401:
            response.release()
            try:
                await self._connection.load(seen)
            except ConfigException as error:  # a kubeconfig or token that is being written
                raise Unavailable(f"{request.attempt}: 401, and the credentials cannot be read: {error}") from error
            response = await self._request(request, stream)
        if response.status < 400:
            return response
        async with response:
            body = await response.text(errors="replace")
        raise api_error(request.attempt, response.status, body, response.headers.get("Retry-After", ""))

    async def _request(self, request: Request, stream: aiohttp.ClientTimeout | None) -> aiohttp.ClientResponse:
        connection, session = self._connection, self._session if stream is None else self._streams
        body = None if request.body is None else json.dumps(request.body).encode()
        headers = {"Content-Type": request.content_type} if body is not None else {}
        if request.accept:
            headers["Accept"] = request.accept
        if authorization := await connection.authorization():
            headers["Authorization"] = authorization
        url = URL(connection.host + request.path, encoded=True)
        try:
            with metrics.requesting(request.method, metrics.nameless(request.path)) as exchange:
                response = await session.request(
                    request.method,
                    url.with_query(request.parameters) if request.parameters else url,
                    data=body,
                    headers=headers,
                    ssl=connection.ssl,
                    server_hostname=connection.server_hostname,
                    proxy=connection.proxy,
                    timeout=stream or session.timeout,
                )
                exchange.status = response.status
        except _NO_ANSWER:
            self._failed = time.monotonic()
            raise
        if response.status < 500:
            self._heard = time.monotonic()
        else:
            self._failed = time.monotonic()
        return response


async def _lines(stream: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Whole lines of any length; a line that a cut connection left unfinished is dropped."""
    pending: list[bytes] = []
    async for chunk in stream.iter_any():
        first, *rest = chunk.split(b"\n")
        pending.append(first)
        for part in rest:
            line, pending = b"".join(pending), [part]
            if line:
                yield line


def _hang_up(response: aiohttp.ClientResponse) -> None:
    """Disconnect without waiting for the server to close TLS. Waiting would leave the socket open if the loop ends."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()


def _watch_error(attempt: str, status: object) -> Expired:
    """The error of a watch that ended with a Status, mostly a 410; a watch from the same version would fail, too."""
    return Expired(f"{attempt}: {text(status, 'message') or status}", code=text(status, "reason"))


def _attempt(verb: str, kind: Kind, namespace: str, name: str = "", subresource: str = "") -> str:
    what = f"{kind.name}/{subresource}" if subresource else kind.name
    where = "/".join(part for part in (namespace, name) if part)
    return f"{verb} {what} {where}".rstrip()


def path_of(kind: Kind, namespace: str, name: str = "", subresource: str = "") -> str:
    parts = ["apis", kind.group, kind.version] if kind.group else ["api", kind.version]
    parts += ["namespaces", namespace] if namespace else []
    parts += [kind.plural, name, subresource]
    if not (is_possible_name(namespace) and is_possible_name(name)):
        where = "/".join(filter(None, (namespace, name)))
        raise Absent(f"{kind.name} {where} cannot exist: its namespace or name is invalid", code="NotFound")
    return "".join(f"/{quote(part, safe='')}" for part in parts if part)


def _parameters(**values: str) -> dict[str, str]:
    return {name: value for name, value in values.items() if value}


def _written_by(field_manager: str) -> dict[str, str]:
    """The query parameters of a write. `Ignore`: the API server drops unknown fields without a warning."""
    return {"fieldManager": field_manager, "fieldValidation": "Ignore"}
