"""What a worker remembers of 3scale between two passes over a Product or Backend, so that a change costs few calls.

An entry is valid as long as the object's tenant and digests, and for a Product also its Backends' digests, do not
change. The cache does not notice manual changes in 3scale; the sweep and `perdure retry` find them.
"""

from __future__ import annotations

from collections import OrderedDict

from domain.threescale.digests import digests_of
from domain.threescale.observed import Observed
from domain.threescale.provider_account import ProviderAccount, plain

MOST_KEPT = 1_000


_Standing = tuple[str, tuple[str, str, str] | None]


class ResponseCache:
    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._known: OrderedDict[str, tuple[_Standing, object]] = OrderedDict()

    def recall(self, world: Observed) -> object:
        """Remove and return what the last pass stored; None if nothing valid is stored."""
        meta = world.resource.metadata
        before, known = self._known.pop(meta.uid, (("", None), None))
        return None if before != _standing(world) or meta.deleting else known

    def keep(self, world: Observed) -> None:
        standing, known = _standing(world), world.remembered()
        digest, _ = standing
        if known is None or not digest:
            return
        self._known[world.resource.metadata.uid] = (standing, known)
        if len(self._known) > self._most:
            self._known.popitem(last=False)


def _standing(world: Observed) -> _Standing:
    place = plain(world.provider.url) if isinstance(world.provider, ProviderAccount) else None
    return digests_of(world.resource).synced or "", place
