"""The ledger of a simulated cloud: its calls, counted and recorded in memory. It starts empty."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from threading import Lock
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

L = TypeVar("L", bound=BaseModel)


class Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    mutating: bool


class Counter(Entry):
    """A number of equal calls; `lost` of the calls got no complete answer."""

    count: int
    errors: int
    lost: int


class SingleCall(Entry):
    """`status` is 0 if no complete answer was sent."""

    at: float
    seconds: float
    status: int


def most_frequent(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for name, count in counts:
        totals[name] = totals.get(name, 0) + count
    return dict(sorted(totals.items(), key=lambda item: (-item[1], item[0])))


@dataclass
class _Count:
    count: int = 0
    errors: int = 0
    lost: int = 0


class LedgerBook(Generic[L]):
    """The counts of calls, and the most recent calls individually.

    `counted_by` are the fields of a counter's key; `recent` is how many single calls are stored.
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
        with self._lock:
            entry = self._counts.setdefault(tuple(getattr(call, field) for field in self._counted_by), _Count())
            entry.count += 1
            entry.errors += self._failed(call)
            entry.lost += call.status == 0
            self._recent.append(call)

    def report(self, *, recent: bool) -> L:
        with self._lock:
            counts = [
                {**dict(zip(self._counted_by, key, strict=True)), **asdict(entry)}
                for key, entry in sorted(self._counts.items())
            ]
            calls = tuple(self._recent) if recent else ()
            return self._ledger.model_validate({"since": self._since, "counts": counts, "recent": calls})

    def reset(self) -> None:
        with self._lock:
            self._counts.clear()
            self._recent.clear()
            self._since = time.time()

    def keep(self, recent: int) -> None:
        with self._lock:
            if recent != self._recent.maxlen:
                self._recent = deque(self._recent, maxlen=recent)
