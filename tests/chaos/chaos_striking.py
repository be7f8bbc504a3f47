"""Every kind of effect of some turns broken in one way: a kill before or after it, or another answer.

All kinds of effects are armed at once. The process is killed at each effect that is reached; effects in flight at the
same time are interrupted by one kill.
"""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, zip_longest
from typing import Any, Generic, TypeVar

from chaos_installation import STRIKE_SECONDS, Installation, Process, Record
from chaos_proxy import Break, Request

from localcloud.services import API_SERVER, TEMPORAL, THREESCALE

WORKER, WATCHER = "worker", "watcher"
_SERVERS = {"Temporal": TEMPORAL, "API server": API_SERVER, "3scale": THREESCALE}
# Writes to Kubernetes: the process is killed before or after the effect.
WRITE_DEATHS = {
    "worker killed before the effect": Break.BEFORE,
    "worker killed after the effect": Break.AFTER,
    "worker killed, effect comes later": Break.PARKED,
    "watcher killed meanwhile": Break.DELAYED,
    "Temporal killed meanwhile": Break.DELAYED,
    "API server killed, answer lost": Break.AFTER,
}
# What is answered instead.
ANSWERS = {
    "answer lost": Break.LOST,
    "refused with 409": Break.CONFLICT,
    "refused with 429": Break.THROTTLED,
    "refused with 500": Break.FAILED,
}
WRITE_ANSWERS = {"done, answer lost" if name == "answer lost" else name: kind for name, kind in ANSWERS.items()}
OF_WRITES = WRITE_ANSWERS | WRITE_DEATHS
WRITES = "writes to Kubernetes"
# A load balancer's quota is tried again after ten seconds; an API server that has died is given up within thirty.
SETTLE_SECONDS = 300.0
# What comes within this is struck by the same death as the first.
TOGETHER_SECONDS = 2.0


@dataclass(frozen=True)
class Struck:
    """A kind of effect at which something happens once; what is held there goes on when it is let go."""

    struck: Callable[[], bool]
    let_go: Callable[[], None] = lambda: None


L = TypeVar("L", bound=Installation)


@dataclass(frozen=True)
class Side(Generic[L]):
    """Effects of one sort: how often each kind is struck, by which faults, and how that is prepared."""

    name: str
    kinds: Mapping[str, int]
    faults: Sequence[str]
    arm: Callable[[L, str, int, str], Sequence[Struck]]
    """Of a kind of effect, so many, with that fault."""


@dataclass(frozen=True)
class Area(Generic[L]):
    """What can be broken of an area's lifecycles."""

    lab: type[L]
    sides: Sequence[Side[L]]
    begin: Callable[[L], Callable[[], None]]
    """Prepares all turns, undisturbed; what takes them all."""
    audit: Callable[[L], None] = lambda lab: None

    def cases(self) -> Iterable[tuple[Side[L], str]]:
        """Every beginning says as much as it can: the sides take turns, as do deaths and answers."""
        faults = [
            [(side, fault) for fault in side.faults if bool(victim(fault)) is dies]
            for dies in (True, False)
            for side in self.sides
        ]
        return [each for each in chain.from_iterable(zip_longest(*faults)) if each is not None]

    def disturb(self, lab: L, side: Side[L], fault: str, record: Record) -> float:
        """Take all turns with that fault at every kind of effect; the seconds until everything agrees."""
        act = self.begin(lab)
        armed = {}
        for kind, count in side.kinds.items():
            record([(side.name, kind)] * count, fault)
            armed |= {f"{kind} ({number})": each for number, each in enumerate(side.arm(lab, kind, count, fault), 1)}
        act()
        dying = victim(fault)
        await_each(armed, partial(kill, lab, dying) if dying else None, together_seconds=TOGETHER_SECONDS)
        took = lab.agree(SETTLE_SECONDS)
        lab.lift()
        self.audit(lab)
        return took


def counted(kinds: Iterable[Iterable[str]]) -> dict[str, int]:
    """In how many turns each kind of effect occurs."""
    return dict(Counter(chain.from_iterable({*each} for each in kinds)))


def victim(fault: str) -> str:
    """The process that a fault kills; empty if none."""
    who, killed, _ = fault.partition(" killed")
    return _SERVERS.get(who, who) if killed else ""


def writes(kinds: Mapping[str, int]) -> Side[Any]:
    """Kinds of writes to Kubernetes."""
    return Side(WRITES, kinds, (*WRITE_ANSWERS, *WRITE_DEATHS), arm_writes)


def arm_writes(lab: Installation, write: str, count: int, fault: str) -> list[Struck]:
    """Break the first write of that name to each of so many objects."""
    met: set[str] = set()

    def matches(request: Request) -> bool:
        if request.method == "GET" or write_name(request) != write:
            return False
        written = f"{request.path.partition('?')[0]} {request.body.get('metadata') if request.method == 'POST' else ''}"
        return written not in met and not met.add(written)

    return [arm_write(lab, matches, fault) for _ in range(count)]


def arm_write(lab: Installation, matches: Callable[[Request], bool], fault: str, seconds: float = 0.0) -> Struck:
    """Break the next write to Kubernetes that matches; what is late is so by `seconds`, 0 for as long as usual."""
    made = lab.proxy.intercept(matches, OF_WRITES[fault], seconds=seconds)
    return Struck(made.struck.is_set, made.released.set)


def write_name(request: Request) -> str:
    """A writing request as tables name it: verb, kind, subresource."""
    parts = request.path.split("?")[0].strip("/").split("/")
    version = 2 if parts[0] == "api" else 3
    start = version + 2 if parts[version] == "namespaces" and len(parts) > version + 2 else version
    kind, rest = parts[start], parts[start + 2 :]
    return f"{request.method} {'/'.join([kind, *rest])}"


def await_each(
    armed: Mapping[str, Struck],
    strike: Callable[[], None] | None,
    *,
    together_seconds: float = 0.0,
    meanwhile: Callable[[], None] = lambda: None,
) -> None:
    """Wait until every effect has been reached; each time that more are, strike.

    Args:
        armed: the effects by their names.
        strike: what is done then, None where the fault is enough.
        together_seconds: what comes within this is struck with the first.
        meanwhile: what others do who have a part in it.

    Raises:
        AssertionError: some are never reached, so nothing was tried there.
    """
    waiting, deadline = dict(armed), time.monotonic() + STRIKE_SECONDS
    while waiting:
        meanwhile()
        reached = _reached(waiting)
        if reached and strike is not None:
            time.sleep(together_seconds)
            reached = _reached(waiting)
            strike()
        for effect in reached:
            waiting.pop(effect).let_go()
            deadline = time.monotonic() + STRIKE_SECONDS
        assert time.monotonic() < deadline, f"never reached, so nothing was tried: {', '.join(waiting)}"
        time.sleep(0.05)


def _reached(waiting: Mapping[str, Struck]) -> list[str]:
    return [effect for effect, each in waiting.items() if each.struck()]


def again(process: Process) -> None:
    """Kill a process, and wait until another one is ready."""
    process.kill()
    process.start()
    process.await_ready()


def kill(lab: Installation, who: str) -> None:
    """Kill one of the processes or servers, and wait until it is there again."""
    if who in (WORKER, WATCHER):
        again(lab.worker if who == WORKER else lab.watch)
        return
    pid = lab.deployment.kill(who, signal.SIGKILL)
    lab.deployment.wait_service(who, other_than_pid=pid)
