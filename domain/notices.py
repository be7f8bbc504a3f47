from __future__ import annotations

import hashlib
from enum import StrEnum

from domain.model import Model
from domain.refusal import without_request


class NoticeType(StrEnum):
    NORMAL = "Normal"
    WARNING = "Warning"


class Notice(Model):
    """A Kubernetes Event, which is written once until its content changes."""

    type: NoticeType
    reason: str
    message: str
    action: str = ""

    @property
    def digest(self) -> str:
        """Equal for equal content; request ids do not count."""
        said = f"{self.reason}\n{without_request(self.message)}"
        return hashlib.sha256(said.encode()).hexdigest()[:16]


def normal(reason: str, message: str, *, action: str = "") -> Notice:
    return Notice(type=NoticeType.NORMAL, reason=reason, message=message, action=action)


def warning(reason: str, message: str) -> Notice:
    return Notice(type=NoticeType.WARNING, reason=reason, message=message)
