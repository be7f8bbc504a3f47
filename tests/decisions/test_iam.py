"""The IAM documents in deploy/iam: current, within AWS's limits, and nothing that the code does not call."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from activities.aws.permissions import PERMISSIONS, Role, permitted
from starters.cli.iam import iam_files

DEPLOYED = Path(__file__).parents[2] / "deploy" / "iam"
# AWS counts a managed policy's characters without white space.
LONGEST_POLICY = 6144


def policy(role: Role) -> dict[str, Any]:
    document = json.loads((DEPLOYED / f"{role.value}.json").read_text())
    assert isinstance(document, dict)
    return document


def test_the_files_in_deploy_are_what_the_table_gives() -> None:
    assert {path.name: path.read_text() for path in DEPLOYED.iterdir()} == iam_files(), (
        "run: perdure iam --output deploy/iam"
    )


@pytest.mark.parametrize("role", list(Role))
def test_each_policy_allows_what_its_credentials_call_and_no_more(role: Role) -> None:
    statements = policy(role)["Statement"]
    assert {action for statement in statements for action in statement["Action"]} == permitted(role)
    assert {statement["Effect"] for statement in statements} == {"Allow"}


@pytest.mark.parametrize("path", sorted(DEPLOYED.glob("*.json")), ids=lambda path: path.stem)
def test_aws_would_take_the_policy(path: Path) -> None:
    document = json.loads(path.read_text())
    sids = [statement["Sid"] for statement in document["Statement"]]
    assert len(sids) == len(set(sids))
    assert all(re.fullmatch(r"[A-Za-z0-9]+", sid) for sid in sids)
    assert len(json.dumps(document, separators=(",", ":"))) <= LONGEST_POLICY
    actions = [action for statement in document["Statement"] for action in statement["Action"]]
    assert all(re.fullmatch(r"[a-z0-9]+:[A-Za-z]+", action) for action in actions)


def test_the_payer_may_assume_no_role_but_the_organizations_and_our_own() -> None:
    (assume,) = [item for item in policy(Role.PAYER)["Statement"] if "sts:AssumeRole" in item["Action"]]
    names = [arn.split(":role/")[1] for arn in assume["Resource"]]
    assert names == ["OrganizationAccountAccessRole", "ManagedOpenShift-Support-*"]
    assert assume["Action"] == ["sts:AssumeRole"]


def test_every_action_has_its_reason_in_the_readme() -> None:
    text = (DEPLOYED / "README.md").read_text()
    for item in PERMISSIONS:
        assert f"| {item.role.value} | `{item.action}` | {item.why} |" in text
