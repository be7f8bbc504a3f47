"""Classes whose methods are activities."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from temporalio import activity


class Activities:
    """Activities that share what they are made from."""

    def all(self) -> Sequence[Callable[..., object]]:
        """Each of its activities, for the worker."""
        own = (name for name, each in vars(type(self)).items() if activity._Definition.from_callable(each))
        return [getattr(self, name) for name in own]
