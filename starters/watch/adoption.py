"""Objects without a workflow and workflows without an object, found by one list of open workflows per kind.

Settled objects from before Perdure (made by the replaced operator) need a workflow to appear in lists, even if there is
nothing to do for them. Workflows whose object was removed while no watcher ran (its finalizer removed by hand) wait
for an object that will never change again. Both are woken, slowly, once after each start: the workflow then observes
and settles, or ends. Visibility lags by seconds, so some wakes may be superfluous; correctness never depends on them.
"""

from __future__ import annotations

from collections.abc import Iterable

from temporalio.client import Client

from domain.identity import Key

_PARTS = 4  # Kind/namespace/name/uid


async def unmatched(client: Client, kind: str, cluster: str, keys: Iterable[Key]) -> list[Key]:
    """The keys of objects without an open workflow, and of open workflows without an object."""
    known = {key.workflow_id: key for key in keys}
    query = f"WorkflowType = '{kind}' AND ExecutionStatus = 'Running'"
    running = {execution.id async for execution in client.list_workflows(query)}
    orphans = (key_of(workflow_id, cluster) for workflow_id in sorted(running - known.keys()))
    missing = (key for workflow_id, key in known.items() if workflow_id not in running)
    return [key for key in orphans if key is not None] + list(missing)


def key_of(workflow_id: str, cluster: str) -> Key | None:
    """The key behind a workflow id; None for ids of other clusters and ids that Perdure did not make."""
    prefix = f"{cluster}/" if cluster else ""
    parts = workflow_id.removeprefix(prefix).split("/")
    if not workflow_id.startswith(prefix) or len(parts) != _PARTS:
        return None
    kind, namespace, name, uid = parts
    return Key(kind=kind, namespace="" if namespace == "-" else namespace, name=name, uid=uid, cluster=cluster)
