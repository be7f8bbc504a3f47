"""Faults: which calls are refused, lost, late or never answered.

A fault matches calls by tenant, method, path and text; it takes the first `count` of them after `skip`, each with its
probability, drawn from its own seed so that a run can be repeated. The first fault that takes a call wins.

A refusal without a body of its own says what 3scale says with that status, or, for what 3scale itself never says (429
and most of 5xx), what a load balancer before it does: a page of HTML.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from http import HTTPStatus

from localcloud.threescale import refusals
from localcloud.threescale.answers import Answer
from localcloud.threescale.contract import Fault


@dataclass
class _Armed:
    fault: Fault
    left: int | None
    to_skip: int
    hits: int
    dice: random.Random = field(default_factory=random.Random)

    def report(self) -> Fault:
        return self.fault.model_copy(update={"count": self.left, "skip": self.to_skip, "hits": self.hits})


class FaultBoard:
    """The faults in force, in the order in which they were set."""

    def __init__(self) -> None:
        self._armed: list[_Armed] = []
        self._serial = 0

    def add(self, fault: Fault) -> Fault:
        """Put a fault in force; one of the same id is replaced. Raises ValueError where its path is no pattern."""
        try:
            re.compile(fault.path)
        except re.error as error:
            raise ValueError(f"{fault.path!r} is no regular expression: {error}") from None
        self._serial += 1
        named = fault.model_copy(update={"id": fault.id or self._free_id()})
        self._armed = [armed for armed in self._armed if armed.fault.id != named.id]
        dice = random.Random(named.seed)  # noqa: S311 - no secret, and it has to repeat
        self._armed.append(_Armed(named, named.count, named.skip, named.hits, dice))
        return named

    def remove(self, fault_id: str) -> bool:
        """Lift one; False if there is none of that id."""
        before = len(self._armed)
        self._armed = [armed for armed in self._armed if armed.fault.id != fault_id]
        return len(self._armed) < before

    def holds(self, fault_id: str) -> bool:
        """Whether it was not lifted yet, used up or not."""
        return any(armed.fault.id == fault_id for armed in self._armed)

    def clear(self) -> None:
        """Lift all."""
        self._armed.clear()

    def report(self) -> list[Fault]:
        """Those set and not lifted, with what they still take; used-up ones included."""
        return [armed.report() for armed in self._armed]

    def restore(self, faults: Iterable[Fault]) -> None:
        """Put those of an earlier process back in force."""
        for fault in faults:
            self.add(fault)

    def strike(self, tenant: str, method: str, path: str, query: str, body: bytes) -> Fault | None:
        """The fault that takes this call, if one does."""
        for armed in self._armed:
            if armed.left == 0 or not _matches(armed.fault, tenant, method, path, query, body):
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

    def _free_id(self) -> str:
        taken = {armed.fault.id for armed in self._armed}
        while f"fault-{self._serial}" in taken:
            self._serial += 1
        return f"fault-{self._serial}"


def refusal_of(fault: Fault) -> Answer:
    """What a refusing fault answers."""
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
