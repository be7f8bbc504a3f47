"""Which of our errors each of AWS's is; no server needed."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, ConnectTimeoutError, ParamValidationError

from activities.aws.error_codes import Call, api_error, error_class
from engine.errors import Absent, ApiError, Conflict, Denied, Invalid, Pending, Throttled, Unavailable

CALL = Call(service="ec2", operation="RunInstances", caller="1", region="r")


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("AccessDenied", 403, Denied),
        ("AccessDeniedException", 400, Denied),
        ("AccessDeniedForDependencyException", 400, Denied),
        ("DependencyAccessDeniedException", 400, Denied),
        ("UnauthorizedOperation", 403, Denied),
        ("AuthFailure", 401, Denied),
        ("ExpiredTokenException", 400, Denied),
        ("InvalidClientTokenId", 403, Denied),
        ("AWSOrganizationsNotInUseException", 400, Denied),
        ("RequestLimitExceeded", 503, Throttled),
        ("Client.RequestLimitExceeded", 503, Throttled),
        ("SlowDown", 503, Throttled),
        ("Throttling", 400, Throttled),
        ("TooManyRequestsException", 400, Throttled),
        ("ConcurrentModificationException", 400, Throttled),
        ("SomethingThrottledYet", 400, Throttled),
        ("NoSuchEntity", 404, Absent),
        ("NoSuchBucket", 404, Absent),
        ("InvalidVolume.NotFound", 400, Absent),
        ("CreateAccountStatusNotFoundException", 400, Absent),
        ("EntityAlreadyExists", 409, Conflict),
        ("DuplicateOrganizationalUnitException", 400, Conflict),
        ("InvalidSnapshot.InUse", 400, Conflict),
        ("VolumeInUse", 400, Conflict),
        ("DeleteConflict", 409, Conflict),
        ("PendingVerification", 400, Pending),
        ("OptInRequired", 401, Pending),
        ("FinalizingOrganizationException", 400, Unavailable),
        ("ServiceFailure", 500, Unavailable),
        ("EntityTemporarilyUnmodifiable", 409, Unavailable),
        ("OperationAborted", 409, Unavailable),
        ("InsufficientInstanceCapacity", 500, Unavailable),
        ("ConstraintViolationException", 400, Invalid),
        ("InvalidParameterValue", 400, Invalid),
        ("InstanceLimitExceeded", 400, Invalid),
        ("HeardOfNever", 503, Unavailable),
        ("HeardOfNever", 429, Throttled),
        ("HeardOfNever", 403, Denied),
        ("HeardOfNever", 418, Invalid),
    ],
)
def test_each_code_has_its_kind(code: str, status: int, kind: type[ApiError]) -> None:
    assert error_class(code, status) is kind


def refusal(code: str, message: str = "no", **headers: str) -> ApiError:
    answer = {
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": 400, "RequestId": "req-1", "HTTPHeaders": headers},
    }
    return api_error(CALL, ClientError(answer, "RunInstances"))  # type: ignore[arg-type]


def test_the_message_names_call_code_words_and_request() -> None:
    assert str(refusal("Strange", "not today")) == "ec2 RunInstances as 1 in r: Strange: not today [request req-1]"


def test_a_long_message_is_cut() -> None:
    assert len(str(refusal("UnauthorizedOperation", "x" * 10_000))) < 1_000


def test_the_requested_delay_is_respected() -> None:
    delay = refusal("ThrottlingException", **{"retry-after": "7"}).delay
    assert delay is not None
    assert delay.total_seconds() == 7
    assert refusal("ThrottlingException", **{"retry-after": "soon"}).delay is None


@pytest.mark.parametrize("error", [ConnectionClosedError(endpoint_url="x"), ConnectTimeoutError(endpoint_url="x")])
def test_no_answer_is_unavailable(error: Exception) -> None:
    assert isinstance(api_error(CALL, error), Unavailable)


def test_a_request_that_botocore_rejects_is_invalid() -> None:
    assert isinstance(api_error(CALL, ParamValidationError(report="x")), Invalid)


def test_a_bug_of_ours_stays_one() -> None:
    with pytest.raises(KeyError):
        api_error(CALL, KeyError("x"))
