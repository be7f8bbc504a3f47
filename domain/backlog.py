from __future__ import annotations

from datetime import datetime

from domain.model import Model


class Backlog(Model):
    what: str
    since: datetime | None
    why: str
