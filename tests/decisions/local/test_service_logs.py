"""What `perdure up` quotes from the log of a service that is not ready."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from localcloud.supervisor import last_message


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("first\nsecond\n\n", "second"),
        ('{"level": "INFO", "message": "Temporal does not answer"}\n', "Temporal does not answer"),
        ('{"level": "INFO"}\n', '{"level": "INFO"}'),
        ("7\n", "7"),
        ("", ""),
    ],
)
def test_the_last_message_is_read_from_text_and_from_json(tmp_path: Path, written: str, message: str) -> None:
    log = tmp_path / "worker.log"
    log.write_text(written)
    assert last_message(log, datetime.now(UTC) - timedelta(minutes=1)) == message


def test_the_log_of_an_earlier_start_is_not_quoted(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    log.write_text("Beginning worker shutdown\n")
    assert last_message(log, datetime.now(UTC) + timedelta(seconds=1)) == ""


def test_a_service_without_a_log_has_no_last_message(tmp_path: Path) -> None:
    assert last_message(tmp_path / "worker.log", datetime.now(UTC)) == ""
