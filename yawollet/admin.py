"""Envoy's admin interface: readiness, active versions, and statistics.

https://www.envoyproxy.io/docs/envoy/latest/operations/admin
"""

from __future__ import annotations

import aiohttp
from yarl import URL

from yawollet.options import Address

CLUSTERS_VERSION = "cluster_manager.cds.version_text"
LISTENERS_VERSION = "listener_manager.lds.version_text"
_TIMEOUT = aiohttp.ClientTimeout(total=3)
_NO_ANSWER = (aiohttp.ClientError, TimeoutError, OSError)


class EnvoyAdmin:
    """Queries of Envoy's admin interface; none raises if Envoy does not answer."""

    def __init__(self, address: Address) -> None:
        self._base = URL(f"http://{address}")
        self._session = aiohttp.ClientSession(timeout=_TIMEOUT)

    async def close(self) -> None:
        await self._session.close()

    async def fault(self) -> str:
        """Why Envoy is not ready; empty if it is ready."""
        try:
            async with self._session.get(self._base / "ready") as response:
                body = (await response.text(errors="replace")).strip()
        except _NO_ANSWER as error:
            return f"envoy gives no answer: {type(error).__name__}: {error}"
        return "" if response.status == 200 else f"envoy response with {response.status}: {body}"

    async def versions(self) -> tuple[str, str] | None:
        """The active versions of clusters and listeners; None if Envoy does not answer."""
        found = await self.statistics("version_text")
        if CLUSTERS_VERSION not in found or LISTENERS_VERSION not in found:
            return None
        return found[CLUSTERS_VERSION], found[LISTENERS_VERSION]

    async def statistics(self, pattern: str) -> dict[str, str]:
        """Envoy's statistics whose names match a regular expression; empty if Envoy does not answer."""
        try:
            async with self._session.get((self._base / "stats").with_query(filter=pattern)) as response:
                text = await response.text(errors="replace")
        except _NO_ANSWER:
            return {}
        lines = (line.partition(": ") for line in text.splitlines())
        return {name: value.strip('"') for name, separator, value in lines if separator}
