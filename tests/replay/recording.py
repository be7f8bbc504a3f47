"""Recording histories for tests/replay: where they lie, when they are written, and what is left out of them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHistory

# Set to anything, histories are recorded again by the tests that make them.
RECORD = "PERDURE_RECORD_HISTORIES"
HISTORIES = Path(__file__).parent / "histories"


def recording() -> bool:
    """Whether this run records."""
    return RECORD in os.environ


def keep(kind: str, case: str, history: WorkflowHistory) -> None:
    """Write a history down."""
    HISTORIES.mkdir(exist_ok=True)
    recorded = impersonal(json.loads(history.to_json()))
    (HISTORIES / f"{kind}-{case}.json").write_text(json.dumps(recorded, separators=(",", ":")) + "\n")


def impersonal(recorded: Any) -> Any:
    """Without the traces of the machine: stack traces with its paths, identities and sticky queues with its name."""
    if isinstance(recorded, dict):
        if recorded.get("kind") == "TASK_QUEUE_KIND_STICKY":
            return {**recorded, "name": "sticky"}
        stored = {name: impersonal(value) for name, value in recorded.items() if name != "stackTrace"}
        return {**stored, "identity": "worker"} if "identity" in stored else stored
    return [impersonal(item) for item in recorded] if isinstance(recorded, list) else recorded
