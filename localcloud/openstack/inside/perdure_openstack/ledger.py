"""The ledger of one API: its clients' calls, counted and recorded in memory.

Calls are grouped by method, route (the path without identifiers) and the caller's project, which keystonemiddleware
adds to the request.
"""

from __future__ import annotations

import re
import time
from collections import deque
from dataclasses import asdict, dataclass
from threading import Lock
from typing import Any

RECENT = 2000
_TOKENS = 2000

_IDENTIFIER = re.compile(
    r"(?<=/)([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}|\d+)(?=/|$)"
)


@dataclass(frozen=True)
class Call:
    """`status` is 0 if the answer was interrupted."""

    at: float
    seconds: float
    method: str
    route: str
    path: str
    query: str
    project: str
    user_agent: str
    status: int
    mutating: bool
    fault: str


@dataclass
class _Count:
    count: int = 0
    errors: int = 0
    lost: int = 0


class Ledger:
    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: dict[tuple[str, str, str, bool], _Count] = {}
        self._recent: deque[Call] = deque(maxlen=RECENT)
        self._projects: dict[int, str] = {}
        self._since = time.time()

    def enter(self, call: Call, token: str) -> None:
        with self._lock:
            entry = self._counts.setdefault((call.method, call.route, call.project, call.mutating), _Count())
            entry.count += 1
            entry.errors += call.status >= 400
            entry.lost += call.status == 0
            self._recent.append(call)
            if token and call.project:
                if len(self._projects) >= _TOKENS:
                    self._projects.clear()
                self._projects[hash(token)] = call.project

    def project_of(self, token: str) -> str | None:
        return self._projects.get(hash(token)) if token else None

    def report(self, *, recent: bool) -> dict[str, Any]:
        with self._lock:
            counts = [
                {"method": method, "route": route, "project": project, "mutating": mutating, **asdict(entry)}
                for (method, route, project, mutating), entry in sorted(self._counts.items())
            ]
            calls = [asdict(call) for call in self._recent] if recent else []
            return {"since": self._since, "counts": counts, "recent": calls}

    def reset(self) -> None:
        with self._lock:
            self._counts.clear()
            self._recent.clear()
            self._since = time.time()


def route_of(path: str) -> str:
    """The path's route, such as `/v2.1/servers/{id}`: UUIDs, with or without hyphens, and numbers become `{id}`."""
    return _IDENTIFIER.sub("{id}", path.rstrip("/") or "/")
