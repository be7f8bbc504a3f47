"""Effects of one turn that are held where they are reached, row by row, until the test lets go of them.

A row is reached when every effect of it waits at its call; rows are handed out in the order in which that happens, each
once. What waits is let go of by itself after some time: where the rest of a row is too slow, what has been reached goes
first, and what comes too late to be of use is an error.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from chaos_effects import AwsCall, Effect
from chaos_lab import HOLD_SECONDS, Lab
from chaos_proxy import Break, Interception

from localcloud.aws.contract import FaultKind

# With servers that are down between two rows, the next may take its time.
REACHED_WITHIN_SECONDS = 120.0

# The rest of a row is waited for so long, well within the time for which an effect can be held.
TOGETHER_WITHIN_SECONDS = 8.0

Row = tuple[Effect, ...]


@dataclass
class _Waiting:
    """What is armed for a row."""

    requests: dict[str, Interception] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    """Effect by the fault's id."""
    since: float | None = None
    """When the first of its effects was seen to wait."""

    def missing(self, hits: set[str]) -> list[str]:
        """Effects that have not been reached."""
        requests = [name for name, each in self.requests.items() if not each.struck.is_set()]
        return requests + [name for fault, name in self.faults.items() if fault not in hits]

    def reached(self, missing: Collection[str]) -> _Waiting:
        """The part that waits, taken out of this row."""
        part = _Waiting(since=self.since)
        part.requests = {name: each for name, each in self.requests.items() if name not in missing}
        part.faults = {fault: name for fault, name in self.faults.items() if name not in missing}
        self.requests = {name: each for name, each in self.requests.items() if name in missing}
        self.faults = {fault: name for fault, name in self.faults.items() if name in missing}
        self.since = None
        return part

    def __str__(self) -> str:
        return ", ".join((*self.requests, *self.faults.values()))


class Holds:
    """The rows of one turn, armed; `kind` says on which side of its effect each is held."""

    def __init__(self, lab: Lab, rows: Sequence[Row], kind: Break) -> None:
        self._lab = lab
        self._waiting = [self._arm(row, kind) for row in rows]

    def _arm(self, row: Row, kind: Break) -> _Waiting:
        armed = _Waiting()
        for effect in row:
            call = effect.call
            if isinstance(call, AwsCall):
                late = kind is not Break.PARKED
                fault = self._lab.fault(effect, FaultKind.DELAY, 1, delay_seconds=HOLD_SECONDS, late_answer=late)
                armed.faults[fault.id] = effect.name
            else:
                armed.requests[effect.name] = self._lab.proxy.intercept(call.matches, kind, seconds=HOLD_SECONDS)
        return armed

    def at_each(self, strike: Callable[[], None], *, when: Callable[[], bool]) -> None:
        """Call `strike` at each row while it is held, then let go of it; only while `when` says so.

        Raises:
            AssertionError: a row is not reached, or was held no longer when it could be struck.
        """
        until = time.monotonic() + REACHED_WITHIN_SECONDS
        while self._waiting:
            held = self._next()
            if held is not None and when():
                assert held.since is not None
                strike()
                waited = time.monotonic() - held.since
                assert waited < HOLD_SECONDS, f"held no longer, so nothing was tried: {held}"
                self._let_go(held)
                until = time.monotonic() + REACHED_WITHIN_SECONDS
            assert time.monotonic() < until, f"never reached, so nothing was tried: {self._missing()}"
            time.sleep(0.05)

    def _next(self) -> _Waiting | None:
        hits = {fault.id for fault in self._lab.emulator.faults() if fault.hits}
        for each in self._waiting:
            missing = each.missing(hits)
            if each.since is None and len(missing) < len(each.requests) + len(each.faults):
                each.since = time.monotonic()
            if not missing:
                return each
            if each.since is not None and time.monotonic() > each.since + TOGETHER_WITHIN_SECONDS:
                part = each.reached(missing)
                self._waiting.append(part)
                return part
        return None

    def _let_go(self, held: _Waiting) -> None:
        self._waiting.remove(held)
        for request in held.requests.values():
            request.released.set()
        for fault in held.faults:
            self._lab.emulator.clear(fault)

    def _missing(self) -> str:
        hits = {fault.id for fault in self._lab.emulator.faults() if fault.hits}
        return ", ".join(name for each in self._waiting for name in each.missing(hits))
