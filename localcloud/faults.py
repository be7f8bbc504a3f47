"""Faults of the simulated clouds: which happenings each takes, as far as that is the same whatever is disturbed.

A fault takes the first `count` of the happenings that it matches, after `skip` of them, each with its probability,
drawn from its own seed so that a run can be repeated. The first fault in force that takes one wins. What can be
matched, and what a fault does, each cloud says itself.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from threading import Condition
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field


class Disturbance(BaseModel):
    """What every fault says, whatever it disturbs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = ""
    count: int | None = Field(default=None, ge=0, description="how many it takes; None for all")
    skip: int = Field(default=0, ge=0, description="how many that match pass first")
    probability: float = Field(default=1.0, ge=0, le=1)
    seed: int = 0
    hits: int = Field(default=0, description="how often it struck; counted by the server")


D = TypeVar("D", bound=Disturbance)


@dataclass
class _Armed(Generic[D]):
    fault: D
    left: int | None
    to_skip: int
    hits: int
    dice: random.Random = field(default_factory=random.Random)

    def takes(self) -> bool:
        """Whether it takes the happening that it matches."""
        if self.left == 0:
            return False
        if self.to_skip > 0:
            self.to_skip -= 1
            return False
        if self.fault.probability < 1 and self.dice.random() >= self.fault.probability:
            return False
        if self.left is not None:
            self.left -= 1
        self.hits += 1
        return True

    def report(self) -> D:
        return self.fault.model_copy(update={"count": self.left, "skip": self.to_skip, "hits": self.hits})


class Board(Generic[D]):
    """The faults in force, in the order in which they were set. `changed` is notified when one is set or lifted."""

    def __init__(self) -> None:
        self.changed = Condition()
        self._armed: list[_Armed[D]] = []
        self._serial = 0

    def add(self, fault: D) -> D:
        """Put a fault in force; one of the same id is replaced."""
        with self.changed:
            named = fault.model_copy(update={"id": fault.id or self._free_id()})
            self._armed = [armed for armed in self._armed if armed.fault.id != named.id]
            dice = random.Random(named.seed)  # noqa: S311 - no secret, and it has to repeat
            self._armed.append(_Armed(named, named.count, named.skip, named.hits, dice))
            self.changed.notify_all()
            return named

    def remove(self, fault_id: str) -> bool:
        """Lift one; False if there is none of that id."""
        with self.changed:
            before = len(self._armed)
            self._armed = [armed for armed in self._armed if armed.fault.id != fault_id]
            self.changed.notify_all()
            return len(self._armed) < before

    def clear(self) -> None:
        """Lift all."""
        with self.changed:
            self._armed.clear()
            self.changed.notify_all()

    def holds(self, fault_id: str) -> bool:
        """Whether it was not lifted yet, used up or not."""
        return any(armed.fault.id == fault_id for armed in self._armed)

    def report(self) -> list[D]:
        """Those set and not lifted, with what they still take; used-up ones included."""
        with self.changed:
            return [armed.report() for armed in self._armed]

    def restore(self, faults: Iterable[D]) -> None:
        """Put those of an earlier process back in force."""
        for fault in faults:
            self.add(fault)

    def first_taking(self, matches: Callable[[D], bool]) -> D | None:
        """The fault that takes a happening, if one of those that match it does."""
        with self.changed:
            for armed in self._armed:
                if armed.left != 0 and matches(armed.fault) and armed.takes():
                    return armed.fault
        return None

    def _free_id(self) -> str:
        self._serial += 1
        while self.holds(f"fault-{self._serial}"):
            self._serial += 1
        return f"fault-{self._serial}"
