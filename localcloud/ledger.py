"""The ledger of a simulated cloud: which calls clients made, counted where they arrive.

Tests, demos and benchmarks read it to hold figures such as "0 calls while waiting" or "at most 125 calls per account".
It lives in memory and starts empty with each process.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from threading import Lock
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

L = TypeVar("L", bound=BaseModel)


@dataclass
class _Count:
    count: int = 0
    errors: int = 0
    lost: int = 0


class LedgerBook(Generic[L]):
    """Counts, and the last calls one by one.

    Args:
        ledger: the report's model, with `since`, `counts` and `recent`.
        counted_by: the fields of a call by which it is counted.
        failed: whether a call was answered with an error; one whose `status` is 0 got no answer.
        recent: how many single calls are remembered.
    """

    def __init__(
        self, ledger: type[L], counted_by: tuple[str, ...], failed: Callable[[Any], bool], recent: int
    ) -> None:
        self._ledger = ledger
        self._counted_by = counted_by
        self._failed = failed
        self._lock = Lock()
        self._counts: dict[tuple[Any, ...], _Count] = {}
        self._recent: deque[Any] = deque(maxlen=recent)
        self._since = time.time()

    def enter(self, call: Any) -> None:
        """Count one call."""
        with self._lock:
            entry = self._counts.setdefault(tuple(getattr(call, field) for field in self._counted_by), _Count())
            entry.count += 1
            entry.errors += self._failed(call)
            entry.lost += call.status == 0
            self._recent.append(call)

    def report(self, *, recent: bool) -> L:
        """What was counted since the start or the last reset."""
        with self._lock:
            counts = [
                {**dict(zip(self._counted_by, key, strict=True)), **asdict(entry)}
                for key, entry in sorted(self._counts.items())
            ]
            calls = tuple(self._recent) if recent else ()
            return self._ledger.model_validate({"since": self._since, "counts": counts, "recent": calls})

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
