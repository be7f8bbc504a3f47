"""Classes whose methods are activities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from temporalio import activity


class Activities:
    """Activities that share what they are made from."""

    _names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        """Find its activities once: a pass asks for them each time."""
        super().__init_subclass__()
        cls._names = tuple(name for name, each in vars(cls).items() if activity._Definition.from_callable(each))

    def all(self) -> Sequence[Callable[..., object]]:
        """Each of its activities, for the worker."""
        return [getattr(self, name) for name in self._names]
