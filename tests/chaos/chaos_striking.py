"""Every kind of effect of one turn broken in one way: on which side of it who dies, or what is answered instead.

A turn's kinds of effects are armed all at once, each for the first time that it happens. Whoever dies does so as often
as another of them is reached; those that are under way at the same time are struck by one death.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from chaos_installation import STRIKE_SECONDS, Installation, Process
from chaos_proxy import Break, Request

from localcloud.services import API_SERVER, TEMPORAL

WORKER, WATCHER = "worker", "watcher"
# Writes to Kubernetes: on which side of the effect who dies.
WRITE_DEATHS = {
    "worker killed before the effect": (WORKER, Break.BEFORE),
    "worker killed after the effect": (WORKER, Break.AFTER),
    "worker killed, effect comes later": (WORKER, Break.LATE),
    "watcher killed meanwhile": (WATCHER, Break.DELAYED),
    "Temporal killed meanwhile": (TEMPORAL, Break.DELAYED),
    "API server killed, answer lost": (API_SERVER, Break.AFTER),
}
# What is answered instead.
ANSWERS = {
    "answer lost": Break.LOST,
    "refused with 409": Break.CONFLICT,
    "refused with 429": Break.THROTTLED,
    "refused with 500": Break.FAILED,
}
WRITE_ANSWERS = {"done, answer lost" if name == "answer lost" else name: kind for name, kind in ANSWERS.items()}


@dataclass(frozen=True)
class Struck:
    """A kind of effect at which something happens once; what is held there goes on when it is let go."""

    struck: Callable[[], bool]
    let_go: Callable[[], None] = lambda: None


def arm_write(lab: Installation, matches: Callable[[Request], bool], fault: str, seconds: float = 0.0) -> Struck:
    """Break the next write to Kubernetes that matches; what is late is so by `seconds`, 0 for as long as usual."""
    kind = WRITE_ANSWERS[fault] if fault in WRITE_ANSWERS else WRITE_DEATHS[fault][1]
    made = lab.proxy.intercept(matches, kind, seconds=seconds)
    return Struck(made.struck.is_set, made.released.set)


def dying(fault: str) -> str:
    """Who dies of that fault of a write, empty if nobody."""
    return WRITE_DEATHS[fault][0] if fault in WRITE_DEATHS else ""


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


def kill(lab: Installation, victim: str) -> None:
    """Kill one of the processes or servers, and wait until it is there again."""
    if victim in (WORKER, WATCHER):
        again(lab.worker if victim == WORKER else lab.watch)
        return
    pid = lab.deployment.kill(victim, signal.SIGKILL)
    lab.deployment.wait_service(victim, other_than_pid=pid)
