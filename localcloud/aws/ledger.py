"""The ledger: which AWS calls were made, counted where they arrive.

Tests, demos and benchmarks read it to hold figures such as "no mutating call" or "at most 125 calls per account".
It lives in memory and starts empty with each process.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from threading import Lock

from localcloud.aws.contract import Call, CallCount, Ledger

_Key = tuple[str, str, str, str, bool]


@dataclass
class _Count:
    count: int = 0
    errors: int = 0
    lost: int = 0


class LedgerBook:
    """Counts by service, action, account and region, and the last calls one by one."""

    def __init__(self, recent: int) -> None:
        self._lock = Lock()
        self._counts: dict[_Key, _Count] = {}
        self._recent: deque[Call] = deque(maxlen=recent)
        self._since = time.time()

    def enter(self, call: Call) -> None:
        """Count one call."""
        key = (call.service, call.action, call.account, call.region, call.mutating)
        with self._lock:
            entry = self._counts.setdefault(key, _Count())
            entry.count += 1
            entry.errors += call.error is not None
            entry.lost += call.status == 0
            self._recent.append(call)

    def report(self, *, recent: bool) -> Ledger:
        """What was counted since the start or the last reset."""
        with self._lock:
            counts = tuple(
                CallCount(
                    service=service,
                    action=action,
                    account=account,
                    region=region,
                    mutating=mutating,
                    count=entry.count,
                    errors=entry.errors,
                    lost=entry.lost,
                )
                for (service, action, account, region, mutating), entry in sorted(self._counts.items())
            )
            return Ledger(since=self._since, counts=counts, recent=tuple(self._recent) if recent else ())

    def reset(self) -> None:
        """Forget all calls."""
        with self._lock:
            self._counts.clear()
            self._recent.clear()
            self._since = time.time()

    def keep(self, recent: int) -> None:
        """Remember that many single calls from now on."""
        with self._lock:
            if recent != self._recent.maxlen:
                self._recent = deque(self._recent, maxlen=recent)
