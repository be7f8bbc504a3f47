"""docs/adding-a-lifecycle.md, followed to the letter: its table passes, its style holds, its area joins."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import tutorial

# Everybody finds the area where the page says that they look.
JOINS = """
from unittest.mock import Mock
from activities.greetings import GreetingActivities
from domain.custom_resources import all_crds, custom_resources
from engine.settings import Settings
from starters.cli.target import kind_named
from starters.watch.kinds import watched_kinds
from workers.main import served_areas
from workers.roster import by_queue, workflows_of

assert [each.__name__ for each in workflows_of("greetings")] == ["GreetingWorkflow"]
found = by_queue(GreetingActivities(Mock(), Settings()).all())
assert {queue: len(each) for queue, each in found.items()} == {"kube": 3}
assert "greetings" in served_areas(Settings())
assert {each.name for each in watched_kinds() if each.read.__module__ == "starters.watch.greetings"} == {
    "Greeting", "greetings ConfigMap",
}
assert "Greeting" in {model.kind_of.name for model in custom_resources()}
assert "Greeting" in {definition["spec"]["names"]["kind"] for definition in all_crds()}
assert kind_named("greetings").name == "Greeting"
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tutorial.follow(tmp_path_factory.mktemp("tutorial"))


def python(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=project, capture_output=True, text=True, check=False, timeout=200
    )


def test_the_table_of_the_page_passes(project: Path) -> None:
    passed = python(project, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/decisions/test_greetings.py")
    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert "9 passed" in passed.stdout


def test_the_area_of_the_page_joins_everywhere(project: Path) -> None:
    joined = python(project, "-c", JOINS)
    assert joined.returncode == 0, joined.stderr


def test_the_code_of_the_page_is_written_as_ours_is(project: Path) -> None:
    written = [str(path) for path in project.rglob("*greeting*") if path.suffix == ".py" or path.is_dir()]
    for command in (("check",), ("format", "--check")):
        told = python(project, "-m", "ruff", *command, "--no-cache", *written)
        assert told.returncode == 0, told.stdout + told.stderr
