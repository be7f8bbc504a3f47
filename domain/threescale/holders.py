"""Which objects have what is in 3scale, where several say to have one and the same.

Two objects of one name of a tenant may have one thing: both were taken over with its id, or one was copied with its
annotation. It is the one's as much as the other's: who goes leaves it to who stays.
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
