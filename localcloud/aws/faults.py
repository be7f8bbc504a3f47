"""Faults: which calls are lost, late, throttled, denied or answered with an error.

A fault matches calls by service, action, account, region and text; it takes the first `count` of them after `skip`,
each with its probability, drawn from its own seed so that a run can be repeated. The first fault that takes a call
wins. A call that a fault delays waits no longer than the fault is in force.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from threading import Condition

from localcloud.aws import wire
from localcloud.aws.contract import Fault, FaultKind, canonical_service


@dataclass
class _Armed:
    fault: Fault
    left: int | None
    to_skip: int
    hits: int = 0
    dice: random.Random = field(default_factory=random.Random)

    def report(self) -> Fault:
        return self.fault.model_copy(update={"count": self.left, "skip": self.to_skip, "hits": self.hits})


class FaultBoard:
    """The faults in force, in the order in which they were set."""

    def __init__(self) -> None:
        self._lock = Condition()
        self._armed: list[_Armed] = []
        self._serial = 0

    def add(self, fault: Fault) -> Fault:
        """Put a fault in force; one of the same id is replaced."""
        with self._lock:
            self._serial += 1
            named = fault.model_copy(
                update={
                    "id": fault.id or f"fault-{self._serial}",
                    "service": canonical_service(fault.service),
                    "hits": 0,
                }
            )
            self._armed = [a for a in self._armed if a.fault.id != named.id]
            self._lock.notify_all()
            dice = random.Random(named.seed)  # noqa: S311 - repeatable on purpose
            self._armed.append(_Armed(named, named.count, named.skip, dice=dice))
            return named

    def remove(self, fault_id: str) -> bool:
        """Lift one fault; False if there is none of that id."""
        with self._lock:
            before = len(self._armed)
            self._armed = [a for a in self._armed if a.fault.id != fault_id]
            self._lock.notify_all()
            return len(self._armed) < before

    def clear(self) -> None:
        """Lift all faults."""
        with self._lock:
            self._armed.clear()
            self._lock.notify_all()

    def sit_out(self, fault: Fault) -> None:
        """Wait out the delay of a fault that has struck; it is over when the fault is lifted."""
        with self._lock:
            self._lock.wait_for(lambda: all(a.fault is not fault for a in self._armed), fault.delay_seconds)

    def report(self) -> tuple[Fault, ...]:
        """The faults in force, with how often each struck and how many calls it still takes; used-up ones included."""
        with self._lock:
            return tuple(a.report() for a in self._armed)

    def restore(self, faults: Iterable[Fault]) -> None:
        """Put the faults of an earlier process back in force."""
        for fault in faults:
            if fault.count != 0:
                self.add(fault)

    def strike(self, request: wire.SignedRequest, account: str, path: str) -> Fault | None:
        """The fault that takes this call, if one does."""
        with self._lock:
            for armed in self._armed:
                if armed.left == 0 or not _matches(armed.fault, request, account, path):
                    continue
                if armed.to_skip > 0:
                    armed.to_skip -= 1
                    continue
                if armed.fault.probability < 1 and armed.dice.random() >= armed.fault.probability:
                    continue
                if armed.left is not None:
                    armed.left -= 1
                armed.hits += 1
                return armed.fault
        return None


def error_of(fault: Fault, request: wire.SignedRequest, caller: str) -> wire.ErrorAnswer:
    """The error that an error-like fault answers with."""
    if fault.kind is FaultKind.THROTTLE:
        answer = wire.throttled(request.service)
    elif fault.kind is FaultKind.DENIED:
        answer = wire.denied(request.service, request.action, caller)
    else:
        answer = wire.ErrorAnswer("InternalError", "An internal error has occurred", 500)
        if fault.code is not None:
            answer = wire.ErrorAnswer(fault.code, "The emulator was asked to answer with this error.", 400)
    return wire.ErrorAnswer(fault.code or answer.code, fault.message or answer.message, fault.status or answer.status)


def _matches(fault: Fault, request: wire.SignedRequest, account: str, path: str) -> bool:
    return (
        fault.service in ("*", canonical_service(request.service))
        and fnmatchcase(request.action, fault.action)
        and fault.account in (None, account)
        and fault.region in (None, request.region)
        and (fault.containing is None or fault.containing in path or fault.containing.encode() in request.body)
    )
