"""The HTTP server: one port for all AWS APIs and the control API.

    control path? ─► identify ─► latency ─► authenticate ─► fault? ─► moto (one call at a time) ─► ledger, state

If a fault loses the answer, the connection is closed without a byte.
"""

from __future__ import annotations

import logging
import socket
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from http.server import ThreadingHTTPServer
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app

from localcloud.aws import call as calls
from localcloud.aws import faults, identity, runtime, wire
from localcloud.aws.api import ControlAPI
from localcloud.aws.call import CallInHand
from localcloud.aws.contract import Call, Fault, FaultKind
from localcloud.aws.persistence import StateFile

log = logging.getLogger(__name__)

_ERRORS_BEFORE = (FaultKind.THROTTLE, FaultKind.DENIED, FaultKind.ERROR)
_NO_ANSWER = 0

Headers = list[tuple[str, str]]


class Answer:
    def __init__(self, status: int, headers: Headers, body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body


class Emulator:
    def __init__(self, state: StateFile) -> None:
        self._state = state
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._control = ControlAPI(state)

    def answer(self, environ: wire.Environ) -> Answer | None:
        path = environ.get("PATH_INFO", "/")
        if path == "/perdure" or path.startswith("/perdure/"):
            status, body = self._control.answer(environ)
            return Answer(status, [("Content-Type", "application/json")], body)
        return self._answer_aws(environ, path)

    def _answer_aws(self, environ: wire.Environ, path: str) -> Answer | None:
        began = time.time()
        request = wire.read_request(environ)
        wait = runtime.config().latency_ms / 1000
        if wait > 0:
            time.sleep(wait)
        call = CallInHand(request.service, request.action, request.region, request.access_key_id)
        call.mutating = request.mutating
        calls.set_current(call)
        try:
            with runtime.MOTO:
                call.account, refusal = identity.authenticate(request)
            fault: Fault | None = None
            if refusal is not None:
                answer: Answer | None = _error(request.service, refusal)
            else:
                fault = runtime.faults.strike(request, call.account, path)
                answer = self._serve(environ, request, call, fault)
        finally:
            calls.set_current(None)
            self._remember(call)
        _enter_ledger(request, call, answer, fault, began)
        return answer

    def _serve(
        self, environ: wire.Environ, request: wire.SignedRequest, call: CallInHand, fault: Fault | None
    ) -> Answer | None:
        if fault is None:
            return self._ask_moto(environ)
        kind = fault.kind
        if kind is FaultKind.BEFORE:
            return None
        if kind in _ERRORS_BEFORE:
            return _error(request.service, faults.error_of(fault, request, call.account))
        if kind is FaultKind.DELAY and not fault.late_answer:
            runtime.faults.sit_out(fault)
        if kind is FaultKind.ASYNC_FAILURE:
            call.failure_reason = fault.code or "INTERNAL_FAILURE"
        answer = self._ask_moto(environ)
        self._remember(call)
        if kind is FaultKind.AFTER:
            return None
        if kind is FaultKind.ERROR_AFTER:
            return _error(request.service, faults.error_of(fault, request, call.account))
        if kind is FaultKind.DELAY and fault.late_answer:
            runtime.faults.sit_out(fault)
        return answer

    def _ask_moto(self, environ: wire.Environ) -> Answer:
        # The account comes from the access key, so a header that names another account is dropped.
        environ.pop("HTTP_X_MOTO_ACCOUNT_ID", None)
        with runtime.MOTO:
            return _call_wsgi(self._moto, environ)

    def _remember(self, call: CallInHand) -> None:
        if call.touched and (call.mutating or call.changed):
            self._state.changed(set(call.touched))
            call.touched.clear()
            call.changed = False


class Handler(MotoRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    emulator: Emulator

    def run_wsgi(self) -> None:
        self.environ = environ = self.make_environ()
        try:
            answer = self.emulator.answer(environ)
        except Exception:
            log.exception("%s %s failed", self.command, self.path)
            answer = _internal_error(environ)
        if answer is None:
            self._hang_up()
            return
        self._send(answer)

    def handle_expect_100(self) -> bool:
        """Send 100 Continue at once; S3 clients wait a second for it."""
        proceed = super().handle_expect_100()
        self.wfile.flush()
        return bool(proceed)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass

    def _send(self, answer: Answer) -> None:
        self.send_response_only(answer.status)
        self.send_header("Server", "perdure-aws")
        self.send_header("Date", self.date_time_string())
        names = set()
        for name, value in answer.headers:
            if name.lower() not in ("server", "date", "connection", "transfer-encoding"):
                self.send_header(name, value)
                names.add(name.lower())
        bodiless = answer.status in (204, 304) or 100 <= answer.status < 200
        if "content-length" not in names and not bodiless:
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD" and not bodiless:
            self.wfile.write(answer.body)
        self.wfile.flush()

    def _hang_up(self) -> None:
        self.close_connection = True
        with suppress(OSError):  # the client may have gone
            self.connection.shutdown(socket.SHUT_RDWR)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 512
    # werkzeug's handler reads this from its server.
    ssl_context = None
    multithread = True
    multiprocess = False
    _server_version = "perdure-aws"

    def __init__(self, host: str, port: int, emulator: Emulator) -> None:
        super().__init__((host, port), type("BoundHandler", (Handler,), {"emulator": emulator}))

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError | TimeoutError):
            log.exception("connection of %s failed", client_address)

    def log(self, _kind: str, message: str, *args: object) -> None:
        log.debug(message, *args)


def _call_wsgi(app: Any, environ: wire.Environ) -> Answer:
    status_line = ""
    headers: Headers = []

    def start_response(status: str, response_headers: Headers, exc_info: object = None) -> Callable[[bytes], object]:
        nonlocal status_line, headers
        status_line, headers = status, response_headers
        return lambda _data: None

    chunks: Iterable[bytes] = app(environ, start_response)
    try:
        body = b"".join(chunks)
    finally:
        close = getattr(chunks, "close", None)
        if close is not None:
            close()
    return Answer(int(status_line.split(" ", 1)[0]), headers, body)


def _error(service: str, error: wire.ErrorAnswer) -> Answer:
    body, headers = wire.render_error(service, error)
    return Answer(error.status, headers, body)


def _internal_error(environ: wire.Environ) -> Answer:
    _key, _region, service, _token = wire.signature_of(environ)
    return _error(
        service or "s3", wire.ErrorAnswer("InternalFailure", "The emulator failed; its log has the reason.", 500)
    )


def _enter_ledger(
    request: wire.SignedRequest, call: CallInHand, answer: Answer | None, fault: Fault | None, began: float
) -> None:
    status = answer.status if answer is not None else _NO_ANSWER
    error = None
    if answer is not None and status >= 400:
        error = wire.error_code_of(answer.body, answer.headers) or str(status)
    runtime.ledger.enter(
        Call(
            at=began,
            seconds=round(time.time() - began, 6),
            service=request.service,
            action=request.action,
            account=call.account,
            region=request.region,
            mutating=request.mutating,
            status=status,
            error=error,
            fault=fault.id if fault is not None else None,
            user_agent=request.user_agent,
            named=request.named,
        )
    )
