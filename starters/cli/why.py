"""The answers of `perdure why` and `perdure plan`, as text for a person or a document for a program."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from rich.text import Text

from domain.refusal import ErrorType
from domain.why import Blocker, Why
from starters.cli import output
from starters.cli.object_reference import Target
from starters.cli.output import Format

__all__ = ["Why", "print_plan", "print_why"]


def print_why(asked: Target, said: Why, form: Format) -> None:
    if output.printed(said, form):
        return
    now = output.utc_now()
    pairs = _standing(asked, said, now)
    pairs += _several("running", said.running)
    pairs += _blocked(said, now)
    if not said.running:
        pairs += _several("next", said.planned)
    output.facts(pairs)


def print_plan(asked: Target, said: Why, form: Format) -> None:
    if output.printed(said, form):
        return
    now = output.utc_now()
    pairs = _standing(asked, said, now)
    pairs += _several("would do", said.planned) or [("would do", "nothing")]
    pairs += _several("running", said.running)
    pairs += _blocked(said, now)
    output.facts(pairs)


def _standing(asked: Target, said: Why, now: datetime) -> list[tuple[str, str | Text]]:
    return [
        ("object", str(asked)),
        ("lifecycle", "" if said.object.startswith(f"{asked.kind.name}/") else said.object),
        ("phase", output.phase(said.phase).append(f" ({said.outcome})" if said.outcome else "", style="")),
        ("why", said.why),
        ("held", Text(said.hold, style="yellow")),
        ("waits for", ", ".join(said.waits_for)),
        ("until", output.until(said.deadline, now)),
        ("then", said.at_deadline if said.deadline else ""),
        ("owner", said.owner),
    ]


def _several(name: str, lines: Iterable[str]) -> list[tuple[str, str | Text]]:
    return [(name if index == 0 else "", line) for index, line in enumerate(lines)]


def _blocked(said: Why, now: datetime) -> list[tuple[str, str | Text]]:
    """What blocks it, and when that is checked (operations in a cloud) or retried (refusals)."""
    looked = [item for item in said.hindrances if item.type == ErrorType.PENDING]
    refused = [item for item in said.hindrances if item.type != ErrorType.PENDING]
    pairs = _several("in progress", (_progress(item, now) for item in looked))
    return pairs + _several("refused", (_refused(item, now) for item in refused))


def _progress(item: Blocker, now: datetime) -> str:
    return f"{item.message}; next check {output.until(item.retry_at, now)}"


def _refused(item: Blocker, now: datetime) -> str:
    times = "once" if item.attempts == 1 else f"{item.attempts} times"
    return f"{item.action} ({item.type}, {times}): {item.message}; next attempt {output.until(item.retry_at, now)}"
