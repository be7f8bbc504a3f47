"""What a command prints: tables and coloured words on a terminal, plain lines in a pipe, documents for programs.

Documents (`-o json`, `-o yaml`) go alone to standard output; messages to people go to standard error.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated

import typer
import yaml
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from domain.model import Model

# A pipe has no width, and rows must not be wrapped there, so this is longer than any message.
_PIPE_WIDTH = 100_000

_GOOD = frozenset({"ready", "valid", "settled"})
_BAD = frozenset({"failed", "error", "bug", "invalid", "givenup"})


class Format(StrEnum):
    TEXT = "text"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


FormatOption = Annotated[
    Format, typer.Option("--output", "-o", help="`json` or `yaml` for programs; `wide` for more columns.")
]


class CommandError(Exception):
    """A failure with exit code 1. The message names the object, what was tried and what came back; the advice says what
    to do.
    """

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice


def console() -> Console:
    """A console without markup, which would swallow `[request 1a2b]` and `:key:`."""
    found = Console(highlight=False, markup=False, emoji=False)
    return found if found.is_terminal else Console(highlight=False, markup=False, emoji=False, width=_PIPE_WIDTH)


def show(drawn: RenderableType) -> None:
    """Print a table or text. In a pipe, rows are neither wrapped nor padded."""
    found = console()
    if found.is_terminal:
        found.print(drawn)
        return
    with found.capture() as captured:
        found.print(drawn)
    for line in captured.get().removesuffix("\n").split("\n"):
        say(line.rstrip())


def say(line: str) -> None:
    typer.echo(line)


def warn(line: str) -> None:
    typer.echo(line, err=True)


def printed(value: Model | Sequence[Model], form: Format) -> bool:
    """Print the value if the format is JSON or YAML, and return whether it is."""
    if form is Format.JSON:
        typer.echo(json.dumps(_plain(value), indent=2))
    elif form is Format.YAML:
        typer.echo(yaml.safe_dump(_plain(value), sort_keys=False, allow_unicode=True), nl=False)
    return form in (Format.JSON, Format.YAML)


def _plain(value: Model | Sequence[Model]) -> object:
    if isinstance(value, Model):
        return value.model_dump(mode="json")
    return [model.model_dump(mode="json") for model in value]


def table(columns: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> None:
    found = grid(*columns)
    for row in rows:
        found.add_row(*row)
    show(found)


def grid(*columns: str) -> Table:
    found = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        found.add_column(column.upper(), overflow="fold")
    return found


def facts(pairs: Iterable[tuple[str, str | Text]]) -> None:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold")
    grid.add_column(overflow="fold")
    for name, value in pairs:
        if str(value):
            grid.add_row(name, value)
    show(grid)


def phase(word: str) -> Text:
    style = "green" if word.lower() in _GOOD else "red" if word.lower() in _BAD else ""
    return Text(word or "-", style=style)


def span(duration: timedelta) -> str:
    seconds = max(0, int(duration.total_seconds()))
    parts = ((seconds // 86400, "d"), (seconds // 3600 % 24, "h"), (seconds // 60 % 60, "m"), (seconds % 60, "s"))
    first = next((index for index, (count, _) in enumerate(parts) if count), len(parts) - 1)
    shown = [f"{count}{unit}" for count, unit in parts[first : first + 2] if count]
    return "".join(shown) or "0s"


def until(moment: datetime | None, now: datetime) -> str:
    if moment is None:
        return ""
    distance = f"in {span(moment - now)}" if moment >= now else f"{span(now - moment)} ago"
    try:
        local, today = moment.astimezone(), now.astimezone()
    except OverflowError:  # the calendar's last day, in a time zone where the next day has begun
        local, today = moment, now
    shown = local.strftime("%H:%M:%S" if local.date() == today.date() else "%Y-%m-%d %H:%M")
    return f"{shown} ({distance})"


def age(moment: datetime | None, now: datetime) -> str:
    return span(now - moment) if moment else ""


def utc_now() -> datetime:
    return datetime.now(UTC)
