"""docs/adding-a-lifecycle.md, followed to the letter: it builds `examples/greeting`, whose area joins everywhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tutorial

# Every process finds the area by itself.
JOINS = """
from domain.areas import installed
from domain.custom_resources import all_crds
from domain.operator_domain import DEFAULT
from engine.settings import Settings
from starters.cli.object_reference import kind_named
from starters.watch.watched_kinds import watched_under
from workers.main import served_areas
from workers.registry import actions, workflows_of
from workers.task_queues import observing_queues, queues_of

assert installed()["greetings"].package == "perdure_greeting"
assert [each.__name__ for each in workflows_of("greetings")] == ["GreetingWorkflow"]
assert {"greetings.observe", "greetings.show"} <= set(actions())
assert observing_queues("greetings") == {"greetings"}
assert queues_of(["greetings"], "") == {("greetings", "workflow"), ("greetings", "activity")}
assert "greetings" in served_areas(Settings())
watched = {each.name for each in watched_under(Settings(areas=("greetings",)))}
assert {"Greeting", "greetings ConfigMap"} <= watched and "Account" not in watched, watched
assert "Greeting" in {definition["spec"]["names"]["kind"] for definition in all_crds(DEFAULT)}
assert kind_named("greetings").name == "Greeting"
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tutorial.build(tmp_path_factory.mktemp("tutorial"))


def python(packages: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=packages.parent,
        env=os.environ | {"PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )


def test_the_page_shows_every_file_of_the_example_unchanged() -> None:
    example = {
        str(path.relative_to(tutorial.EXAMPLE)): path.read_text()
        for path in tutorial.EXAMPLE.rglob("*")
        if path.suffix in (".py", ".toml")
    }
    assert tutorial.files() == example


def test_the_table_of_the_page_passes(built: Path) -> None:
    table = str(built.parent / "greeting" / "tests" / "test_greeting.py")
    passed = python(built, "-m", "pytest", "-q", "-p", "no:cacheprovider", table)
    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert "10 passed" in passed.stdout


def test_the_area_of_the_page_joins_everywhere(built: Path) -> None:
    joined = python(built, "-c", JOINS)
    assert joined.returncode == 0, joined.stderr
