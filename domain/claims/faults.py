"""Faults that a person must correct, and the exceptions that cause them.

A pass catches these exceptions where it can continue, and reports them in a condition and an Event. Any other exception
is a bug and is not caught.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from domain.claims.deep_merge import TooDeep
from domain.claims.durations import UnreadableDuration, UnreadableMoment
from domain.claims.evaluator_interface import Fault
from domain.claims.resource_definitions import DefinitionError
from domain.claims.template_variables import ProviderError, ProviderMissing
from domain.claims.templates.errors import TemplateError
from domain.claims.update_filters import BadPattern

# Hundreds of resources may each contribute a message.
LONGEST_MESSAGE = 4_000
HANDLE_REFUSED = "HandleRefused"


class Faulty(Exception):  # noqa: N818 - says what the object is
    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


# The first match counts: a ProviderMissing is a ProviderError.
REASONS: tuple[tuple[type[Exception], str], ...] = (
    (TemplateError, "TemplateFailed"),
    (ProviderMissing, "ProviderMissing"),
    (ProviderError, "ProviderUnusable"),
    (DefinitionError, "DefinitionUnusable"),
    (BadPattern, "PatternUnusable"),
    (UnreadableDuration, "DurationUnreadable"),
    (UnreadableMoment, "MomentUnreadable"),
    (TooDeep, "NestedTooDeep"),
)
FAULTS: tuple[type[Exception], ...] = (Faulty, *(kind for kind, _ in REASONS))


def fault_of(error: Exception, where: str = "") -> Fault:
    message = f"{where}: {error}" if where else str(error)
    found = (reason for kind, reason in REASONS if isinstance(error, kind))
    return Fault(reason=error.reason if isinstance(error, Faulty) else next(found), message=message)


def handle_refused(message: str) -> Fault:
    return Fault(reason=HANDLE_REFUSED, message=f"no ResourceHandle can be created: {message}")


@contextmanager
def collected_in(faults: list[Fault], where: str = "") -> Iterator[None]:
    try:
        yield
    except FAULTS as error:
        faults.append(fault_of(error, where))


def each_once(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    return tuple(dict.fromkeys(faults))


def summed(faults: Iterable[Fault]) -> Fault | None:
    several = each_once(faults)
    if not several:
        return None
    message = "; ".join(fault.message for fault in several)
    shown = message if len(message) <= LONGEST_MESSAGE else f"{message[:LONGEST_MESSAGE]}…"
    return Fault(reason=several[0].reason, message=shown)
