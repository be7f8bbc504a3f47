"""Maps botocore's exceptions to our errors: by a table of AWS's codes, else by words in the code, else by HTTP status.

The status says little: EC2 throttles with 503, Organizations with 400. The codes are from the "Common Errors" page of
each service's API reference. A call that got no answer may have taken effect.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    IncompleteReadError,
    PaginationError,
    ReadTimeoutError,
    ResponseStreamingError,
)
from botocore.exceptions import ConnectionError as BotoConnectionError
from botocore.parsers import ResponseParserError

from domain.model import Model
from engine.errors import Absent, ApiError, Conflict, Denied, Invalid, Pending, Throttled, Unavailable, asked_delay

# The caller is not authenticated: its key is deleted or not known to AWS yet, or its session has expired.
UNAUTHENTICATED = frozenset(
    {
        "AuthFailure",
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidToken",
        "MissingAuthenticationToken",
        "RequestExpired",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
_DENIED = frozenset(
    {
        "AllAccessDisabled",
        "AWSOrganizationsNotInUseException",
        "NotAuthorized",
        "OperationNotPermitted",
        "SubscriptionRequiredException",  # Support without a support plan
        "UnauthorizedAccess",
        "UnauthorizedOperation",
    }
)
# Codes that mean throttling, although their words (see below) do not show it.
_THROTTLED = frozenset(
    {
        "BandwidthLimitExceeded",
        "ConcurrentModification",
        "ConcurrentModificationException",
        "PriorRequestNotComplete",
        "RequestLimitExceeded",
        "SlowDown",
    }
)
_PENDING = frozenset({"OptInRequired", "PendingVerification"})
_UNAVAILABLE = frozenset(
    {
        "EntityTemporarilyUnmodifiable",  # IAM, for minutes after an entity of the same name was deleted
        "FinalizingOrganizationException",
        "InsufficientInstanceCapacity",
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "OperationAborted",  # S3, while another operation on the bucket runs
        "RequestTimeout",
        "RequestTimeoutException",
        "ServerInternal",
        "ServiceException",
        "ServiceFailure",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "Unavailable",
    }
)
_CONFLICT = frozenset(
    {
        "BucketNotEmpty",
        "DeleteConflict",
        "DependencyViolation",
        "HostedZoneNotEmpty",
        "IncorrectInstanceState",
        "IncorrectState",
        "LimitExceeded",  # IAM: e.g. a third access key
        "UnmodifiableEntity",
    }
)
# SQS has two spellings: `QueueDoesNotExist`, and the older `AWS.SimpleQueueService.NonExistentQueue`.
_ABSENT_SPELLING = re.compile(r"^NoSuch|NotFound|DoesNotExist|NonExistent")
_CONFLICT_SPELLING = re.compile(r"AlreadyExist|^Duplicate|InUse$")
_DENIED_SPELLING = re.compile(r"AccessDenied")
_THROTTLED_SPELLING = re.compile(r"Throttl|TooManyRequests")

# The delay if AWS's answer names none. Organizations makes one change at a time, which takes a few seconds, and reports
# for up to an hour that a new organization is still being set up.
_DELAYS = {
    "EntityTemporarilyUnmodifiable": timedelta(seconds=30),
    "FinalizingOrganizationException": timedelta(minutes=1),
    "ConcurrentModificationException": timedelta(seconds=2),
}

_HINTS = {
    "AWSOrganizationsNotInUseException": "The payer's keys must belong to the organization's management account.",
    "ConstraintViolationException": "Ask AWS for a higher limit, or correct what the message names.",
    "OptInRequired": "The account or region is not active yet; it is checked again.",
    "PendingVerification": "AWS is verifying the account; it is checked again.",
    "SubscriptionRequiredException": "The management account needs a support plan to open cases.",
}

_NO_ANSWER = (BotoConnectionError, HTTPClientError, IncompleteReadError, ReadTimeoutError, ResponseStreamingError)
_LONGEST_MESSAGE = 600
_SHOWN_PARAMETERS = (
    "AccountId",
    "AccountName",
    "AccountIds",
    "Bucket",
    "CreateAccountRequestId",
    "HostedZoneId",
    "Id",
    "InstanceIds",
    "Name",
    "RoleArn",
    "RoleName",
    "ServiceIds",
    "SnapshotId",
    "UserName",
    "VolumeId",
)


class Call(Model):
    """A call to AWS as shown in messages, with only those parameters that name objects."""

    service: str
    operation: str
    caller: str
    region: str
    objects: str = ""

    @classmethod
    def of(cls, service: str, operation: str, caller: str, region: str, parameters: Mapping[str, object]) -> Call:
        shown = ", ".join(f"{name}={_short(parameters[name])}" for name in _SHOWN_PARAMETERS if name in parameters)
        return cls(service=service, operation=operation, caller=caller, region=region, objects=shown)

    def __str__(self) -> str:
        objects = f" ({self.objects})" if self.objects else ""
        return f"{self.service} {self.operation}{objects} as {self.caller} in {self.region}"


def api_error(call: Call, error: BaseException) -> ApiError:
    if isinstance(error, ClientError):
        return _refusal(call, error)
    name = type(error).__name__
    if isinstance(error, _NO_ANSWER):
        message = _cut(str(error))
        return Unavailable(
            f"{call}: no answer, {message}. The next attempt finds out whether the call took effect.", code=name
        )
    if isinstance(error, (PaginationError, ResponseParserError)):
        return Unavailable(f"{call}: the answer cannot be parsed, {_cut(str(error))}.", code=name)
    if isinstance(error, BotoCoreError):
        return Invalid(f"{call}: not sent, {_cut(str(error))}. Correct the value that this error names.", code=name)
    raise error


def error_class(code: str, status: int) -> type[ApiError]:
    bare = code.removeprefix("Client.").removeprefix("Server.")
    by_code: tuple[tuple[frozenset[str], type[ApiError]], ...] = (
        (UNAUTHENTICATED | _DENIED, Denied),
        (_THROTTLED, Throttled),
        (_PENDING, Pending),
        (_UNAVAILABLE, Unavailable),
        (_CONFLICT, Conflict),
    )
    by_spelling: tuple[tuple[re.Pattern[str], type[ApiError]], ...] = (
        (_DENIED_SPELLING, Denied),
        (_THROTTLED_SPELLING, Throttled),
        (_ABSENT_SPELLING, Absent),
        (_CONFLICT_SPELLING, Conflict),
    )
    for codes, kind in by_code:
        if bare in codes:
            return kind
    for spelling, kind in by_spelling:
        if spelling.search(bare):
            return kind
    if status == 429:
        return Throttled
    if status >= 500:
        return Unavailable
    return {401: Denied, 403: Denied, 404: Absent, 409: Conflict}.get(status, Invalid)


def _refusal(call: Call, error: ClientError) -> ApiError:
    answer = error.response.get("Error", {})
    metadata = error.response.get("ResponseMetadata", {})
    status = int(metadata.get("HTTPStatusCode", 0))
    code = str(answer.get("Code", "")) or f"HTTP {status}"
    if code.isdecimal():  # HEAD requests have no body: botocore uses the status as code
        code = f"HTTP {code}"
    request = metadata.get("RequestId") or "unknown"
    reason = error.response.get("Reason")
    text = _cut(str(answer.get("Message", "")) or "no message") + (f" ({reason})" if reason else "")
    kind = error_class(code, status)
    hint = _HINTS.get(code) or _hint(kind, code)
    message = f"{call}: {code}: {text} [request {request}]{' ' + hint if hint else ''}"
    delay = asked_delay(metadata.get("HTTPHeaders", {}).get("retry-after", "")) or _DELAYS.get(code)
    return kind(message, code=code, delay=delay)


def _hint(kind: type[ApiError], code: str) -> str:
    if kind is not Denied:
        return ""
    if code in UNAUTHENTICATED:
        return "The caller's credentials are unknown to AWS or have expired."
    return "Allow the action to the caller in IAM, and check the organization's service control policies."


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}..."


def _short(value: object) -> str:
    items = value if isinstance(value, list) else [value]
    text = ", ".join([*map(str, items[:3]), *(["..."] if len(items) > 3 else [])])
    return text if len(text) <= 120 else f"{text[:120]}..."
