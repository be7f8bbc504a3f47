"""What clouds hold that no custom resource owns, and the other way round: one module per area, read-only.

An area joins with a module of its name here that defines `audit(session, *, thorough) -> list[Finding]`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Protocol

from domain.model import Model

if TYPE_CHECKING:
    from starters.cli.session import Session


class Finding(Model):
    """Something that does not fit: what it is about, what is wrong, what a person can do."""

    area: str
    subject: str
    problem: str
    advice: str


class Audit(Protocol):
    """One area's audit."""

    def __call__(self, session: Session, *, thorough: bool) -> Awaitable[list[Finding]]:
        """Look, changing nothing; `thorough` allows calls in every account, region and project."""


def audits() -> dict[str, Audit]:
    """Every area's audit, by the area."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    found: dict[str, Audit] = {name: importlib.import_module(f"{__name__}.{name}").audit for name in names}
    return found
