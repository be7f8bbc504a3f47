"""A world that remembers the names of what was done, and actions of a name, for tests of the runner and its drivers."""

from __future__ import annotations

from typing import ClassVar

from domain.decision import World
from domain.identity import Key
from domain.model import Model
from domain.writes import Delete

KEY = Key(kind="Greeting", namespace="prod", name="hello", uid="u-1")


class Facts(Model):
    done: tuple[str, ...] = ()


class Hello(World):
    known: Facts = Facts()


class Do(Delete):
    """Names no activity of its own: each that is named has to have a worker."""

    observed_after: ClassVar[bool] = False

    key: Key = KEY
    name: str

    @property
    def slot(self) -> str:
        return self.name

    @property
    def summary(self) -> str:
        return f"do {self.name}"

    def fold(self, world: Hello, result: Model | None) -> Hello:  # type: ignore[override]
        return world.learn(done=(*world.known.done, self.name))
