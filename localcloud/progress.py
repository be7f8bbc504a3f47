"""Progress output: a live line on a terminal, plain lines elsewhere.

Plain lines are complete by themselves, and a long build prints one every half minute.
"""

from __future__ import annotations

import time
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

PLAIN_INTERVAL_SECONDS = 30.0


class Narrator(Protocol):
    def say(self, line: str) -> None:
        pass

    def advance(self, what: str, done: int, total: int) -> None:
        pass


class Silence:
    def say(self, line: str) -> None:
        pass

    def advance(self, what: str, done: int, total: int) -> None:
        pass


class ConsoleNarrator:
    def __init__(self, console: Console) -> None:
        self.console = console
        self._live: Progress | None = None
        self._task: TaskID | None = None
        self._what = ""
        self._shown_at = 0.0
        self._reached: tuple[str, int] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_live()

    def say(self, line: str) -> None:
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)

    def advance(self, what: str, done: int, total: int) -> None:
        if self._reached == (what, done):
            return
        self._reached = (what, done)
        if self.console.is_terminal:
            self._move_bar(what, done, total)
            return
        now = time.monotonic()
        if what != self._what or now - self._shown_at >= PLAIN_INTERVAL_SECONDS or done == total:
            self._what, self._shown_at = what, now
            self.say(f"  {what}: {done} of {total}")

    def _move_bar(self, what: str, done: int, total: int) -> None:
        if self._live is None or what != self._what:
            self._stop_live()
            self._what = what
            self._live = Progress(
                TextColumn("  {task.description}"),
                BarColumn(),
                TextColumn("{task.completed:.0f} of {task.total:.0f}"),
                TimeElapsedColumn(),
                console=self.console,
            )
            self._task = self._live.add_task(what, total=total)
            self._live.start()
        assert self._task is not None
        self._live.update(self._task, completed=done, total=total)
        if done == total:
            self._stop_live()

    def _stop_live(self) -> None:
        if self._live is not None:
            self._live.stop()
        self._live, self._task, self._what = None, None, ""
