"""Faults of AWS calls. `localcloud.faults` selects which of the calls that match a fault are affected."""

from __future__ import annotations

from fnmatch import fnmatchcase

from localcloud.aws import wire
from localcloud.aws.contract import Fault, FaultKind, canonical_service
from localcloud.faults import Board


class FaultBoard(Board[Fault]):
    def add(self, fault: Fault) -> Fault:
        return super().add(fault.model_copy(update={"service": canonical_service(fault.service)}))

    def sit_out(self, fault: Fault) -> None:
        with self.changed:
            self.changed.wait_for(lambda: not self._in_force(fault), fault.delay_seconds)

    def strike(self, request: wire.SignedRequest, account: str, path: str) -> Fault | None:
        return self.first_taking(lambda fault: _matches(fault, request, account, path))

    def _in_force(self, fault: Fault) -> bool:
        return any(armed.fault is fault for armed in self._armed)


def error_of(fault: Fault, request: wire.SignedRequest, caller: str) -> wire.ErrorAnswer:
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
