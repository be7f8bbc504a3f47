"""The errors of other systems, as Perdure's own classes.

Each client library's exceptions are mapped to `ApiError` in one place. Temporal's server retries throttled, unavailable
and pending errors after their delay; other ApiErrors reach the decision as a `Refusal`. Any other exception is a bug
(`bugs.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import timedelta
from typing import TypeVar

from temporalio.client import RPCTimeoutOrCancelledError
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import RPCError

from domain.refusal import OWN_REFUSALS, RETRIED_BY_SERVER, ErrorType, Refusal

T = TypeVar("T")
# The longest delay that an answer of another system can impose on an object.
LONGEST_ASKED = timedelta(hours=1)


class ApiError(Exception):
    """An error of another system. `message` names the object, what was tried, what came back, and what a person can do.
    `code` is the other system's error code; `delay` is how long that system asked us to wait (None: it did not).
    """

    type: ErrorType = ErrorType.UNAVAILABLE

    def __init__(self, message: str, *, code: str = "", delay: timedelta | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.delay = delay

    @property
    def ours(self) -> bool:
        """Whether this process itself refused the request, without an API call."""
        return self.code in OWN_REFUSALS


class Absent(ApiError):
    type = ErrorType.ABSENT


class Conflict(ApiError):
    """The object exists already, or has changed since it was read."""

    type = ErrorType.CONFLICT


class Throttled(ApiError):
    type = ErrorType.THROTTLED


class Invalid(ApiError):
    """The request can never succeed unchanged."""

    type = ErrorType.INVALID


class Denied(ApiError):
    type = ErrorType.DENIED


class Unavailable(ApiError):
    type = ErrorType.UNAVAILABLE


class Pending(ApiError):
    """An operation of the other system is under way; check again after `delay`."""

    type = ErrorType.PENDING


def api_error(error: BaseException) -> ApiError | None:
    """The exception as an error of another system, Temporal included; None if it is a bug."""
    if isinstance(error, (RPCError, RPCTimeoutOrCancelledError)):
        return Unavailable(f"Temporal gave no answer: {error}")
    return error if isinstance(error, ApiError) else None


async def unless_absent(answer: Awaitable[T]) -> T | None:
    """The answer; None if the object does not exist."""
    try:
        return await answer
    except Absent:
        return None


def asked_delay(retry_after: str) -> timedelta | None:
    """The delay that a Retry-After header asks for, at most an hour. None without a positive number of seconds."""
    seconds = int(retry_after) if retry_after.isdecimal() and len(retry_after) < 10 else 0
    return min(timedelta(seconds=seconds), LONGEST_ASKED) if seconds else None


def as_error(refusal: Refusal) -> ApiError:
    kinds = {kind.type: kind for kind in (Absent, Conflict, Throttled, Invalid, Denied, Unavailable, Pending)}
    return kinds[refusal.type](refusal.message, code=refusal.code, delay=refusal.pause)


def to_application_error(error: BaseException) -> ApplicationError:
    """The error that Temporal gets; its `details` hold the code that the other system answered."""
    if isinstance(error, ApplicationError):
        return error
    if refused := api_error(error):
        expected = refused.type in RETRIED_BY_SERVER
        return ApplicationError(
            refused.message,
            refused.code,
            type=refused.type.value,
            non_retryable=not expected,
            next_retry_delay=refused.delay,
            category=ApplicationErrorCategory.BENIGN if expected else ApplicationErrorCategory.UNSPECIFIED,
        )
    return ApplicationError(f"{type(error).__name__}: {error}", "", type=ErrorType.BUG.value, non_retryable=True)
