"""Today's code replays what it has just done on a real deployment; recordings of `tests/replay` are taken here."""

from __future__ import annotations

from collections.abc import Sequence

from temporalio.client import Client, WorkflowHistory
from temporalio.worker import Replayer

from localcloud.deployment import Deployment
from tests.replay.recording import keep, recording
from tests.running.temporal_client import temporal_of
from workers.registry import workflows_of

MOST_RECORDED = 3  # of a type: the longest, which have seen most


async def replayed(deployment: Deployment, area: str, types: Sequence[str]) -> dict[str, int]:
    """Replay every history of these types of workflow; how many there were of each."""
    client = await temporal_of(deployment)
    replayer = Replayer(workflows=list(workflows_of(area)), data_converter=client.data_converter)
    found = {}
    for type_ in types:
        histories = await _histories(client, type_)
        for history in histories:
            await replayer.replay_workflow(history)
        found[type_] = len(histories)
        if recording():
            longest = sorted(histories, key=lambda each: len(each.events), reverse=True)[:MOST_RECORDED]
            for number, history in enumerate(longest, 1):
                keep(type_, f"on_the_real_deployment_{number}", history)
    return found


async def _histories(client: Client, type_: str) -> list[WorkflowHistory]:
    runs = client.list_workflows(f"WorkflowType='{type_}'")
    return [await client.get_workflow_handle(each.id, run_id=each.run_id).fetch_history() async for each in runs]
