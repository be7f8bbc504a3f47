"""Waiting work, as `perdure top` shows it."""

from __future__ import annotations

from datetime import datetime

from domain.model import Model


class Backlog(Model):
    """A waiting item, since when (UTC; None where `what` already says it), and why."""

    what: str
    since: datetime | None
    why: str
