"""Objects that manage the same entry in 3scale.

Both may have adopted the entry, or one object may be a copy of the other, with the same id annotation. If one of them
is deleted, the entry stays for the other.
"""

from __future__ import annotations

from collections.abc import Iterable

from domain.model import Model
from domain.resource import ObjectMeta


class Holder(Model):
    """Another object of the kind, and the id of its entry in 3scale."""

    metadata: ObjectMeta
    id: int


def holder_of(id_: int, holders: Iterable[Holder]) -> ObjectMeta | None:
    return next((each.metadata for each in holders if each.id == id_ and not each.metadata.deleting), None)
