"""Whose workflow does the work of an object: its own, or that of another which carries it (see `kinds.py`)."""

from __future__ import annotations

from collections.abc import Iterable

from domain.identity import Key
from starters.watch.index import Index
from starters.watch.kinds import Watched
from starters.watch.projection import Projection

# A handle is carried by its claim, a claim by the binder: no more is known to happen, and a ring must end.
LONGEST_CHAIN = 4


class Carriers:
    """The carriers of all objects, as their kinds say."""

    def __init__(self, watched: Iterable[Watched], index: Index) -> None:
        self._entries = {entry.kind.name: entry for entry in watched if entry.has_workflow}
        self._index = index

    def of(self, known: Projection) -> Key:
        """The key of whose workflow does the work of an object."""
        for _ in range(LONGEST_CHAIN):
            entry = self._entries.get(known.key.kind)
            if entry is None:
                break
            carrier = entry.carrier(known, self._index)
            following = self._known(carrier)
            if carrier == known.key or following is None:
                return carrier
            known = following
        return known.key

    def of_all(self, keys: Iterable[Key]) -> dict[Key, None]:
        """The carriers of these objects, each once, in their order; who is not known carries itself."""
        known = ((key, self._known(key)) for key in keys)
        return dict.fromkeys(self.of(one) if one is not None else key for key, one in known)

    def carried(self, key: Key) -> bool:
        """Whether another's workflow does the work of an object that exists."""
        known = self._known(key)
        return known is not None and self.of(known) != key

    def _known(self, key: Key) -> Projection | None:
        entry = self._entries.get(key.kind)
        known = self._index.get(entry.name, key.namespace, key.name) if entry else None
        return known if known is not None and known.key == key else None
