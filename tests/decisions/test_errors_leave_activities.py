"""Every error of an activity can be told to the server: its chain of causes ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

from activities.aws.attempt import SETTLING
from activities.aws.identities import _settling
from engine.errors import ApiError, Denied, Unavailable
from workers.boundary import Boundary

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
    with _settling():
        raise Denied("iam CreateUser: no", code=code) from ValueError("what botocore said")


@pytest.mark.parametrize(
    ("age", "code", "becomes"),
    [
        (timedelta(0), "AccessDenied", Unavailable),
        (SETTLING, "AccessDenied", Denied),
        (timedelta(0), "OptInRequired", Denied),
    ],
)
def test_a_denial_of_something_new_settles_and_an_old_one_stands(
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


@pytest.mark.parametrize("error", [ApplicationError("told already"), Denied("no"), KeyError("ours")])
async def test_the_edge_never_makes_an_error_its_own_cause(error: Exception) -> None:
    edge = Boundary().intercept_activity(Failing(error))
    with pytest.raises(ApplicationError) as caught:
        await ActivityEnvironment().run(edge.execute_activity, cast("ExecuteActivityInput", None))
    assert causes(caught.value)[-1] is error
