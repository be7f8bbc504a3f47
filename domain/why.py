"""What a lifecycle tells a person who asks: the answer of the `why` query and the `plan` update."""

from __future__ import annotations

from datetime import datetime

from domain.model import Model


class Hindrance(Model):
    """An action that was refused, and when it is tried again."""

    action: str
    type: str
    message: str
    attempts: int
    retry_at: datetime


class Why(Model):
    """How a lifecycle stands. `running` and `planned` are lines for people; `hold` says why nothing may be done."""

    object: str
    phase: str
    outcome: str
    why: str
    waits_for: tuple[str, ...] = ()
    deadline: datetime | None = None
    at_deadline: str = ""
    hold: str = ""
    running: tuple[str, ...] = ()
    planned: tuple[str, ...] = ()
    hindrances: tuple[Hindrance, ...] = ()
    owner: str = ""
