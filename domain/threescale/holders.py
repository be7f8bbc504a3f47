"""Which objects manage what is in 3scale, where several claim the same id.

Two objects of one name and tenant may have the same id, because both were adopted with it or one was copied with its
annotation. The one that is deleted leaves it to the other.
"""

from __future__ import annotations

from collections.abc import Iterable

from domain.model import Model
from domain.resource import ObjectMeta


class Holder(Model):
    """Another object, and the id of what it has in the tenant."""

    metadata: ObjectMeta
    id: int


def holder_of(id_: int, holders: Iterable[Holder]) -> ObjectMeta | None:
    """One that has it too, and stays."""
    return next((each.metadata for each in holders if each.id == id_ and not each.metadata.deleting), None)
