from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from temporalio import activity


class Activities:
    _names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._names = tuple(name for name, each in vars(cls).items() if activity._Definition.from_callable(each))

    def all(self) -> Sequence[Callable[..., object]]:
        return [getattr(self, name) for name in self._names]
