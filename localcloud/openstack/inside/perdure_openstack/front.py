"""The layer in front of each API: it counts and disturbs clients' calls, and serves `/perdure/` (`control.py` is the
client).

Calls among the services, recognized by their User-Agent, are not counted or disturbed.
"""

from __future__ import annotations

import io
import json
import os
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from .faults import BootFaults, Boots, Fault, FaultBoard, refusal
from .ledger import Call, Ledger, route_of

__all__ = ["Boots", "Front"]

Environ = dict[str, Any]
Start = Callable[..., Any]
Headers = list[tuple[str, str]]

_CONTROL = "/perdure/"
_JSON = ("Content-Type", "application/json")
# User-Agents of services' calls. keystonemiddleware, which checks tokens, has two; the others are a service's name, and
# after it the HTTP library's.
_SERVICES = re.compile(
    r"(nova|neutron|glance|placement)[-/ ]|.*keystonemiddleware|python-(keystone|nova|neutron|glance)client"
)
# The preparation uses a client's library, but its calls are not clients' calls.
PREPARATION = "perdure-preparation"


class Front:
    def __init__(self, application: Callable[[Environ, Start], Iterable[bytes]], service: str, keep: Path) -> None:
        self._application = application
        self._service = service
        self._path = keep / f"{service}.json"
        self._ledger = Ledger()
        self._faults = FaultBoard()
        self.boots = Boots()
        self._restore()

    def __call__(self, environ: Environ, start: Start) -> Iterable[bytes]:
        if environ["PATH_INFO"].startswith(_CONTROL):
            return self._control(environ, start)
        if _is_internal(environ.get("HTTP_USER_AGENT", "")):
            return self._application(environ, start)
        return self._client_call(environ, start)

    def _client_call(self, environ: Environ, start: Start) -> Iterable[bytes]:
        began, at = time.monotonic(), time.time()
        method, path, query = environ["REQUEST_METHOD"], environ["PATH_INFO"], environ.get("QUERY_STRING", "")
        token = environ.get("HTTP_X_AUTH_TOKEN", "")
        fault = self._faults.strike(
            method, path, query, _buffered_body(environ) if self._faults.any() else b"", self._ledger.project_of(token)
        )
        if fault is not None:
            self._save()
            time.sleep(fault.delay_seconds)
        done = fault is None or fault.kind != "before"
        answer = _perform(self._application, environ) if done else None
        if answer is None or (fault is not None and fault.kind in ("before", "after")):
            assert fault is not None
            answer = refusal(self._service, fault)
        cut = fault is not None and fault.kind == "cut"
        project = environ.get("HTTP_X_PROJECT_ID") or self._ledger.project_of(token) or ""
        self._ledger.enter(
            Call(
                at=at,
                seconds=time.monotonic() - began,
                method=method,
                route=route_of(path),
                path=path,
                query=query,
                project=project,
                user_agent=environ.get("HTTP_USER_AGENT", ""),
                status=0 if cut else answer[0],
                mutating=method not in ("GET", "HEAD") and not path.endswith("/auth/tokens"),
                fault=fault.id if fault else "",
            ),
            token,
        )
        status, reason, headers, body = answer
        if cut:
            # Announces more than it sends: waitress then closes the connection, and the client has half an answer.
            headers = [(name, value) for name, value in headers if name.lower() != "content-length"]
            start(f"{status} {reason}", [*headers, ("Content-Length", str(len(body) + 1))])
            return [body[: len(body) // 2]]
        start(f"{status} {reason}", headers)
        return [body]

    def _control(self, environ: Environ, start: Start) -> Iterable[bytes]:
        method = environ["REQUEST_METHOD"]
        what, _, rest = environ["PATH_INFO"].removeprefix(_CONTROL).partition("/")
        try:
            body = json.loads(_buffered_body(environ) or b"null")
            result = self._steer(method, what, rest, body, parse_qs(environ.get("QUERY_STRING", "")))
        except LookupError as error:
            return _answer(start, "404 Not Found", {"error": str(error)})
        except (TypeError, ValueError) as error:
            return _answer(start, "400 Bad Request", {"error": str(error)})
        return _answer(start, "200 OK", result)

    def _steer(self, method: str, what: str, rest: str, body: Any, query: dict[str, list[str]]) -> Any:
        request = (method, what)
        if request == ("GET", "health"):
            return {"service": self._service, "pid": os.getpid()}
        if request == ("GET", "ledger"):
            return self._ledger.report(recent="recent" in query)
        if request == ("DELETE", "ledger"):
            self._ledger.reset()
            return None
        if request == ("GET", "faults"):
            return [asdict(fault) for fault in self._faults.report()]
        if request == ("POST", "faults"):
            return asdict(self._saved(self._faults.add(_read(Fault, body))))
        if request == ("DELETE", "faults"):
            self._faults.clear(rest)
            return self._saved(None)
        if request == ("GET", "boots"):
            return asdict(self.boots.current())
        if request == ("PUT", "boots"):
            return asdict(self._saved(self.boots.change(body)))
        raise LookupError(f"{method} {_CONTROL}{what} is not known")

    def _saved(self, result: Any) -> Any:
        self._save()
        return result

    def _save(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        saved = {"faults": [asdict(f) for f in self._faults.report()], "boots": asdict(self.boots.current())}
        temporary = self._path.with_suffix(f".{os.getpid()}.{time.monotonic_ns()}")
        temporary.write_text(json.dumps(saved))
        temporary.replace(self._path)

    def _restore(self) -> None:
        try:
            saved = json.loads(self._path.read_text())
        except FileNotFoundError:
            return
        for fault in saved["faults"]:
            self._faults.add(_read(Fault, fault))
        self.boots.set(_read(BootFaults, saved["boots"]))


def _perform(
    application: Callable[[Environ, Start], Iterable[bytes]], environ: Environ
) -> tuple[int, str, Headers, bytes]:
    started: list[tuple[str, Headers]] = []
    written: list[bytes] = []

    def start(status: str, headers: Headers, _: Any = None) -> Callable[[bytes], None]:
        started[:] = [(status, headers)]
        return written.append

    result = application(environ, start)
    try:
        written.extend(result)
    finally:
        close = getattr(result, "close", None)
        if close is not None:
            close()
    status, headers = started[0]
    number, _, reason = status.partition(" ")
    return int(number), reason, headers, b"".join(written)


def _buffered_body(environ: Environ) -> bytes:
    body: bytes = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = io.BytesIO(body)
    return body


def _read(shape: type[Any], body: Any) -> Any:
    unknown = set(body) - {field.name for field in fields(shape)}
    if unknown:
        raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
    return replace(shape(), **body)


def _answer(start: Start, status: str, body: Any) -> Iterable[bytes]:
    payload = json.dumps(body).encode()
    start(status, [_JSON, ("Content-Length", str(len(payload)))])
    return [payload]


def _is_internal(user_agent: str) -> bool:
    return _SERVICES.match(user_agent) is not None or PREPARATION in user_agent
