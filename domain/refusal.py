"""Failures of actions: one vocabulary for every API.

`activities/<api>/` maps the errors of each client library to these types. Temporal's server retries *throttled*,
*unavailable* and *pending* errors with growing delays, without limit and without history events. Other errors end the
activity and reach the decision as a `Refusal`. The decision may wait for a change (*Waiting*), give up (*Failed*), or
leave the action to the loop, which retries it after a delay that doubles from five seconds to ten minutes, and at once
on a wake.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from enum import StrEnum

from domain.model import Model


class ErrorType(StrEnum):
    """The `type` of the ApplicationError that an activity raises."""

    ABSENT = "Absent"  # the object does not exist
    CONFLICT = "Conflict"  # it exists already, or has changed since it was read
    THROTTLED = "Throttled"  # too many calls, or a temporary quota; may have a delay
    INVALID = "Invalid"  # the request can never succeed unchanged
    DENIED = "Denied"  # the credentials do not allow it
    UNAVAILABLE = "Unavailable"  # no answer, or an error of the remote side
    PENDING = "Pending"  # a remote operation is in progress; check again later
    BUG = "Bug"  # any other error, which is a bug of Perdure


RETRIED_BY_SERVER = frozenset({ErrorType.THROTTLED, ErrorType.UNAVAILABLE, ErrorType.PENDING})

# The code of a version conflict; a name already in use has another code.
STALE_VERSION = "Conflict"

# The codes of refusals by this process itself, which made no API call.
WORKER_SHUTDOWN = "WorkerShutdown"
AREA_PAUSED = "Paused"
OBSERVE_MODE = "ObserveMode"
OWN_REFUSALS = frozenset({WORKER_SHUTDOWN, AREA_PAUSED, OBSERVE_MODE})
# The code of a kubeconfig without a usable cluster.
UNUSABLE_KUBECONFIG = "Kubeconfig"

# What differs in every request: its id, and EC2's encoded reason of a denial.
_REQUEST = re.compile(r" \[request [^\]]*\]| Encoded authorization failure message: \S+")

FIRST_RETRY = timedelta(seconds=5)
LONGEST_RETRY = timedelta(minutes=10)


class UnusableAnswerError(ValueError):
    """An action's result has an unknown shape: the action may or may not have taken effect."""


class Refusal(Model):
    type: ErrorType
    message: str
    # The remote side's own error code, e.g. of AWS.
    code: str = ""
    at: datetime  # when the action failed, in UTC
    attempts: int = 1  # the number of consecutive failures
    since: datetime | None = None  # when the first of these failures happened; None if this failure is the first
    pause: timedelta | None = None  # the delay until the next attempt; None: it grows with the attempts
    asked: timedelta = timedelta(0)  # the delay that the remote side has requested

    @property
    def ours(self) -> bool:
        """Whether this process itself refused the action, without an API call."""
        return self.code in OWN_REFUSALS

    @property
    def stale(self) -> bool:
        """Whether a Kubernetes write was based on an older version of its object."""
        return self.type is ErrorType.CONFLICT and self.code == STALE_VERSION

    @property
    def lasts_since(self) -> datetime:
        return self.since or self.at

    @property
    def retry_at(self) -> datetime:
        grown = doubled(self.attempts, FIRST_RETRY, LONGEST_RETRY) if self.pause is None else self.pause
        return self.at + max(grown, self.asked)


def doubled(attempts: int, first: timedelta, longest: timedelta) -> timedelta:
    return min(longest, first * (1 << min(attempts - 1, 10)))


def without_request(message: str) -> str:
    return _REQUEST.sub("", message)
