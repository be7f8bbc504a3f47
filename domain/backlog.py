from __future__ import annotations

from datetime import datetime

from domain.model import Model


class Backlog(Model):
    """Waiting work, as `perdure top` shows it. `since` is in UTC; None where `what` already says it."""

    what: str
    since: datetime | None
    why: str
