"""Every error of an activity can be sent to the server: its chain of causes ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio.api.failure.v1 import Failure
from temporalio.converter import DefaultFailureConverter, DefaultPayloadConverter
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from activities.attempt import SETTLING
from activities.aws.iam_identities import settling
from engine.errors import ApiError, Denied, Throttled, Unavailable
from workers.activity_interceptor import Boundary

OLD = datetime(2026, 1, 1, tzinfo=UTC)


def environment(age: timedelta) -> ActivityEnvironment:
    found = ActivityEnvironment()
    fields = {"scheduled_time": OLD, "started_time": OLD + age}
    found.info = type(found.info)(**{**vars(found.info), **fields})
    return found


def causes(error: BaseException | None) -> list[BaseException]:
    chain: list[BaseException] = []
    while error is not None:
        assert error not in chain, f"{error!r} is among its own causes"
        chain.append(error)
        error = error.__cause__
    return chain


def refuse(code: str) -> None:
    with settling():
        raise Denied("iam CreateUser: no", code=code) from ValueError("what botocore said")


@pytest.mark.parametrize(
    ("age", "code", "becomes"),
    [
        (timedelta(0), "AccessDenied", Unavailable),
        (SETTLING, "AccessDenied", Denied),
        (timedelta(0), "OptInRequired", Denied),
    ],
)
def test_a_denial_of_a_new_object_settles_and_of_an_old_one_remains(
    age: timedelta, code: str, becomes: type[ApiError]
) -> None:
    with pytest.raises(ApiError) as caught:
        environment(age).run(refuse, code)
    assert type(caught.value) is becomes
    assert [type(error) for error in causes(caught.value)] == [becomes, ValueError]


class Failing(ActivityInboundInterceptor):
    def __init__(self, error: Exception) -> None:
        self.error = error

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        raise self.error


async def error_at_the_edge(error: Exception) -> ApplicationError:
    """What the edge of an activity makes of an error."""
    edge = Boundary().intercept_activity(Failing(error))
    with pytest.raises(ApplicationError) as caught:
        await ActivityEnvironment().run(
            edge.execute_activity, ExecuteActivityInput(fn=refuse, args=[], executor=None, headers={})
        )
    causes(caught.value)
    return caught.value


async def test_the_edge_never_makes_an_error_its_own_cause() -> None:
    error = ApplicationError("reported already")
    assert await error_at_the_edge(error) is error


async def test_a_bug_is_reported_with_its_cause() -> None:
    error = KeyError("ours")
    assert (await error_at_the_edge(error)).__cause__ is error


async def test_an_answer_fits_into_what_the_server_keeps_of_an_attempt() -> None:
    """Otherwise `perdure why` and the web UI show "Failure exceeds size limit" in its place."""

    def deep(depth: int) -> None:
        if depth:
            deep(depth - 1)
        try:
            raise ValueError("what botocore said " * 50)
        except ValueError as cause:
            raise Throttled(
                "ec2 RunInstances: RequestLimitExceeded: " + "x" * 500, code="RequestLimitExceeded"
            ) from cause

    try:
        deep(30)
    except Throttled as error:
        found = await error_at_the_edge(error)
    failure = Failure()
    DefaultFailureConverter().to_failure(found, DefaultPayloadConverter(), failure)
    assert failure.message.startswith("ec2 RunInstances")
    assert failure.ByteSize() < 4096
