"""The areas' read-only audits: cloud objects without an owning custom resource, and vice versa.

An area's audit is a module here that defines `audit(session, *, thorough) -> list[Finding]`.
"""

from __future__ import annotations

import asyncio
import importlib
import pkgutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from domain.model import Model
from engine.errors import Absent, ApiError
from engine.kube.errors import NO_SUCH_KIND
from starters.cli.output import warn

if TYPE_CHECKING:
    from starters.cli.session import Session


class Finding(Model):
    area: str
    subject: str
    problem: str
    advice: str


class Audit(Protocol):
    def __call__(self, session: Session, *, thorough: bool) -> Awaitable[list[Finding]]:
        """Make the audit; `thorough` allows calls in every account, region and project."""


async def found_twice(look: Callable[[], Awaitable[Iterable[Finding]]], apart_seconds: float) -> list[Finding]:
    """The findings that two calls of `look` share: a single list may lag."""
    first = list(await look())
    if not first:
        return []
    await asyncio.sleep(apart_seconds)
    again = set(await look())
    return [finding for finding in first if finding in again]


async def of_each(
    session: Session, known: Mapping[str, Audit], *, thorough: bool
) -> AsyncIterator[tuple[str, list[Finding] | ApiError]]:
    """Make the audits in sequence. Areas whose kinds are not installed are left out."""
    for area, audit in known.items():
        try:
            yield area, await audit(session, thorough=thorough)
        except ApiError as error:
            if isinstance(error, Absent) and error.code == NO_SUCH_KIND:
                warn(f"skipped: {area}, whose kinds are not installed here")
            else:
                yield area, error


def audits() -> dict[str, Audit]:
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    found: dict[str, Audit] = {name: importlib.import_module(f"{__name__}.{name}").audit for name in names}
    return found
