"""The architecture, held by machine: layers, what workflows may import and how, actions and activities one to one."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from temporalio import activity

from activities.activity_class import Activities
from activities.kube import KubeActivities
from domain.areas import Area, installed
from workers.registry import actions
from workers.task_queues import by_queue

ROOT = Path(__file__).parents[3]
EVERY_WORKERS = (KubeActivities,)


def classes_of(area: Area) -> list[type[Activities]]:
    """The classes whose activities an area's workers execute: its module imports them for that."""
    found = [each for each in vars(importlib.import_module(area.activities)).values() if isinstance(each, type)]
    return [each for each in found if issubclass(each, Activities) and each is not KubeActivities]


AREAS = {area.name: classes_of(area) for area in installed().values()}
WORKFLOW_FILES = sorted((ROOT / "workflows").rglob("*.py"))


def test_the_layer_contracts_hold() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=100)
    assert ended.returncode == 0, ended.stdout + ended.stderr


# What differs from one execution to the next, and so breaks the replay of a history. `workflow` has its own of each.
NONDETERMINISTIC = {
    *("datetime.now", "datetime.utcnow", "date.today", "time.time", "time.monotonic", "time.sleep", "perf_counter"),
    *("uuid.uuid1", "uuid.uuid4", "uuid4", "random", "secrets", "os", "asyncio.sleep", "asyncio.wait", "threading"),
}


def nondeterministic(source: str) -> set[str]:
    """The calls and imports in it that differ between executions."""
    tree = ast.parse(source)
    calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    found = {name.removeprefix("datetime.") if name.startswith("datetime.datetime") else name for name in calls}
    return (found | imported) & NONDETERMINISTIC


@pytest.mark.parametrize("path", WORKFLOW_FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_workflows_are_deterministic(path: Path) -> None:
    assert nondeterministic(path.read_text()) == set()


def test_decisions_are_deterministic() -> None:
    """But for templates, which are rendered in activities."""
    decisions = (path for path in (ROOT / "domain").rglob("*.py") if "templates" not in path.parts)
    assert {path.name: found for path in decisions if (found := nondeterministic(path.read_text()))} == {}


def test_code_that_breaks_a_replay_is_found() -> None:
    source = "import datetime, random\nfrom uuid import uuid4\nuuid4(), datetime.datetime.now(), workflow.now()"
    assert nondeterministic(source) == {"random", "uuid4", "datetime.now"}


def test_no_cancellation_is_swallowed_by_wait_for() -> None:
    """That of Python 3.11 returns what it waits for if that comes together with a cancellation, which is lost then."""
    product = ("domain", "engine", "workflows", "activities", "workers", "starters", "yawollet")
    paths = (path for name in product for path in (ROOT / name).rglob("*.py"))
    assert [path.name for path in paths if "await asyncio.wait_for(" in path.read_text()] == []


def activities_of(kinds: Iterable[type]) -> list[Callable[..., object]]:
    return [each for kind in kinds for each in object.__new__(kind).all()]


def test_actions_and_activities_match_one_to_one() -> None:
    made = activities_of(kind for kinds in (EVERY_WORKERS, *AREAS.values()) for kind in kinds)
    names = [activity._Definition.must_from_callable(each).name for each in made]
    assert sorted(str(name) for name in names) == sorted(actions())
    assert sum(len(each) for each in by_queue(made).values()) == len(made)


def test_a_queue_is_served_by_one_areas_workers_alone() -> None:
    """A worker that polls a queue without knowing all of its activities would fail those of others."""
    served = {name: set(by_queue(activities_of(kinds))) for name, kinds in AREAS.items()}
    listed = [queue for queues in served.values() for queue in queues]
    assert sorted(listed) == sorted(set(listed)), served


def test_no_two_test_files_share_a_name() -> None:
    names = sorted(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert names == sorted(set(names)), "pytest collects one of each name only"
