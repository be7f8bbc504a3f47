"""Objects that manage the same entry in 3scale, because both adopted it, or one was copied with its annotation.

If one is deleted, the entry is left to the other.
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
