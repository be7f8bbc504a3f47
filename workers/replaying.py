"""Replays recorded histories with the current code, without a server and without effects.

Code whose commands differ from the history would fail with `TMPRL1100`. Replay open lifecycles before a roll-out: their
next task runs with the new code, unless they are pinned to a version.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from temporalio.client import Client, WorkflowHistory
from temporalio.converter import DataConverter
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Replayer

from domain.model import Model
from engine.temporal import silent_runtime
from workers.registry import areas, workflows_of

OPEN = "ExecutionStatus = 'Running'"


class Replayed(Model):
    kind: str
    workflow: str
    run: str = ""
    events: int
    failure: str = ""
    """Why the current code does not fit the history; empty if it fits."""


def recorded(directory: Path) -> list[WorkflowHistory]:
    """Histories from JSON files, as Temporal's command line and web UI write them; ValueError for any other JSON."""
    histories = []
    for path in sorted(directory.rglob("*.json")):
        try:
            histories.append(WorkflowHistory.from_json(path.stem, path.read_text()))
        except Exception as error:
            raise ValueError(f"{path} is not a history: {error}") from error
    return histories


async def open_histories(client: Client, query: str = "", most_of_a_kind: int = 0) -> AsyncIterator[WorkflowHistory]:
    """The histories of open lifecycles, newest first.

    `query` is a further condition, written as in the web UI's search. `most_of_a_kind` limits the histories of each
    kind (0: no limit).
    """
    known = {str(each) for each in kinds()}
    read: dict[str, int] = {}
    wanted = f"{OPEN} AND ({query})" if query else OPEN
    async for each in client.list_workflows(wanted):
        if each.workflow_type not in known or (most_of_a_kind and read.get(each.workflow_type, 0) >= most_of_a_kind):
            continue
        try:
            history = await client.get_workflow_handle(each.id, run_id=each.run_id).fetch_history()
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                continue  # the lifecycle has ended, and its history is deleted
            raise
        read[each.workflow_type] = read.get(each.workflow_type, 0) + 1
        yield history


async def replay(history: WorkflowHistory, converter: DataConverter) -> Replayed:
    replayer = Replayer(workflows=_every_workflow(), data_converter=converter, runtime=silent_runtime())
    replayed = await replayer.replay_workflow(history, raise_on_replay_failure=False)
    started = history.events[0].workflow_execution_started_event_attributes
    return Replayed(
        kind=started.workflow_type.name,
        workflow=history.workflow_id,
        run=history.run_id,
        events=len(history.events),
        failure=_reason(str(replayed.replay_failure)) if replayed.replay_failure else "",
    )


def kinds() -> set[str]:
    from temporalio import workflow

    definitions = (workflow._Definition.must_from_class(each) for each in _every_workflow())
    return {definition.name for definition in definitions if definition.name}


def _reason(failure: str) -> str:
    found = re.search(r'message: "(.*?)", source:', failure, re.DOTALL)
    return " ".join((found[1] if found else failure).split())


def _every_workflow() -> Sequence[type]:
    return [each for area in areas() for each in workflows_of(area)]
