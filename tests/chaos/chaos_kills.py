"""Killing the worker at the moment of an effect: the cases of a sweep, and one of them carried out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Protocol, TypeVar, cast

import pytest
from chaos_effects import AwsCall, Effect, KubeCall
from chaos_lab import Lab
from chaos_proxy import LATE_SECONDS, Break

from domain.writes import RecordEvents
from workers.registry import actions

Row = tuple[Effect, ...]
MODES = {
    Break.AFTER: "worker killed after the effect",
    Break.BEFORE: "worker killed before the effect",
    Break.LATE: "worker killed, effect comes later",
}
# Beside these: what is on its way when the worker dies, however long before, and comes when the next one is at work.
FAULTS = {**MODES, Break.PARKED: MODES[Break.LATE]}


def activities_of_accounts() -> set[str]:
    """Those at which the sweeps of accounts break. None of their rows records an Event: nothing goes wrong in these."""
    families = {name for name in actions() if name.split(".")[0] in {"accounts", "aws", "kube"}}
    return families - {RecordEvents.activity}


def _mutates(effect: Effect) -> bool:
    if isinstance(effect.call, AwsCall):
        return not effect.call.action.startswith(("Describe", "Get", "List"))
    return isinstance(effect.call, KubeCall) and not effect.call.name.startswith("GET")


def cases(turn: str, rows: Sequence[Row], modes: Iterable[Break] = MODES) -> list[object]:
    """Each row with each mode; an effect that changes nothing can neither be lost nor come late."""
    found: list[object] = []
    for number, row in enumerate(rows, 1):
        for mode in modes:
            chosen = row if mode is Break.BEFORE else tuple(effect for effect in row if _mutates(effect))
            if chosen:
                found.append(pytest.param(chosen, mode, id=f"{turn}-{number:02}-{mode}"))
    return found


def beside(*lifecycles: Sequence[Row]) -> list[Row]:
    """The first rows of several lifecycles as one, the second ones, ...: one death strikes them all."""
    return [tuple(chain.from_iterable(rows)) for rows in zip_longest(*lifecycles, fillvalue=())]


def kill_at(
    lab: Lab, row: Row, mode: Break, turn: Callable[[], object], meanwhile: Callable[[], object] | None = None
) -> float:
    """Take a turn and kill the worker when every effect of the row is under way; the seconds to settle.

    `meanwhile` happens before the next worker begins.
    """
    armed = [lab.arm(effect, mode) for effect in row]
    turn()
    lab.await_struck(armed)
    lab.worker.kill()
    if meanwhile is not None:
        meanwhile()
    if mode is not Break.PARKED:
        lab.lift()
    lab.worker.start()
    if mode is Break.PARKED:
        time.sleep(LATE_SECONDS)
        lab.lift()
    seconds = lab.settle()
    lab.worker.await_ready()  # its successor begins to import
    return seconds


@dataclass(frozen=True)
class Death:
    """What one case of a sweep tries."""

    lab: Lab
    row: Row
    mode: Break
    record_property: Callable[[str, object], None]

    def amidst(self, turn: Callable[[], object], meanwhile: Callable[[], object] | None = None) -> None:
        """Take the turn, the worker dying in it; record how long all took to settle."""
        self.record_property("seconds", round(kill_at(self.lab, self.row, self.mode, turn, meanwhile), 1))


class Turns(Protocol):
    """What comes about by turns on the installation of AWS accounts."""

    def begin(self) -> None:
        """Prepare the installation."""

    def end(self) -> None:
        """Leave it as it was."""


T = TypeVar("T", bound=Turns)


class Reused:
    """Turns that go on from one case of a module to the next, while the installation lasts."""

    def __init__(self) -> None:
        self.lab: Lab | None = None
        self.turns: Turns | None = None

    def get(self, lab: Lab, kind: Callable[[Lab], T]) -> T:
        """The turns on this installation, begun."""
        if self.lab is not lab:
            self.turns = made = kind(lab)
            self.lab = lab
            made.begin()
        return cast("T", self.turns)
