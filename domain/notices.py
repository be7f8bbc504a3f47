"""What a person should be told: a Kubernetes Event, which is written once until it says something else."""

from __future__ import annotations

import hashlib
from enum import StrEnum

from domain.model import Model
from domain.refusal import without_request


class NoticeType(StrEnum):
    """An Event's type."""

    NORMAL = "Normal"
    WARNING = "Warning"


class Notice(Model):
    """An Event to be."""

    type: NoticeType
    reason: str
    message: str
    action: str = ""

    @property
    def digest(self) -> str:
        """The same for what says the same, whichever request it was."""
        said = f"{self.reason}\n{without_request(self.message)}"
        return hashlib.sha256(said.encode()).hexdigest()[:16]


def normal(reason: str, message: str, *, action: str = "") -> Notice:
    """Something went as it should."""
    return Notice(type=NoticeType.NORMAL, reason=reason, message=message, action=action)


def warning(reason: str, message: str) -> Notice:
    """Something that a person should look at."""
    return Notice(type=NoticeType.WARNING, reason=reason, message=message)
