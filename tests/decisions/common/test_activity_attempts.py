"""What an activity says and learns between its steps."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from temporalio.exceptions import CancelledError
from temporalio.testing import ActivityEnvironment

from activities import attempt


def test_a_quick_attempt_sends_no_heartbeat() -> None:
    environment, beats = ActivityEnvironment(), list[object]()
    environment.on_heartbeat = lambda *details: beats.append(details)
    environment.run(_steps, 5)
    assert not beats


def test_a_longer_attempt_sends_one_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    environment, beats = ActivityEnvironment(), list[object]()
    environment.on_heartbeat = lambda *details: beats.append(details)
    seconds = iter([0, 0.9, 1.0, 1.0, 1.5, 1.9, 2.0, 2.0])
    monkeypatch.setattr(attempt, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    environment.run(_steps, 5)
    assert len(beats) == 2


def test_a_cancelled_attempt_stops_at_its_next_step() -> None:
    environment = ActivityEnvironment()
    environment.cancel()
    with pytest.raises(CancelledError):
        environment.run(_steps, 1)


def _steps(count: int) -> None:
    attempt.begin(None)
    for _ in range(count):
        attempt.checkpoint()
