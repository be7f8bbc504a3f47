"""`perdure temporal replay`, the gate before a release: it passes what fits, and names what a planted change breaks.

The planted change is made in a copy of `workflows/`, which a process of its own imports in place of ours.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.replay.recording import HISTORIES
from tests.running.programs import COMMAND, ROOT, command_line

# The first of each area: what breaks the loop breaks all of them.
ONE_OF_EACH_AREA = ("Account-", "ResourceClaim-", "Ec2Instance-", "LoadBalancer-", "Product-")


@pytest.fixture
def histories(tmp_path: Path) -> Path:
    chosen = tmp_path / "histories"
    chosen.mkdir()
    for prefix in ONE_OF_EACH_AREA:
        shutil.copy(sorted(HISTORIES.glob(f"{prefix}*.json"))[0], chosen)
    return chosen


def changed(tmp_path: Path, file: str, before: str, after: str) -> Path:
    """A directory with workflows of which one line is another."""
    tree = tmp_path / "changed"
    shutil.copytree(ROOT / "workflows", tree / "workflows")
    text = (tree / file).read_text()
    assert text.count(before) == 1, f"{file} has no such line any more"
    (tree / file).write_text(text.replace(before, after))
    return tree


def replay(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("TEMPORAL_", "PERDURE_"))}
    return subprocess.run(
        command_line(COMMAND, "temporal", "replay", *arguments, forked=tree == ROOT),
        **{"cwd": tree, "env": inherited, "capture_output": True, "text": True},  # type: ignore[call-overload]
        check=False,
        timeout=200,
    )


def test_this_code_goes_on_with_what_was_recorded(histories: Path) -> None:
    ended = replay(ROOT, str(histories), "-o", "json")
    assert ended.returncode == 0, ended.stderr
    assert {each["kind"]: each["failure"] for each in json.loads(ended.stdout)} == {
        prefix.strip("-"): "" for prefix in ONE_OF_EACH_AREA
    }


def test_a_change_of_the_loop_that_breaks_what_runs_fails_the_gate_for_every_area(
    tmp_path: Path, histories: Path
) -> None:
    looks = "        action = self.observation()\n        try:"
    tree = changed(tmp_path, "workflows/durable_driver.py", looks, f"        await workflow.sleep(1)\n{looks}")
    ended = replay(tree, str(histories))
    assert ended.returncode == 1
    assert "5 of 5 histories cannot be continued by this code" in ended.stderr
    assert "TMPRL1100" in ended.stdout


def test_a_change_of_one_workflow_fails_the_gate_for_its_kind_alone(tmp_path: Path, histories: Path) -> None:
    signal = '    @workflow.signal(description="AWS Support has resolved this case.")'
    later = "    async def life(self) -> None:\n        await workflow.sleep(1)\n        await self.live()\n\n"
    tree = changed(tmp_path, "workflows/accounts.py", signal, f"{later}{signal}")
    ended = replay(tree, str(histories), "-o", "json")
    assert ended.returncode == 1
    assert [each["kind"] for each in json.loads(ended.stdout) if each["failure"]] == ["Account"]


def test_nothing_to_replay_is_no_success(tmp_path: Path) -> None:
    ended = replay(ROOT, str(tmp_path))
    assert ended.returncode == 1
    assert "there is no history to replay" in ended.stderr
    (tmp_path / "odd.json").write_text("{}x")
    assert "odd.json is not a history" in replay(ROOT, str(tmp_path)).stderr
