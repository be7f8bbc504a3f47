"""The IAM documents in deploy/iam: current, within AWS's limits, and nothing that the code does not call."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from aws_permissions import permitted

from activities.aws.permissions import PERMISSIONS, Role
from domain.instances.served_queues import places
from starters.cli.iam import iam_files

DEPLOYED = Path(__file__).parents[3] / "deploy" / "iam"
# AWS counts a managed policy's characters without white space.
LONGEST_POLICY = 6144


def policy(role: Role) -> dict[str, Any]:
    document = json.loads((DEPLOYED / f"{role.value}.json").read_text())
    assert isinstance(document, dict)
    return document


def test_the_files_in_deploy_are_what_the_table_gives() -> None:
    assert {path.name: path.read_text() for path in DEPLOYED.iterdir()} == iam_files(), (
        "run: perdure install iam --output deploy/iam"
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


def instances(queues: str, name: str) -> dict[str, list[str]]:
    """The resources of each action in one of the files for some queues."""
    document = json.loads(iam_files(places(queues.split(",")))[f"{name}.json"])
    return {action: each["Resource"] for each in document["Statement"] for action in each["Action"]}


def test_the_policies_for_instances_name_the_queues_of_the_setting() -> None:
    queues = "111111111111/cn-north-1,111111111111/us-gov-west-1/c-1-queue"
    allowed = instances(queues, "instances")
    assert allowed["sqs:ReceiveMessage"] == [
        "arn:aws-cn:sqs:cn-north-1:111111111111:perdure-instance-events",
        "arn:aws-cn:sqs:cn-north-1:111111111111:perdure-instance-events-dead",
        "arn:aws-us-gov:sqs:us-gov-west-1:111111111111:c-1-queue",
        "arn:aws-us-gov:sqs:us-gov-west-1:111111111111:c-1-queue-dead",
        "arn:aws-us-gov:sqs:us-gov-west-1:111111111111:perdure-instance-events-dead",
    ]
    assert "sts:AssumeRole" not in allowed
    rules = instances(queues, "instances-setup")["events:PutRule"]
    assert "arn:aws-us-gov:events:us-gov-west-1:111111111111:rule/c?1-ec2-rule" in rules


def test_each_role_of_the_setting_may_be_assumed_and_has_policies_of_its_own() -> None:
    role = "arn:aws:iam::222222222222:role/capa/events"
    queues = f"111111111111/eu-central-1,222222222222/eu-central-1@{role}"
    own = instances(queues, "instances")
    assert own["sts:AssumeRole"] == [role]
    assert all(":111111111111:" in arn for arn in own["sqs:ReceiveMessage"])
    other = instances(queues, "instances-222222222222-capa-events")
    assert all(":222222222222:" in arn for arn in other["sqs:ReceiveMessage"])
    assert "sts:AssumeRole" not in other
    assert "events:PutRule" in instances(queues, "instances-setup-222222222222-capa-events")


def test_instances_are_terminated_only_with_their_own_iam_document_and_place() -> None:
    queues = "111111111111/eu-central-1,222222222222/us-gov-west-1@arn:aws-us-gov:iam::222222222222:role/r"
    files = iam_files(places(queues.split(",")))
    allowing = [name for name, text in files.items() if name.startswith("instances") and "ec2:Terminate" in text]
    assert allowing == ["instances-terminate.json", "instances-terminate-222222222222-r.json"]
    assert instances(queues, "instances-terminate") == {
        "ec2:TerminateInstances": ["arn:aws:ec2:eu-central-1:111111111111:instance/*"]
    }
    assert instances(queues, "instances-terminate-222222222222-r") == {
        "ec2:TerminateInstances": ["arn:aws-us-gov:ec2:us-gov-west-1:222222222222:instance/*"]
    }


def test_the_policies_for_any_place_hold_in_every_partition() -> None:
    for name in ("instances", "instances-setup", "instances-compatibility", "instances-terminate"):
        text = (DEPLOYED / f"{name}.json").read_text()
        assert "arn:*:" in text
        assert "arn:aws:" not in text
