"""The demo's table shows every column on a narrow terminal."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from domain.identity import Key
from localcloud.demo.stage import Row
from localcloud.demo.view import LiveTable

CASE = "SupportCase/case-123456789012-muen-2026-7562bedc474ff0a1"


def lines(width: int, *rows: Row) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    table = LiveTable(console)
    table.show(rows)
    console.print(table.table())
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def row(**facts: object) -> Row:
    born = datetime.now(UTC) - timedelta(seconds=12)
    key = Key(kind="Account", namespace="aws-account-operator", name="osd-creds-mgmt-rc2zfp", uid="1")
    return Row(
        **{"key": key, "phase": "PendingVerification", "waits_for": (CASE,), "created": born, "until": None} | facts
    )  # type: ignore[arg-type]


@pytest.mark.parametrize("width", [100, 118])
def test_a_long_wait_is_cut_before_any_other_column(width: int) -> None:
    heading, line = lines(width, row())
    assert heading.split() == ["KIND", "NAME", "PHASE", "WAITS", "FOR", "UNTIL", "AGE"]
    assert "osd-creds-mgmt-rc2zfp" in line
    assert "SupportCase" in line
    assert "…" in line
    assert line.rstrip().endswith("12s")


def test_a_wide_terminal_shows_it_in_full() -> None:
    assert CASE in lines(160, row())[1]


def test_a_table_without_rows_has_its_headings() -> None:
    assert lines(100)[0].startswith("KIND")
