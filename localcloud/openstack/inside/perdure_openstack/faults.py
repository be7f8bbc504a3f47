"""Faults of one API: refused, lost or late calls; and faults of servers' boots and deletions.

The affected calls are selected as in `localcloud/faults.py`. Error answers have the service's own shape.
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from http import HTTPStatus
from threading import Lock
from typing import Any

KINDS = ("before", "after", "cut", "delay")
_NOVA_KINDS = {
    400: "badRequest",
    401: "unauthorized",
    403: "forbidden",
    404: "itemNotFound",
    409: "conflictingRequest",
    429: "overLimit",
    503: "serviceUnavailable",
}


@dataclass(frozen=True)
class Fault:
    """`localcloud/openstack/contract.py` explains the kinds. `delay_seconds` applies to all of them."""

    id: str = ""
    kind: str = "before"
    method: str = "*"
    path: str = ""
    """Regular expression, searched for in the path."""
    project: str = ""
    """Id of the caller's project. It does not match a token's first call, whose project is not known yet."""
    containing: str = ""
    """Text that the query or the body has to contain."""
    count: int | None = None
    skip: int = 0
    probability: float = 1.0
    seed: int = 0
    status: int = 503
    type: str = ""
    """Neutron's name for the error, such as OverQuota."""
    message: str = "a configured fault of the local deployment"
    headers: dict[str, str] = field(default_factory=dict)
    delay_seconds: float = 0.0
    hits: int = 0


@dataclass(frozen=True)
class BootFaults:
    """Faults of servers' boots and deletions. `localcloud/openstack/contract.py` explains the fields."""

    boot_delay: float = 0.0
    """How many seconds a server stays in BUILD."""
    boot_abort: str = ""
    """Servers that are in ERROR after about a second."""
    boot_fail: str = ""
    """Servers that are in ERROR after Nova has tried three hosts."""
    delete_delay: float = 0.0
    """Seconds for which a deleted server still exists."""
    delete_fail: str = ""
    """Servers that are in ERROR after their deletion was accepted."""


class Boots:
    def __init__(self) -> None:
        self._current = BootFaults()

    def current(self) -> BootFaults:
        return self._current

    def set(self, wanted: BootFaults) -> None:
        for pattern in (wanted.boot_abort, wanted.boot_fail, wanted.delete_fail):
            _check_pattern(pattern)
        self._current = wanted

    def change(self, changes: dict[str, Any]) -> BootFaults:
        unknown = set(changes) - {one.name for one in fields(BootFaults)}
        if unknown:
            raise ValueError(f"unknown: {', '.join(sorted(unknown))}")
        self.set(replace(self._current, **changes))
        return self._current


@dataclass
class _Armed:
    fault: Fault
    dice: random.Random
    left: int | None
    to_skip: int
    hits: int

    def report(self) -> Fault:
        return replace(self.fault, count=self.left, skip=self.to_skip, hits=self.hits)


class FaultBoard:
    def __init__(self) -> None:
        self._lock = Lock()
        self._armed: list[_Armed] = []
        self._serial = 0

    def add(self, fault: Fault) -> Fault:
        if fault.kind not in KINDS:
            raise ValueError(f"kind {fault.kind!r} is none of {', '.join(KINDS)}")
        _check_pattern(fault.path)
        with self._lock:
            self._serial += 1
            named = replace(fault, id=fault.id or f"fault-{self._serial}")
            self._armed = [armed for armed in self._armed if armed.fault.id != named.id]
            dice = random.Random(fault.seed)  # noqa: S311 - no secret, and it has to repeat
            self._armed.append(_Armed(named, dice, fault.count, fault.skip, fault.hits))
        return named

    def clear(self, fault_id: str = "") -> None:
        """Remove one fault, or all if the id is empty; raises LookupError for an unknown id."""
        with self._lock:
            remaining = [armed for armed in self._armed if fault_id and armed.fault.id != fault_id]
            if fault_id and len(remaining) == len(self._armed):
                raise LookupError(f"no fault {fault_id}")
            self._armed = remaining

    def any(self) -> bool:
        return bool(self._armed)

    def report(self) -> list[Fault]:
        with self._lock:
            return [armed.report() for armed in self._armed]

    def strike(self, method: str, path: str, query: str, body: bytes, project: str | None) -> Fault | None:
        with self._lock:
            for armed in self._armed:
                if armed.left == 0 or not _matches(armed.fault, method, path, query, body, project):
                    continue
                if armed.to_skip > 0:
                    armed.to_skip -= 1
                    continue
                if armed.fault.probability < 1 and armed.dice.random() >= armed.fault.probability:
                    continue
                if armed.left is not None:
                    armed.left -= 1
                armed.hits += 1
                return armed.fault
        return None


def refusal(service: str, fault: Fault) -> tuple[int, str, list[tuple[str, str]], bytes]:
    status = fault.status
    reason = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "Fault"
    body: dict[str, Any] = {"error": {"code": status, "title": reason, "message": fault.message}}
    if status == HTTPStatus.UNAUTHORIZED:
        pass  # the token is refused before the service is called, in Keystone's shape
    elif service == "neutron":
        body = {"NeutronError": {"type": fault.type or "HTTPError", "message": fault.message, "detail": ""}}
    elif service == "nova":
        body = {_NOVA_KINDS.get(status, "computeFault"): {"code": status, "message": fault.message}}
    payload = json.dumps(body).encode()
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(payload))), *fault.headers.items()]
    return status, reason, headers, payload


def _matches(fault: Fault, method: str, path: str, query: str, body: bytes, project: str | None) -> bool:
    return (
        fnmatchcase(method, fault.method)
        and re.search(fault.path, path) is not None
        and (not fault.project or fault.project == project)
        and (not fault.containing or fault.containing in query or fault.containing.encode() in body)
    )


def _check_pattern(pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None
