"""What `perdure why` shows of actions that the server is retrying."""

from __future__ import annotations

from datetime import UTC, datetime

from temporalio.api.failure.v1 import ApplicationFailureInfo, Failure
from temporalio.api.workflow.v1 import PendingActivityInfo

from starters.cli.lifecycle import attempts

NEXT = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)


def pending(name: str, attempt: int, failure: Failure | None = None) -> PendingActivityInfo:
    found = PendingActivityInfo(attempt=attempt, last_failure=failure)
    found.activity_type.name = name
    found.scheduled_time.FromDatetime(NEXT)
    return found


def test_a_retried_action_is_shown_with_its_last_answer() -> None:
    throttled = Failure(message="slow down", application_failure_info=ApplicationFailureInfo(type="Throttled"))
    lines = attempts([pending("aws.initialize_region", 8, throttled)])
    assert [(t.action, t.type, t.message, t.attempts, t.retry_at) for t in lines] == [
        ("aws.initialize_region", "Throttled", "slow down", 7, NEXT)
    ]


def test_an_action_without_a_failure_hinders_nothing() -> None:
    assert attempts([pending("kube.patch", 1), pending("aws.create_account", 2)]) == ()


def test_an_attempt_that_gave_no_answer_counts_as_unavailable() -> None:
    lost = Failure(message="activity Heartbeat timeout")
    assert [t.type for t in attempts([pending("aws.clean_region", 2, lost)])] == ["Unavailable"]
