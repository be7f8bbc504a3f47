"""Maps 3scale's answers to our errors.

    400 406 422   invalid: the request itself is wrong; the message has the fields and their faults
    401 403       denied: the token or its scope; also a refused deletion, which may become possible later
    404           absent, if the body is JSON; an HTML page of a proxy counts as no answer
    409           conflict: concurrent writes
    429           throttled, with the delay from Retry-After
    3xx 408 5xx   unavailable, like a missing or unreadable answer

Messages contain neither the token nor the request's body, which may come from a Secret.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pydantic import ValidationError

from domain.threescale.calls import shortened, unexpected
from domain.threescale.remote_state import UnexpectedAnswerError
from engine.errors import Absent, ApiError, Conflict, Denied, Invalid, Throttled, Unavailable, asked_delay

NO_ANSWER = "NoAnswer"
UNREADABLE = "UnreadableAnswer"
ACCESS_DENIED = "AccessDenied"

_KINDS: dict[int, type[ApiError]] = {401: Denied, 403: Denied, 404: Absent, 409: Conflict, 429: Throttled}
_TOKEN = (
    "Check the token in the tenant's Secret: it must belong to this tenant, permit writes, and have the call's scope."  # noqa: S105
)


def refusal(call: str, status: int, text: str, headers: Mapping[str, str]) -> ApiError:
    """The error for an unsuccessful status. Its `code` is the status or a word for its meaning."""
    body = _parsed(text)
    kind = _kind(status, body)
    code = f"HTTP {status}"
    if kind is Unavailable and status == 404:
        code = UNREADABLE
    hint = ""
    if kind is Denied and not _is_validation(body):
        code, hint = ACCESS_DENIED, f" {_TOKEN}"
    message = shortened(_body_message(body) or ("" if text.lstrip().startswith("<") else text)) or "no message"
    delay = asked_delay(headers.get("retry-after", "")) if kind in (Throttled, Unavailable) else None
    return kind(f"{call}: {status}: {message}{hint}", code=code, delay=delay)


def no_answer(call: str, error: BaseException) -> Unavailable:
    message = shortened(str(error)) or type(error).__name__
    return Unavailable(
        f"{call}: no answer, {message}. The next attempt finds out whether the call took effect.", code=NO_ANSWER
    )


def unreadable(call: str, text: str) -> Unavailable:
    return Unavailable(f"{call}: the answer is no JSON object or list ({len(text)} characters)", code=UNREADABLE)


@contextmanager
def of_known_shape(call: str) -> Iterator[None]:
    """Raise `Unavailable` for an answer of an undocumented shape, because it counts as no answer."""
    try:
        yield
    except (UnexpectedAnswerError, ValidationError) as error:
        raise Unavailable(unexpected(call, error), code=UNREADABLE) from None


def _kind(status: int, body: object) -> type[ApiError]:
    if status == 404 and not isinstance(body, Mapping):
        return Unavailable
    if status >= 500 or status == 408 or status < 400:
        return Unavailable
    return _KINDS.get(status, Invalid)


def _is_validation(body: object) -> bool:
    """Whether the body lists faults by field. In a 403 the faults say what blocks a deletion."""
    return isinstance(body, Mapping) and "errors" in body


def _body_message(body: object) -> str:
    if not isinstance(body, Mapping):
        return ""
    errors = body.get("errors")
    if isinstance(errors, Mapping):
        return "; ".join(_of_field(str(field), messages) for field, messages in sorted(errors.items()))
    error = body.get("error", body.get("status", ""))
    if isinstance(error, Mapping):
        return f"{error.get('error', '')} (from {error.get('from', '?')} by {error.get('event', '?')})".strip()
    return str(error)


def _of_field(field: str, messages: object) -> str:
    text = ", ".join(str(each) for each in messages) if isinstance(messages, list) else str(messages)
    return text if field == "base" else f"{field}: {text}"


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None
