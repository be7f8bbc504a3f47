"""Tenant addresses that passes have read from Secrets in the last ten seconds.

With these addresses a pass finds out, without reading Secrets, which objects with the same name or id in 3scale share a
tenant.
"""

from __future__ import annotations

import time
from collections.abc import Callable

REMEMBERED_SECONDS = 10.0
MOST_REMEMBERED = 10_000

Place = tuple[str, str]  # namespace and name of the Secret that objects refer to; no name: the default tenant


class Homes:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._found: dict[Place, tuple[float, str]] = {}

    def note(self, place: Place, url: str) -> None:
        """Store the address. An empty address is not stored, because it may be set at any moment."""
        if not url:
            self._found.pop(place, None)
            return
        if len(self._found) >= MOST_REMEMBERED:
            self._found.clear()
        self._found[place] = (self._clock(), url)

    def get(self, place: Place) -> str:
        """The tenant's address; empty if it was not stored in the last ten seconds."""
        read, url = self._found.get(place, (float("-inf"), ""))
        return url if self._clock() - read < REMEMBERED_SECONDS else ""
