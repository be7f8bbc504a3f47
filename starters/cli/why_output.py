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


def print_why(reference: Target, answer: Why, form: Format) -> None:
    if output.printed(answer, form):
        return
    now = output.utc_now()
    pairs = _standing(reference, answer, now)
    pairs += _several("running", answer.running)
    pairs += _blocked(answer, now)
    if not answer.running:
        pairs += _several("next", answer.planned)
    output.facts(pairs)


def print_plan(reference: Target, answer: Why, form: Format) -> None:
    if output.printed(answer, form):
        return
    now = output.utc_now()
    pairs = _standing(reference, answer, now)
    pairs += _several("would do", answer.planned) or [("would do", "nothing")]
    pairs += _several("running", answer.running)
    pairs += _blocked(answer, now)
    output.facts(pairs)


def _standing(reference: Target, answer: Why, now: datetime) -> list[tuple[str, str | Text]]:
    return [
        ("object", str(reference)),
        ("lifecycle", "" if answer.object.startswith(f"{reference.kind.name}/") else answer.object),
        ("phase", output.phase(answer.phase).append(f" ({answer.outcome})" if answer.outcome else "", style="")),
        ("why", answer.why),
        ("held", Text(answer.hold, style="yellow")),
        ("waits for", ", ".join(answer.waits_for)),
        ("until", output.until(answer.deadline, now)),
        ("then", answer.at_deadline if answer.deadline else ""),
        ("owner", answer.owner),
    ]


def _several(name: str, lines: Iterable[str]) -> list[tuple[str, str | Text]]:
    return [(name if index == 0 else "", line) for index, line in enumerate(lines)]


def _blocked(answer: Why, now: datetime) -> list[tuple[str, str | Text]]:
    pending = [item for item in answer.hindrances if item.type == ErrorType.PENDING]
    refused = [item for item in answer.hindrances if item.type != ErrorType.PENDING]
    pairs = _several("in progress", (_progress(item, now) for item in pending))
    return pairs + _several("refused", (_refused(item, now) for item in refused))


def _progress(item: Blocker, now: datetime) -> str:
    return f"{item.message}; next check {output.until(item.retry_at, now)}"


def _refused(item: Blocker, now: datetime) -> str:
    times = "once" if item.attempts == 1 else f"{item.attempts} times"
    return f"{item.action} ({item.type}, {times}): {item.message}; next attempt {output.until(item.retry_at, now)}"
