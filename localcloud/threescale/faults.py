"""Faults of calls, matched by tenant, method, path and text. `localcloud.faults` selects one of the matching faults."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from http import HTTPStatus

from localcloud.faults import Board
from localcloud.threescale import refusals
from localcloud.threescale.answers import Answer
from localcloud.threescale.contract import Fault


class FaultBoard(Board[Fault]):
    def add(self, fault: Fault) -> Fault:
        """A fault with the same id is replaced. Raises ValueError if the path is not a regular expression."""
        try:
            re.compile(fault.path)
        except re.error as error:
            raise ValueError(f"{fault.path!r} is not a regular expression: {error}") from None
        return super().add(fault)

    def strike(self, tenant: str, method: str, path: str, query: str, body: bytes) -> Fault | None:
        return self.first_taking(lambda fault: _matches(fault, tenant, method, path, query, body))


def refusal_of(fault: Fault) -> Answer:
    answer = Answer(fault.status, text=fault.body) if fault.body is not None else _usual(fault.status)
    answer.headers |= fault.headers
    return answer


def _usual(status: int) -> Answer:
    match status:
        case HTTPStatus.FORBIDDEN:
            return refusals.access_denied().answer
        case HTTPStatus.NOT_FOUND:
            return refusals.not_found().answer
        case HTTPStatus.CONFLICT:
            return refusals.conflict().answer
        case HTTPStatus.UNPROCESSABLE_ENTITY:
            return refusals.invalid({"system_name": ["has already been taken"]}).answer
    phrase = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "Refused"
    page = f"<html><head><title>{status} {phrase}</title></head><body><h1>{status} {phrase}</h1></body></html>"
    return Answer(status, text=page, content_type="text/html")


def _matches(fault: Fault, tenant: str, method: str, path: str, query: str, body: bytes) -> bool:
    return (
        fault.tenant in ("", tenant)
        and fnmatchcase(method, fault.method)
        and re.search(fault.path, path) is not None
        and (not fault.containing or fault.containing in query or fault.containing.encode() in body)
    )
