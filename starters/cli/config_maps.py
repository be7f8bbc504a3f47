"""ConfigMaps in Perdure's namespace, into which commands write pauses and the findings of audits."""

from __future__ import annotations

from collections.abc import Mapping

from engine.errors import Absent, Conflict, unless_absent
from engine.kube import CONFIG_MAP, NAMESPACE
from engine.kube.json import JsonObject
from starters.cli.output import CommandError
from starters.cli.session import FIELD_MANAGER, ClusterSession

_TIMES = 3


async def read_config_map(session: ClusterSession, name: str) -> JsonObject | None:
    return await unless_absent(session.kube.get(CONFIG_MAP, _namespace(session), name))


async def write_config_map(
    session: ClusterSession, name: str, data: Mapping[str, str | None], annotations: Mapping[str, str] | None = None
) -> None:
    """Write the entries, and create the ConfigMap if it is missing. A value of None removes the entry.

    Raises CommandError if three attempts did not suffice, ApiError if the cluster refuses.
    """
    namespace, patch = _namespace(session), {"data": dict(data), "metadata": {"annotations": dict(annotations or {})}}
    for _ in range(_TIMES):
        try:
            await session.kube.patch(CONFIG_MAP, namespace, name, patch, field_manager=FIELD_MANAGER)
            return
        except Absent:
            await _make(session, namespace, name)
    raise CommandError(f"ConfigMap {namespace}/{name} cannot be written", "another client keeps deleting it: try again")


async def _make(session: ClusterSession, namespace: str, name: str) -> None:
    try:
        await session.kube.create(CONFIG_MAP, {"metadata": {"name": name}}, namespace, field_manager=FIELD_MANAGER)
    except Conflict:
        return
    except Absent:
        # A local deployment may not have Perdure's namespace.
        await session.kube.create(NAMESPACE, {"metadata": {"name": namespace}}, field_manager=FIELD_MANAGER)


def _namespace(session: ClusterSession) -> str:
    return session.settings.watch_lease_namespace
