"""What is set wrongly is said in one line when a process starts: by which variable, and what is wrong with it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from engine.kube import LeadershipLost
from engine.process import ungrouped


@pytest.mark.parametrize(
    ("command", "variable", "said"),
    [
        ("worker", "PERDURE_TEMPORAL_KEYS", "worker cannot begin: PERDURE_TEMPORAL_KEYS: the keys in /nowhere"),
        ("watch", "KUBECONFIG", "watch cannot begin: KUBECONFIG names no cluster, and this is no pod with one"),
        ("run", "KUBECONFIG", "run cannot begin: KUBECONFIG names no cluster, and this is no pod with one"),
    ],
)
def test_what_keeps_a_process_from_beginning_is_one_line(command: str, variable: str, said: str) -> None:
    settings = ("PERDURE_", "TEMPORAL_", "KUBE")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(settings)}
    begun = subprocess.run(
        [sys.executable, "-m", "starters.cli.main", command],
        env={**inherited, "PERDURE_LOG_FORMAT": "text", "HOME": "/nowhere", variable: "/nowhere"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert begun.returncode == 1
    (line,) = begun.stderr.splitlines()
    assert said in line


def test_what_one_part_could_not_go_on_with_is_told_by_itself() -> None:
    lost = LeadershipLost("another watcher leads")
    assert ungrouped(ExceptionGroup("tasks", [ExceptionGroup("", [lost]), ValueError("later")])) is lost
