"""The architecture, held by machine: layers, what workflows may import and how, actions and activities one to one."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from temporalio import activity

from activities.accounts import (
    ClaimActivities,
    CustomerActivities,
    FakeActivities,
    FleetActivities,
    ObserveActivities,
    OptInActivities,
    OrganizationActivities,
    PoolActivities,
    ValidationActivities,
)
from activities.accounts.federated import FederatedObjects
from activities.aws.activities import AwsActivities
from activities.aws.federated import FederatedActivities
from activities.claims import ACTIVITIES as CLAIMS_ACTIVITIES
from activities.instances.area import ACTIVITIES as INSTANCES_ACTIVITIES
from activities.kube import KubeActivities
from activities.loadbalancers.area import ACTIVITIES as LOAD_BALANCERS_ACTIVITIES
from activities.threescale.area import ACTIVITIES as THREESCALE_ACTIVITIES
from workers.roster import actions, by_queue

ROOT = Path(__file__).parents[2]
OWN = {"domain", "engine", "workflows", "activities", "workers", "starters", "localcloud"}
EVERY_WORKERS = (
    KubeActivities,
    AwsActivities,
    FederatedActivities,
    FederatedObjects,
    ObserveActivities,
    OptInActivities,
    PoolActivities,
    OrganizationActivities,
    ClaimActivities,
    FleetActivities,
    FakeActivities,
    ValidationActivities,
    CustomerActivities,
)
AREAS = {
    "claims": CLAIMS_ACTIVITIES,
    "loadbalancers": LOAD_BALANCERS_ACTIVITIES,
    "instances": INSTANCES_ACTIVITIES,
    "threescale": THREESCALE_ACTIVITIES,
}
WORKFLOW_FILES = sorted((ROOT / "workflows").rglob("*.py"))


def test_the_layer_contracts_hold() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=100)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def imports(path: Path) -> list[tuple[str, bool]]:
    """Every import of ours in a file, and whether it stands within `imports_passed_through`."""
    found: list[tuple[str, bool]] = []

    def visit(node: ast.AST, passed: bool) -> None:
        if isinstance(node, ast.With):
            passed = passed or any("imports_passed_through" in ast.unparse(item) for item in node.items)
        if isinstance(node, ast.Import):
            found.extend((alias.name, passed) for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            found.append((node.module or "", passed))
        for child in ast.iter_child_nodes(node):
            visit(child, passed)

    visit(ast.parse(path.read_text()), False)
    return [(name, passed) for name, passed in found if name.split(".")[0] in OWN]


@pytest.mark.parametrize("path", WORKFLOW_FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_workflows_import_our_modules_passed_through_only(path: Path) -> None:
    """Imported into the sandbox they would cost twelve times the memory, and be other classes there."""
    packages = {name for name, passed in imports(path) if not passed}
    assert packages <= {name for name in packages if path.name == "__init__.py" and name.startswith("workflows.")}


def test_the_lint_sees_an_import_that_is_not_passed_through(tmp_path: Path) -> None:
    source = "from domain.carry import Carry\nwith workflow.unsafe.imports_passed_through():\n    import domain.why\n"
    (tmp_path / "w.py").write_text(source)
    assert imports(tmp_path / "w.py") == [("domain.carry", False), ("domain.why", True)]


def activities_of(kinds: Iterable[type]) -> list[Callable[..., object]]:
    return [each for kind in kinds for each in object.__new__(kind).all()]


def test_actions_and_activities_match_one_to_one() -> None:
    made = activities_of(kind for kinds in (EVERY_WORKERS, *AREAS.values()) for kind in kinds)
    names = [activity._Definition.must_from_callable(each).name for each in made]
    assert sorted(str(name) for name in names) == sorted(actions())
    assert sum(len(each) for each in by_queue(made).values()) == len(made)


def test_a_queue_is_served_by_every_worker_or_by_one_areas_alone() -> None:
    """A worker that polls a queue without knowing all of its activities would fail those of others."""
    served = {name: set(by_queue(activities_of(kinds))) for name, kinds in AREAS.items()}
    served["every worker"] = set(by_queue(activities_of(EVERY_WORKERS)))
    listed = [queue for queues in served.values() for queue in queues]
    assert sorted(listed) == sorted(set(listed)), served


def test_no_two_test_files_share_a_name() -> None:
    names = sorted(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert names == sorted(set(names)), "pytest collects one of each name only"
