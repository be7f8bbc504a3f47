"""Finds objects without a workflow and workflows without an object, by listing each kind's open workflows.

After its start, the watcher slowly wakes both: missing workflows start, and workflows without an object end. The
visibility store lags behind, so some wakes are superfluous.
"""

from __future__ import annotations

from collections.abc import Iterable

from temporalio.client import Client

from domain.identity import Key

_PARTS = 4  # Kind/namespace/name/uid


async def unmatched(client: Client, cluster: str, kind: str, keys: Iterable[Key]) -> list[Key]:
    """The keys of open workflows without an object, then of objects without an open workflow."""
    known = {key.workflow_id: key for key in keys}
    query = f"WorkflowType = '{kind}' AND ExecutionStatus = 'Running'"
    running = {execution.id async for execution in client.list_workflows(query)}
    orphans = (key_of(workflow_id, cluster) for workflow_id in sorted(running - known.keys()))
    missing = (key for workflow_id, key in known.items() if workflow_id not in running)
    return [key for key in orphans if key is not None] + list(missing)


def key_of(workflow_id: str, cluster: str) -> Key | None:
    prefix = f"{cluster}/" if cluster else ""
    parts = workflow_id.removeprefix(prefix).split("/")
    if not workflow_id.startswith(prefix) or len(parts) != _PARTS:
        return None
    kind, namespace, name, uid = parts
    return Key(kind=kind, namespace="" if namespace == "-" else namespace, name=name, uid=uid, cluster=cluster)
