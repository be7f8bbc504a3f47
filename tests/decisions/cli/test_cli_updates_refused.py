"""What `perdure retry` and `plan` say of an update that fails: the cause, in its own words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest
from memory_kube import MemoryKube
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ActivityError, ApplicationError, FailureError, RetryState, TimeoutError, TimeoutType

from domain.accounts import ACCOUNT
from domain.control_annotations import RETRY
from domain.identity import Key
from domain.pauses import CONFIG_MAP_NAME, Pause
from domain.why import Blocker
from domain.writes import LeverPatch
from engine.kube import CONFIG_MAP
from engine.kube.json import text
from engine.settings import Settings
from starters.cli import lifecycle
from starters.cli.output import CommandError
from starters.cli.session import Session

KEY = Key(kind=ACCOUNT.name, namespace="ns", name="one", uid="one-1")
OBSERVING = "patch Account ns/one: not sent, Perdure runs in observe mode"


class Temporal:
    """One whose lifecycles refuse every update for this reason."""

    def __init__(self, cause: BaseException) -> None:
        self._cause = cause

    async def execute_update_with_start_workflow(self, *_: object, **__: object) -> None:
        raise WorkflowUpdateFailedError(self._cause)


def timed_out(cause: BaseException | None = None) -> FailureError:
    failure = TimeoutError(
        "activity ScheduleToClose timeout", type=TimeoutType.SCHEDULE_TO_CLOSE, last_heartbeat_details=[]
    )
    failure.__cause__ = cause
    return failure


def of_activity(cause: BaseException) -> ActivityError:
    failure = ActivityError(
        "Activity task failed",
        scheduled_event_id=1,
        started_event_id=2,
        identity="",
        activity_type="kube.patch",
        activity_id="1",
        retry_state=RetryState.NON_RETRYABLE_FAILURE,
    )
    failure.__cause__ = cause
    return failure


def session(temporal: object, kube: object = None) -> Session:
    return Session(Settings(), cast("Any", kube), temporal=cast("Any", temporal))


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        (
            ApplicationError(f"{KEY.path} is Ready (all done): there is nothing to retry"),
            "plan refused: Account/ns/one",
        ),
        (of_activity(ApplicationError(OBSERVING, type="Denied")), f"plan Account/ns/one: {OBSERVING}"),
        (of_activity(timed_out(ApplicationError("no answer"))), "plan Account/ns/one: no answer"),
        (of_activity(timed_out()), "plan Account/ns/one: activity ScheduleToClose timeout"),
    ],
)
async def test_the_cause_of_a_failed_update_is_reported(cause: BaseException, text: str) -> None:
    with pytest.raises(CommandError) as refused:
        await lifecycle.plan(session(Temporal(cause)), KEY)
    assert refused.value.message.startswith(text)


async def test_an_update_that_times_out_asks_whether_a_worker_is_running() -> None:
    with pytest.raises(CommandError) as refused:
        await lifecycle.plan(session(Temporal(of_activity(timed_out()))), KEY)
    assert "is a worker running?" in refused.value.advice


def test_a_lever_is_refused_before_the_command_gives_up() -> None:
    assert LeverPatch.schedule_to_close is not None
    assert LeverPatch.schedule_to_close < lifecycle.ANSWER


@pytest.mark.parametrize("paused", [True, False])
async def test_an_update_that_is_being_retried_is_not_retried_under_a_pause(
    monkeypatch: pytest.MonkeyPatch, *, paused: bool
) -> None:
    kube = MemoryKube()
    data: Mapping[str, str] = {"accounts": Pause(by="mia", reason="a leak").written()} if paused else {}
    await kube.create(
        CONFIG_MAP, {"metadata": {"name": CONFIG_MAP_NAME}, "data": data}, Settings().watch_lease_namespace
    )
    await kube.create(ACCOUNT, {"metadata": {"name": "one"}}, "ns")

    async def tried(*_: object) -> tuple[Blocker, ...]:
        blocker = {"action": "aws.tag_account", "type": "Throttled", "message": "slow down", "attempts": 3}
        return (Blocker.model_validate(blocker | {"retry_at": "2026-03-01T12:00:00Z"}),)

    async def is_open(*_: object) -> bool:
        return True

    async def wake(*_: object) -> None:
        """No worker."""

    for name, found in (("attempts_of", tried), ("is_open", is_open), ("wake", wake)):
        monkeypatch.setattr(lifecycle, name, found)
    if paused:
        with pytest.raises(CommandError, match="not sent, accounts is paused by mia: a leak"):
            await lifecycle.retry(session(None, kube), KEY, "mia")
    else:
        assert "aws.tag_account" in await lifecycle.retry(session(None, kube), KEY, "mia")
    token = text(await kube.get(ACCOUNT, "ns", "one"), "metadata", "annotations", RETRY)
    assert bool(token) is not paused
