"""What a person should be told: Kubernetes Events, by the reasons that yawol uses."""

from __future__ import annotations

from enum import StrEnum

from domain.model import Model


class NoticeType(StrEnum):
    """An Event's type."""

    NORMAL = "Normal"
    WARNING = "Warning"


class Notice(Model):
    """An Event to be; the same one is told once."""

    type: NoticeType
    reason: str
    message: str


def normal(reason: str, message: str) -> Notice:
    """Something went as it should."""
    return Notice(type=NoticeType.NORMAL, reason=reason, message=message)


def warning(reason: str, message: str) -> Notice:
    """Something that a person should look at."""
    return Notice(type=NoticeType.WARNING, reason=reason, message=message)


def bad_source_range(text: str) -> Notice:
    """A source range that is no network: it is left out, the others count."""
    return warning("Error", f"Could not parse LoadBalancerSourceRange: {text}")
