"""A proxy between the worker and the API server that breaks single requests at the moment that a test names.

Plain HTTP on loopback, one thread per connection; the credentials are the proxy's. Answers are forwarded whole, those
of watches as they come. What a request is recognised by is the test's own predicate.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

LONGEST_HOLD_SECONDS = 25.0
# The API server sends a bookmark each minute.
LONGEST_SILENCE_SECONDS = 90.0
# How long an effect that comes late waits: long enough for the process that asked for it to be dead.
LATE_SECONDS = 1.5
# How long an answer that is delayed waits.
DELAYED_SECONDS = 3.0


class Break(StrEnum):
    """What happens to a request."""

    BEFORE = "before"  # held back until the test lets go, and then lost; nothing was done
    AFTER = "after"  # done; the answer is held back until the test lets go, and then lost
    LATE = "late"  # done only a moment later, when the caller waits no more
    LOST = "lost"  # done, and the connection closed at once
    DELAYED = "delayed"  # done, answered after some seconds or when the test lets go
    PARKED = "parked"  # on its way; goes on to the server when the test lets go
    THROTTLED = "throttled"  # 429
    FAILED = "failed"  # 500, nothing was done
    CONFLICT = "conflict"  # 409, nothing was done


_REFUSALS = {
    Break.THROTTLED: (429, "TooManyRequests"),
    Break.FAILED: (500, "InternalError"),
    Break.CONFLICT: (409, "Conflict"),
}


@dataclass(frozen=True)
class Request:
    """A request as predicates see it. `body` is empty where there is none."""

    method: str
    path: str
    body: dict[str, Any]

    def of(self, method: str, plural: str, subresource: str = "") -> bool:
        """True for this verb on an object (or the collection, for POST) of this kind."""
        parts = self.path.split("?")[0].strip("/").split("/")
        if self.method != method or plural not in parts:
            return False
        rest = parts[parts.index(plural) + 1 :]
        return rest[1:] == ([subresource] if subresource else [])

    def of_one(self, method: str, plural: str) -> bool:
        """True for this verb on a single object of this kind."""
        return self.of(method, plural) and self.path.split("?")[0].rstrip("/").rpartition("/")[2] != plural


@dataclass
class Interception:
    """A break in force, or used up."""

    matches: Callable[[Request], bool]
    kind: Break
    count: int | None = 1
    seconds: float = DELAYED_SECONDS
    hits: int = 0
    struck: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)


class KubeProxy:
    """The proxy; `url` is where it listens."""

    def __init__(self, server: str, context: ssl.SSLContext) -> None:
        self._address = urlsplit(server)
        self._context = context
        self._lock = threading.Lock()
        self._breaks: list[Interception] = []
        self._here = threading.local()
        self.requests: list[Request] = []
        self.changes = 0
        """How many requests that change something there were, Events and leases apart."""
        self.held = 0
        """How many requests are being broken now: their clients still wait for an answer."""
        self.recording = False
        self._httpd = _Server(("127.0.0.1", 0), type("BoundHandler", (_Handler,), {"proxy": self}))
        self.url = f"http://127.0.0.1:{self._httpd.server_address[1]}"
        threading.Thread(target=self._httpd.serve_forever, args=(0.05,), daemon=True).start()

    def turn_to(self, server: str) -> None:
        """The API server is elsewhere from now on."""
        self._address = urlsplit(server)

    def close(self) -> None:
        """Stop listening."""
        self.clear()
        self._httpd.shutdown()
        self._httpd.server_close()

    def write_kubeconfig(self, path: Path) -> Path:
        """A kubeconfig that leads here; no credentials are needed."""
        cluster = {"name": "proxy", "cluster": {"server": self.url}}
        context = {"name": "proxy", "context": {"cluster": "proxy", "user": "nobody"}}
        user = {"name": "nobody", "user": {"token": "none"}}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [cluster],
            "contexts": [context],
            "users": [user],
            "current-context": "proxy",
        }
        path.write_text(yaml.safe_dump(content))
        return path

    def intercept(
        self, matches: Callable[[Request], bool], kind: Break, count: int | None = 1, seconds: float = 0.0
    ) -> Interception:
        """Break the next `count` requests that match (None: all until cleared); what is late is so by `seconds`."""
        usual = LATE_SECONDS if kind is Break.LATE else DELAYED_SECONDS
        made = Interception(matches, kind, count, seconds or usual)
        with self._lock:
            self._breaks.append(made)
        return made

    def clear(self) -> None:
        """Break nothing any more; what is held goes on."""
        with self._lock:
            breaks, self._breaks = self._breaks, []
        for each in breaks:
            each.released.set()

    def take(self, request: Request) -> Interception | None:
        """The break that takes this request."""
        with self._lock:
            if self.recording:
                self.requests.append(request)
            if request.method != "GET" and not {"events", "leases"} & set(request.path.split("?")[0].split("/")):
                self.changes += 1
            for each in self._breaks:
                if each.count != 0 and each.matches(request):
                    each.count = each.count - 1 if each.count is not None else None
                    each.hits += 1
                    return each
        return None

    def hold(self, one: int) -> None:
        """A request more is being broken, or one less."""
        with self._lock:
            self.held += one

    def forward(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, str, bytes] | None:
        """The API server's answer; None if there is none."""
        for fresh in (False, True):
            connection = self._connection(fresh)
            try:
                connection.request(method, path, body or None, headers)
                answer = connection.getresponse()
                return answer.status, answer.getheader("Content-Type", "application/json"), answer.read()
            except (ConnectionRefusedError, TimeoutError):
                return None
            except (http.client.HTTPException, OSError):
                # A reused connection that the server closed meanwhile says nothing of this request, a fresh one does.
                if fresh:
                    return None
        return None

    def _connection(self, fresh: bool) -> http.client.HTTPSConnection:
        retained: http.client.HTTPSConnection | None = getattr(self._here, "connection", None)
        if retained is None or fresh:
            self.hang_up()
            retained = http.client.HTTPSConnection(
                self._address.hostname or "", self._address.port, timeout=30, context=self._context
            )
            self._here.connection = retained
        return retained

    @contextmanager
    def stream(self, path: str, headers: dict[str, str]) -> Iterator[http.client.HTTPResponse]:
        """A watch, on a connection of its own."""
        connection = http.client.HTTPSConnection(
            self._address.hostname or "", self._address.port, timeout=LONGEST_SILENCE_SECONDS, context=self._context
        )
        try:
            connection.request("GET", path, headers=headers)
            with connection.getresponse() as answer:
                yield answer
        finally:
            connection.close()

    def hang_up(self) -> None:
        """Close this thread's connection to the API server."""
        retained: http.client.HTTPSConnection | None = getattr(self._here, "connection", None)
        if retained is not None:
            retained.close()
            self._here.connection = None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients are killed here on purpose."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    proxy: KubeProxy

    def finish(self) -> None:
        """The client has gone: so does its way to the API server."""
        self.proxy.hang_up()
        super().finish()

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = Request(self.command, self.path, json.loads(body) if body else {})
        passed = {name: value for name, value in self.headers.items() if name.lower() in _PASSED}
        taken = self.proxy.take(request)
        if taken is None and "watch=true" in self.path:
            self._stream(passed)
        elif taken is None:
            self._answer(self.proxy.forward(self.command, self.path, passed, body))
        else:
            self.proxy.hold(1)
            try:
                self._break(taken, passed, body)
            finally:
                self.proxy.hold(-1)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 - http.server's names

    def _break(self, taken: Interception, headers: dict[str, str], body: bytes) -> None:
        if refusal := _REFUSALS.get(taken.kind):
            taken.struck.set()
            code, reason = refusal
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code}
            self._answer((code, "application/json", json.dumps(status).encode()))
            return
        if taken.kind is Break.LATE:
            taken.struck.set()
            time.sleep(taken.seconds)
        if taken.kind in (Break.BEFORE, Break.PARKED):
            taken.struck.set()
            taken.released.wait(LONGEST_HOLD_SECONDS)
        answer = None if taken.kind is Break.BEFORE else self.proxy.forward(self.command, self.path, headers, body)
        taken.struck.set()
        if taken.kind is Break.DELAYED:
            taken.released.wait(taken.seconds)
        if taken.kind in (Break.DELAYED, Break.PARKED):
            self._answer(answer)
            return
        if taken.kind is Break.AFTER:
            taken.released.wait(LONGEST_HOLD_SECONDS)
        self._answer(None)

    def _stream(self, headers: dict[str, str]) -> None:
        """Forward a watch until one of the two sides ends it."""
        self.close_connection = True
        try:
            with self.proxy.stream(self.path, headers) as answer:
                self.send_response_only(answer.status)
                self.send_header("Content-Type", answer.getheader("Content-Type", "application/json"))
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.flush()  # as the API server does: that a stream runs is known before its first event
                while chunk := answer.read1(65536):
                    self.wfile.write(chunk)
                    self.wfile.flush()
        except (http.client.HTTPException, OSError):
            self._answer(None)

    def _answer(self, answer: tuple[int, str, bytes] | None) -> None:
        if answer is None:
            self.close_connection = True
            try:
                self.connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                return
            return
        status, kind, content = answer
        self.send_response_only(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


_PASSED = {"accept", "content-type", "user-agent"}
