"""What the command line prints is what was said, to the letter."""

from __future__ import annotations

import pytest

from starters.cli import output

SAID = "iam CreateUser: AccessDenied [request 1a2b-3c] arn:aws:iam::1:key:x [/bold]"


def test_facts_print_brackets_and_colons_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    output.facts([("why", SAID)])
    assert SAID in capsys.readouterr().out


def test_tables_print_brackets_and_colons_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(("why",), [(SAID,)])
    assert SAID in capsys.readouterr().out
