"""What clouds hold that no custom resource owns, and the other way round: one module per area, read-only.

An area joins with a module of its name here that defines `audit(session, *, thorough) -> list[Finding]`.
"""

from __future__ import annotations

import asyncio
import importlib
import pkgutil
from collections.abc import Awaitable, Callable, Iterable
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


async def found_twice(look: Callable[[], Awaitable[Iterable[Finding]]], apart_seconds: float) -> list[Finding]:
    """What two looks find both: lists are late, and what moves in between is at work. Nothing found is believed."""
    first = list(await look())
    if not first:
        return []
    await asyncio.sleep(apart_seconds)
    again = set(await look())
    return [finding for finding in first if finding in again]


def audits() -> dict[str, Audit]:
    """Every area's audit, by the area."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    found: dict[str, Audit] = {name: importlib.import_module(f"{__name__}.{name}").audit for name in names}
    return found
