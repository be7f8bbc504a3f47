"""The ledger: which calls clients made, counted where they arrive.

Tests, demos and benchmarks read it to hold figures such as "0 calls while waiting". Calls are grouped by tenant, method
and route, which is the path as it is declared, with its identifiers left out. It lives in memory and starts empty with
each process.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass

from localcloud.threescale.contract import Call, CallCount, Ledger


@dataclass
class _Count:
    count: int = 0
    errors: int = 0
    lost: int = 0


class LedgerBook:
    """Counts, and the last calls one by one."""

    def __init__(self, recent: int) -> None:
        self._counts: dict[tuple[str, str, str, bool], _Count] = {}
        self._recent: deque[Call] = deque(maxlen=recent)
        self._since = time.time()

    def enter(self, call: Call) -> None:
        """Count one call."""
        entry = self._counts.setdefault((call.tenant, call.method, call.route, call.mutating), _Count())
        entry.count += 1
        entry.errors += call.status >= 400
        entry.lost += call.status == 0
        self._recent.append(call)

    def report(self, *, recent: bool) -> Ledger:
        """What was counted since the start or the last reset."""
        counts = tuple(
            CallCount(
                tenant=tenant,
                method=method,
                route=route,
                mutating=mutating,
                count=entry.count,
                errors=entry.errors,
                lost=entry.lost,
            )
            for (tenant, method, route, mutating), entry in sorted(self._counts.items())
        )
        return Ledger(since=self._since, counts=counts, recent=tuple(self._recent) if recent else ())

    def reset(self) -> None:
        """Forget all calls."""
        self._counts.clear()
        self._recent.clear()
        self._since = time.time()

    def keep(self, recent: int) -> None:
        """Remember that many single calls from now on."""
        if recent != self._recent.maxlen:
            self._recent = deque(self._recent, maxlen=recent)
