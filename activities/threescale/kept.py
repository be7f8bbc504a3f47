"""What a worker keeps of 3scale between two passes over a product or backend, so that a change costs only what differs.

    pass ends in step ─► kept under the digest that the object remembers ─► next pass, same digest ─► nothing is read

It is kept in memory, for the objects of the last passes, and the next pass takes it out: a pass that does not end in
step keeps nothing. It counts while the object is in the same tenant and remembers the same digest, which a pass of
another worker changes, and for a product while its backends do too. It does not know changes made in 3scale by hand:
the sweep and `retry` compare, and where a call finds something else than was kept, the pass reads everything again.
"""

from __future__ import annotations

from collections import OrderedDict

from domain.threescale.digests import digests_of
from domain.threescale.observed import Observed
from domain.threescale.providers import ProviderAccount, plain

MOST_KEPT = 1_000


_Standing = tuple[str, tuple[str, str, str] | None]


class Kept:
    """One per worker."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._known: OrderedDict[str, tuple[_Standing, object]] = OrderedDict()

    def recall(self, world: Observed) -> object:
        """What the last pass has left for one that begins; None if that is nothing."""
        meta = world.resource.metadata
        before, known = self._known.pop(meta.uid, (("", None), None))
        return None if before != _standing(world) or meta.deleting else known

    def keep(self, world: Observed) -> None:
        """Keep what a pass knows that has ended in step."""
        standing, known = _standing(world), world.kept()
        digest, _ = standing
        if known is None or not digest:
            return
        self._known[world.resource.metadata.uid] = (standing, known)
        if len(self._known) > self._most:
            self._known.popitem(last=False)


def _standing(world: Observed) -> _Standing:
    """The digest that the object remembers, and the tenant that it is in."""
    place = plain(world.provider.url) if isinstance(world.provider, ProviderAccount) else None
    return digests_of(world.resource).synced or "", place
