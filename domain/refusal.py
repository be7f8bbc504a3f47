"""What the world answers when it does not do what was asked: one vocabulary for every API.

Each client library's errors are mapped to these in one place per API (`activities/<api>/errors.py`). *Throttled* and
*unavailable* are retried by the server with growing delays, for ever, and cost no history. The others end the activity
and reach the decision as a `Refusal`, which may wait for a change (*Waiting*), give up (*Failed*), or simply leave the
action to be tried again: by the loop, after a delay that doubles from five seconds to ten minutes, at once on a wake.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from enum import StrEnum

from domain.model import Model


class ErrorType(StrEnum):
    """The `type` of the ApplicationError that an activity raises."""

    ABSENT = "Absent"  # what was asked for does not exist
    CONFLICT = "Conflict"  # it exists already, or has changed since it was read
    THROTTLED = "Throttled"  # too many calls, or a quota of the moment; carries its delay
    INVALID = "Invalid"  # the request can never succeed as it is
    DENIED = "Denied"  # the credentials may not do this
    UNAVAILABLE = "Unavailable"  # no answer, or an error of the other side
    PENDING = "Pending"  # an operation of the other side is under way; look again later
    BUG = "Bug"  # anything else: ours


RETRIED_BY_SERVER = frozenset({ErrorType.THROTTLED, ErrorType.UNAVAILABLE, ErrorType.PENDING})

# The API server's reason for a conflict of versions; a name that is taken has another.
STALE_VERSION = "Conflict"

# Codes of what this process itself refuses: its turn comes, and no API has said anything.
WORKER_SHUTDOWN = "WorkerShutdown"
AREA_PAUSED = "Paused"

_REQUEST = re.compile(r" \[request [^\]]*\]")

FIRST_RETRY = timedelta(seconds=5)
LONGEST_RETRY = timedelta(minutes=10)


class UnusableAnswerError(ValueError):
    """An action's result is of no known shape: whether it had its effect is not known."""


class Refusal(Model):
    """One action's last failure.

    Attributes:
        code: the other side's own error code, such as one of AWS.
        at: when, in UTC.
        attempts: how many in a row have failed.
        since: when the first of them has failed; None where this is the first.
        pause: until the next attempt; None for one that grows with the attempts.
        asked: how long the other side wants to be left alone.
    """

    type: ErrorType
    message: str
    code: str = ""
    at: datetime
    attempts: int = 1
    since: datetime | None = None
    pause: timedelta | None = None
    asked: timedelta = timedelta(0)

    @property
    def stale(self) -> bool:
        """Whether a write to Kubernetes was based on an older version of its object."""
        return self.type is ErrorType.CONFLICT and self.code == STALE_VERSION

    @property
    def lasts_since(self) -> datetime:
        """When the first of the attempts has failed."""
        return self.since or self.at

    @property
    def retry_at(self) -> datetime:
        """When the loop tries the action again if nothing wakes it before."""
        grown = doubled(self.attempts, FIRST_RETRY, LONGEST_RETRY) if self.pause is None else self.pause
        return self.at + max(grown, self.asked)


def doubled(attempts: int, first: timedelta, longest: timedelta) -> timedelta:
    """The pause after so many failed attempts: each twice as long as the one before."""
    return min(longest, first * (1 << min(attempts - 1, 10)))


def without_request(message: str) -> str:
    """The message without the cloud's request id, which differs at each attempt of the same refusal."""
    return _REQUEST.sub("", message)
