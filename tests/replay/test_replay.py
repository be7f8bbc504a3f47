"""Today's code replays the histories that earlier code wrote: no run that is under way breaks by an update.

Accounts are recorded by `PERDURE_RECORD_HISTORIES=1 ./run pytest tests/workflows -m recorded`, Services and instances
by the same variable and `tests/workflows/test_services_in_time.py` or `test_instance_in_time.py`, the others on the
real deployment by `test_claims_replayed.py`, `test_load_balancers_replayed.py` and `test_threescale_replayed.py` in
`tests/chaos`. A change that fails here breaks runs that are open: it needs `workflow.patched`, or, before the first
release, new recordings.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from temporalio.client import WorkflowHistory
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Replayer

from domain.threescale import CUSTOM_KINDS
from tests.replay.recording import HISTORIES
from workers.registry import workflows_of

RECORDED = sorted(HISTORIES.glob("*.json"))
AREAS = ("accounts", "claims", "instances", "loadbalancers", "threescale")
LOAD_BALANCERS = {"Service", "LoadBalancer", "LoadBalancerSet", "LoadBalancerMachine", "OpenStackProjects"}
CLAIMS = {"ClaimBinder", "ResourceClaim", "ResourceHandle", "ResourcePool"}


def test_every_lifecycle_with_a_workflow_of_its_own_actions_is_recorded() -> None:
    assert {path.name.split("-")[0] for path in RECORDED} == {
        "Account",
        "AccountClaim",
        "AWSFederatedAccountAccess",
        "AWSFederatedRole",
        "Ec2Instance",
        "ThreescaleTenants",
    } | CLAIMS | LOAD_BALANCERS | {kind.name for kind in CUSTOM_KINDS}


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
async def test_a_recorded_history_is_replayed(path: Path) -> None:
    history = WorkflowHistory.from_json(path.stem, path.read_text())
    workflows = [each for area in AREAS for each in workflows_of(area)]
    replayer = Replayer(workflows=workflows, data_converter=pydantic_data_converter)
    await replayer.replay_workflow(history)
