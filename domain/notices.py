"""What a person should be told: a Kubernetes Event, which is written once until it says something else."""

from __future__ import annotations

from enum import StrEnum

from domain.model import Model


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


def normal(reason: str, message: str, *, action: str = "") -> Notice:
    """Something went as it should."""
    return Notice(type=NoticeType.NORMAL, reason=reason, message=message, action=action)


def warning(reason: str, message: str) -> Notice:
    """Something that a person should look at."""
    return Notice(type=NoticeType.WARNING, reason=reason, message=message)
