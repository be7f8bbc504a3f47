"""Follows the pauses of areas, by one small watch on one ConfigMap.

A process that may not read that ConfigMap is not ready, says why, and pauses nothing. While the API server does not
answer, the last pauses stay in force.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from domain.built_in_kinds import CONFIG_MAP
from domain.pauses import CONFIG_MAP_NAME, Pauses, pauses_in
from engine.health import Health
from engine.kube.api import KubeApi
from engine.kube.informer_cache import Mirror, Store
from engine.kube.json import JsonObject
from engine.kube.reflector import Followed
from engine.pauses import set_pauses
from engine.settings import Settings

PATIENCE = 10.0

# Called at each change with the former pauses, the present ones, and the ConfigMap.
OnChange = Callable[[Pauses, Pauses, JsonObject | None], None]

log = logging.getLogger(__name__)


@asynccontextmanager
async def pauses_followed(
    kube: KubeApi, settings: Settings, health: Health, changed: OnChange | None = None
) -> AsyncIterator[None]:
    """Wait for the first list, at most `PATIENCE`; keep `engine.pauses` up to date while the block runs."""
    followed = Followed(CONFIG_MAP, settings.watch_lease_namespace, field_selector=f"metadata.name={CONFIG_MAP_NAME}")
    async with Store(kube) as store:
        mirror = store.follow(followed)
        known = _Known(changed)
        mirror.listen(known.learn)
        await _first_list(mirror, known)
        part = f"pauses in ConfigMap {settings.watch_lease_namespace}/{CONFIG_MAP_NAME}"
        health.add(
            part,
            unready=lambda: () if mirror.listed else (mirror.trouble or "not read yet",),
            notes=lambda: [pause.described(name) for name, pause in known.pauses.items()],
        )
        try:
            yield
        finally:
            health.remove(part)


class _Known:
    def __init__(self, changed: OnChange | None) -> None:
        self.pauses: Pauses = {}
        self._changed = changed

    def learn(self, before: JsonObject | None, after: JsonObject | None) -> None:
        earlier, self.pauses = self.pauses, pauses_in(after)
        set_pauses(self.pauses)
        for name in sorted(earlier.keys() - self.pauses.keys()):
            log.warning("the pause of %s has ended", name)
        for name in sorted(self.pauses.keys() - earlier.keys()):
            log.warning("%s", self.pauses[name].described(name))
        if self._changed is not None:
            self._changed(earlier, self.pauses, after)


async def _first_list(mirror: Mirror, known: _Known) -> None:
    try:
        async with asyncio.timeout(PATIENCE):
            await mirror.settled()
    except TimeoutError:
        log.error("the pauses of areas cannot be read; pauses that were read before stay in force: %s", mirror.trouble)
    else:
        # Only after the list: in `perdure run`, an earlier call would clear the pauses that another part has read.
        set_pauses(known.pauses)
