"""Objects that manage the same entry in 3scale: both adopted it, or one is a copy with the other's id annotation.

If one object is deleted, the other one keeps the entry.
"""

from __future__ import annotations

from collections.abc import Iterable

from domain.model import Model
from domain.resource import ObjectMeta


class Holder(Model):
    """Another object that may have the same entry, and that entry's id."""

    metadata: ObjectMeta
    id: int


def holder_of(id_: int, holders: Iterable[Holder]) -> ObjectMeta | None:
    return next((each.metadata for each in holders if each.id == id_ and not each.metadata.deleting), None)
