"""Faults of simulated clouds: which of the matching calls a fault affects (docs/emulator.md)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from threading import Condition
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field


class Disturbance(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = ""
    count: int | None = Field(default=None, ge=0, description="how many calls it affects; None for all")
    skip: int = Field(default=0, ge=0, description="how many matching calls pass first")
    probability: float = Field(default=1.0, ge=0, le=1)
    seed: int = 0
    hits: int = Field(default=0, description="how many calls it has affected; counted by the server")


D = TypeVar("D", bound=Disturbance)


@dataclass
class _Armed(Generic[D]):
    fault: D
    left: int | None
    to_skip: int
    hits: int
    dice: random.Random = field(default_factory=random.Random)

    def takes(self) -> bool:
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
    def __init__(self) -> None:
        self.changed = Condition()
        self._armed: list[_Armed[D]] = []
        self._serial = 0

    def add(self, fault: D) -> D:
        with self.changed:
            named = fault.model_copy(update={"id": fault.id or self._free_id()})
            self._armed = [armed for armed in self._armed if armed.fault.id != named.id]
            dice = random.Random(named.seed)  # noqa: S311 - no secret, and it has to repeat
            self._armed.append(_Armed(named, named.count, named.skip, named.hits, dice))
            self.changed.notify_all()
            return named

    def remove(self, fault_id: str) -> bool:
        with self.changed:
            before = len(self._armed)
            self._armed = [armed for armed in self._armed if armed.fault.id != fault_id]
            self.changed.notify_all()
            return len(self._armed) < before

    def clear(self) -> None:
        with self.changed:
            self._armed.clear()
            self.changed.notify_all()

    def holds(self, fault_id: str) -> bool:
        return any(armed.fault.id == fault_id for armed in self._armed)

    def report(self) -> list[D]:
        with self.changed:
            return [armed.report() for armed in self._armed]

    def restore(self, faults: Iterable[D]) -> None:
        for fault in faults:
            self.add(fault)

    def first_taking(self, matches: Callable[[D], bool]) -> D | None:
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
