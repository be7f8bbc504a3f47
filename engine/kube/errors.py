"""The one place where the Kubernetes API's errors are mapped.

A refusal is a `Status` object, whose `reason` becomes the error's `code`. For a path that is not served, the server
answers 404 with plain text or with a Status that names no object; the `code` is `NoSuchKind`.
"""

from __future__ import annotations

import json
from datetime import timedelta

import aiohttp

from engine.errors import Absent, ApiError, Conflict, Denied, Invalid, Throttled, Unavailable, asked_delay
from engine.kube.json import at, mapping, sequence, text

NO_SUCH_KIND = "NoSuchKind"
METHOD_NOT_ALLOWED = "MethodNotAllowed"
NAMESPACE_TERMINATING = "NamespaceTerminating"

_LONGEST_MESSAGE = 1000


class Expired(Unavailable):
    """The resourceVersion is older than the server's history: list again."""


def api_error(attempt: str, status: int, body: str, retry_after: str = "") -> ApiError:
    """The error for an unsuccessful answer. `attempt` is like `patch Account aws-account-operator/osd-1`, `body` a
    `Status` or text, `retry_after` the header.
    """
    answer = _parsed(body)
    reason, details = text(answer, "reason"), mapping(answer, "details")
    explanation = (text(answer, "message") or body.strip() or "no message")[:_LONGEST_MESSAGE]
    code = _cause(details) or reason or str(status)
    if status == 404 and not text(details, "name"):
        code = NO_SUCH_KIND
    message = f"{attempt}: {status} {code}: {explanation}"
    return _error_class(status)(message, code=code, delay=_delay(details, retry_after))


def no_answer(attempt: str, error: BaseException, timeout: timedelta) -> ApiError:
    if isinstance(error, TimeoutError):
        return Unavailable(f"{attempt}: no answer within {timeout.total_seconds():g} s", code="Timeout")
    code = type(error).__name__
    if isinstance(error, aiohttp.ClientConnectorError):
        # The error's own text contains the representation of the TLS context.
        reason = error.strerror or str(error.os_error) or code
        return Unavailable(f"{attempt}: cannot connect to {error.host}:{error.port}: {reason}", code=code)
    return Unavailable(f"{attempt}: {code}: {error}", code=code)


def _error_class(status: int) -> type[ApiError]:
    if status in (401, 403):
        return Denied
    return {404: Absent, 409: Conflict, 410: Expired, 429: Throttled}.get(
        status, Unavailable if status >= 500 or status == 408 else Invalid
    )


def _parsed(body: str) -> object:
    try:
        return json.loads(body)
    except ValueError:
        return None


def _cause(details: object) -> str:
    """`NAMESPACE_TERMINATING` if the API server gives this cause for its refusal; otherwise empty."""
    reasons = {text(cause, "reason") for cause in sequence(details, "causes")}
    return NAMESPACE_TERMINATING if NAMESPACE_TERMINATING in reasons else ""


def _delay(details: object, retry_after: str) -> timedelta | None:
    return asked_delay(str(at(details, "retryAfterSeconds"))) or asked_delay(retry_after)
