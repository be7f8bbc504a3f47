"""Faults of specs, in the replaced operator's words."""

from __future__ import annotations

from collections.abc import Iterable

from domain.model import Model


class Fault(Model):
    path: str
    value: str | None
    """The faulty value; None if a required value is missing."""
    detail: str

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.path}: Required value: {self.detail}"
        return f'{self.path}: Invalid value: "{self.value}": {self.detail}'


def message_of(faults: Iterable[Fault]) -> str:
    texts = [str(fault) for fault in faults]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
