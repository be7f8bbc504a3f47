"""What a worker keeps of 3scale between two passes over a product or backend, so that a change costs only what differs.

    pass ends in step ─► kept under the digest that the object remembers ─► next pass, same digest ─► nothing is read

It is kept in memory, for the objects of the last passes, and the next pass takes it out: a pass that does not end in
step keeps nothing. It counts while the object is in the same tenant and remembers the same digest, which a pass of
another worker changes, and for a product while its backends do too. It does not know changes made in 3scale by hand:
the sweep and `retry` compare, and where a call finds something else than was kept, the pass reads everything again.
"""

from __future__ import annotations

from collections import OrderedDict

from activities.threescale.subjects import Subject
from domain.resource import CustomResource
from domain.threescale.digests import digests_of
from domain.threescale.providers import ProviderAccount, plain

MOST_KEPT = 1_000


_Standing = tuple[str, tuple[str, str, str] | None]


class Kept:
    """One per worker."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._known: OrderedDict[str, tuple[_Standing, object]] = OrderedDict()

    def recall(self, subject: Subject[CustomResource]) -> bool:
        """Give a pass that begins what the last one has left; whether there was anything."""
        meta = subject.resource.metadata
        before, known = self._known.pop(meta.uid, (("", None), None))
        if known is None or before != _standing(subject) or meta.deleting:
            return False
        subject.recall(known)
        return True

    def keep(self, subject: Subject[CustomResource]) -> None:
        """Keep what a pass knows that has ended in step."""
        standing, known = _standing(subject), subject.known()
        digest, _ = standing
        if known is None or not digest:
            return
        self._known[subject.resource.metadata.uid] = (standing, known)
        if len(self._known) > self._most:
            self._known.popitem(last=False)


def _standing(subject: Subject[CustomResource]) -> _Standing:
    """The digest that the object remembers, and the tenant that it is in."""
    provider = subject.provider
    place = plain(provider.url) if isinstance(provider, ProviderAccount) else None
    return digests_of(subject.resource).synced or "", place
