"""Maps OpenStack's answers to our errors.

| answer | error |
|---|---|
| a quota: Neutron's 409 `OverQuota`, or a 403 of Nova about a quota | throttled |
| a 404 in the API's own error format (any other 404 is unavailable) | absent |
| no answer, an unreadable one, or a server error | unavailable: the call may have taken effect |

Nova quotes invalid values, even user data, so messages leave out long unbroken texts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta

from domain.loadbalancers.refused_calls import QUOTA
from domain.model import Model
from engine.errors import Absent, ApiError, Conflict, Denied, Invalid, Throttled, Unavailable, asked_delay
from engine.kube.json import at, mapping, text

UNAUTHORIZED = "Unauthorized"
UNREADABLE = "UnreadableAnswer"
NO_ANSWER = "NoAnswer"

# Codes for exhausted addresses: calls succeed again when an address is freed or added.
_EXHAUSTED = frozenset({"IpAddressGenerationFailure", "ExternalIpAddressExhausted", "NoAvailableIp"})
_SLOW = timedelta(seconds=5)
_LONGEST_MESSAGE = 500
# User data, tokens and keys: longer than any identifier.
_BLOB = re.compile(r"[A-Za-z0-9+/=_-]{80,}")
_USER_OF_ADDRESS = re.compile(r"(?<=://)[^/\s]*@")
_SPACE = re.compile(r"\s+")

_HINTS: Mapping[str, str] = {
    QUOTA: "Ask for a higher quota, or free what is not needed.",
    "ExternalGatewayForFloatingIPNotFound": "The network needs a router with a gateway to the external network.",
    "PolicyNotAuthorized": "The project's policy does not allow this call with these credentials.",
    UNAUTHORIZED: "Keystone rejects these credentials: check the Secret.",
}


class Call(Model):
    """`object` is the kind, `what` an object's name or id, or a list's query."""

    api: str
    object: str
    operation: str
    what: str = ""
    project: str = ""

    def __str__(self) -> str:
        named = f" {self.what}" if self.what else ""
        return f"{self.api} {self.operation} {self.object}{named} in {self.project}"


def refusal(call: Call, status: int, body: object, headers: Mapping[str, str]) -> ApiError:
    """The error for an unsuccessful HTTP status; its `code` is OpenStack's error code."""
    answer = _ErrorBody(call.api, body)
    code = answer.code or f"HTTP {status}"
    kind, code = _class(status, code, answer)
    request = headers.get("x-openstack-request-id") or headers.get("x-compute-request-id") or "unknown"
    hint = _HINTS.get(code, "")
    slow = _SLOW if code == QUOTA or code in _EXHAUSTED else None
    delay = asked_delay(headers.get("retry-after", "")) or slow
    words = shortened(answer.message) or "no message"
    message = f"{call}: {status} {code}: {words} [request {request}]{' ' + hint if hint else ''}"
    return kind(message, code=code, delay=delay)


def no_answer(call: Call, error: BaseException) -> Unavailable:
    message = shortened(str(error))
    return Unavailable(
        f"{call}: no answer, {message}. The next attempt finds out whether the call took effect.", code=NO_ANSWER
    )


def unreadable(call: Call, why: str) -> Unavailable:
    return Unavailable(f"{call}: the answer cannot be parsed, {shortened(why)}", code=UNREADABLE)


def shortened(words: str) -> str:
    text = _BLOB.sub("(...)", _USER_OF_ADDRESS.sub("", _SPACE.sub(" ", words)).strip())
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}..."


class _ErrorBody:
    """An error's code and message. `known` is True if the body has the format of an OpenStack API."""

    def __init__(self, api: str, body: object) -> None:
        self.code, self.message, self.known = "", body if isinstance(body, str) else "", False
        for name, content in mapping(body).items():
            if isinstance(content, str) and name == "NeutronError":
                self.code, self.message, self.known = "", content, True
            elif isinstance(content, Mapping) and "message" in content:
                own = text(content, "type") or text(content, "title")
                self.code, self.message, self.known = own or name, str(content["message"]), True
        if not self.known and isinstance(at(body, "message"), str):
            self.message = text(body, "message")


def _class(status: int, code: str, answer: _ErrorBody) -> tuple[type[ApiError], str]:
    quota = code == QUOTA or (status in (403, 413) and "quota" in answer.message.lower())
    if quota:
        return Throttled, QUOTA
    if code in _EXHAUSTED or status in (413, 429):
        return Throttled, code
    if status == 401:
        return Denied, UNAUTHORIZED
    if status == 404 and not answer.known:
        return Unavailable, UNREADABLE
    if status >= 500 or status == 408:
        return Unavailable, code
    known: dict[int, type[ApiError]] = {403: Denied, 404: Absent, 409: Conflict}
    return known.get(status, Invalid), code
