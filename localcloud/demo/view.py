"""Displays of lifecycles: a live table on a terminal, otherwise one line per change."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from domain.identity import Key
from localcloud.demo.stage import Row

_GOOD = frozenset({"Ready", "Full", "Settled", "running", "in-service"})
_BAD = frozenset({"Failed", "Error", "Bug"})


class Lines:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()
        self._shown: dict[Key, tuple[str, tuple[str, ...]]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def say(self, line: str) -> None:
        self._print(line)

    def show(self, rows: tuple[Row, ...]) -> None:
        now = datetime.now(UTC)
        for row in rows:
            before, self._shown[row.key] = self._shown.get(row.key), (row.phase, row.waits_for)
            if before == self._shown[row.key] or (before and before[0] == row.phase and not row.waits_for):
                continue
            waits = f"  waits for {', '.join(row.waits_for)}" if row.waits_for else ""
            until = f" until {_until(row.until, now)}" if row.until and row.waits_for else ""
            self._print(f"  {row.key.path:<62} {row.phase}{waits}{until}")
        for key in set(self._shown) - {row.key for row in rows}:
            del self._shown[key]
            self._print(f"  {key.path:<62} gone")

    def present(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        for line in _aligned([columns, *rows]):
            self._console.print(f"          {line}", highlight=False, markup=False, soft_wrap=True)

    def _print(self, line: str) -> None:
        stamped = f"{time.monotonic() - self._began:6.1f} s  {line}"
        self._console.print(stamped, highlight=False, markup=False, soft_wrap=True)


class LiveTable:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()
        self._rows: tuple[Row, ...] = ()
        self._live = Live(console=console, refresh_per_second=4, get_renderable=self.table)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def say(self, line: str) -> None:
        seconds = time.monotonic() - self._began
        self._live.console.print(f"[dim]{seconds:6.1f} s[/]  ", Text(line), highlight=False, sep="")

    def show(self, rows: tuple[Row, ...]) -> None:
        self._rows = rows

    def present(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        header, *lines = _aligned([columns, *rows])
        self._live.console.print(Text(header, style="bold"), highlight=False, soft_wrap=True)
        for line in lines:
            self._live.console.print(Text(line), highlight=False, soft_wrap=True)

    def table(self) -> Table:
        now = datetime.now(UTC)
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        cells = [
            (
                row.key.kind,
                row.key.name,
                row.phase,
                ", ".join(row.waits_for),
                _until(row.until, now) if row.waits_for else "",
                _span(now - row.created) if row.created else "",
            )
            for row in self._rows
        ]
        columns = (("KIND", 12), ("NAME", 21), ("PHASE", 19), ("WAITS FOR", 9), ("UNTIL", 8), ("AGE", 5))
        widths = [max(least, *(len(line[i]) for line in cells), 0) for i, (_, least) in enumerate(columns)]
        # A narrow terminal truncates blockers first: they are the longest, and `perdure why` shows them in full.
        others = sum(widths) - widths[3] + 2 * len(columns)
        widths[3] = max(9, min(widths[3], self._console.width - others))
        for (column, _), width in zip(columns, widths, strict=True):
            table.add_column(column, no_wrap=True, overflow="ellipsis", width=width)
        for line in cells:
            table.add_row(*(phase(cell) if i == 2 else Text(cell) for i, cell in enumerate(line)))
        return table


def phase(word: str) -> Text:
    style = "green" if word in _GOOD else "red" if word in _BAD else "yellow"
    return Text(word, style=style)


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _until(moment: datetime | None, now: datetime) -> str:
    if moment is None:
        return ""
    distance = f"in {_span(moment - now)}" if moment >= now else "now"
    return f"{moment.astimezone():%H:%M:%S} ({distance})"


def _span(duration: timedelta) -> str:
    minutes, seconds = divmod(max(0, int(duration.total_seconds())), 60)
    if minutes >= 48 * 60:
        return f"{minutes // 1440}d{minutes % 1440 // 60}h"
    if minutes >= 60:
        return f"{minutes // 60}h{minutes % 60}m"
    return f"{minutes}m{seconds}s" if minutes else f"{seconds}s"
