"""Work that waits, as `perdure top` shows it."""

from __future__ import annotations

from datetime import datetime

from domain.model import Model


class Backlog(Model):
    """Something that waits, since when (UTC; None where `what` says it), and why."""

    what: str
    since: datetime | None
    why: str
