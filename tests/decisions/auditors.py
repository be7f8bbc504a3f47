"""Audits of areas that find what a test wants, or fail."""

from __future__ import annotations

from starters.cli.audits import Finding
from starters.cli.session import Session

PORT = Finding(area="loadbalancers", subject="port 1", problem="has no owner", advice="delete it")


class Auditor:
    """An area's audit that finds this, or cannot be made."""

    def __init__(self, *found: Finding, error: Exception | None = None) -> None:
        self._found = found
        self._error = error

    async def __call__(self, session: Session, *, thorough: bool) -> list[Finding]:
        if self._error is not None:
            raise self._error
        return list(self._found)
