"""What the audit of EC2 instances finds: labels that EC2 does not bear out, lifecycles that nothing names."""

from __future__ import annotations

import pytest
from instance_scenes import ACCOUNT, ID, REGION, at, facts

from activities.instances.bulk_queries import Bulk, BulkGroups
from domain.instances.constants import STATE_LABEL
from domain.instances.event_verification import Facts
from domain.instances.resources import AWSMachine, AWSMachinePool
from domain.instances.workflow_ids import GroupKey, InstanceKey
from starters.cli.audits import audits
from starters.cli.audits.instances import findings, pool_findings, strangers, unserved

KEY = InstanceKey(account=ACCOUNT, region=REGION, instance_id=ID)


def problems(label: str, answer: Facts | None) -> list[str]:
    labels = {STATE_LABEL: label} if label else {}
    machine = AWSMachine.model_validate(
        {"metadata": {"name": "m", "namespace": "c", "labels": labels}, "spec": {"instanceID": ID}}
    )
    bulk = Bulk(facts={ID: (KEY, answer)} if answer else {})
    return [each.problem for each in findings({ID: machine}, bulk)]


@pytest.mark.parametrize(
    ("label", "answer", "problem"),
    [
        ("running", facts(0), None),
        ("running", facts(0, "stopped"), f"EC2 reports stopped for {ID}, and its label says running"),
        ("", facts(0), f"EC2 reports running for {ID}, and its label says nothing"),
        ("running", facts(0, found=False), f"EC2 does not know {ID}, and its label says running"),
        ("terminated", facts(0, found=False), None),
        ("running", None, None),
    ],
)
def test_a_label_that_ec2_does_not_bear_out_is_found(label: str, answer: Facts | None, problem: str | None) -> None:
    assert problems(label, answer) == ([problem] if problem else [])


def test_a_place_that_does_not_answer_is_told() -> None:
    (found,) = findings({}, Bulk(troubles=("no answer",)))
    assert found.problem == "no answer"
    (found,) = pool_findings([], BulkGroups(troubles=("no answer",)))
    assert found.problem == "no answer"


def test_a_pool_that_auto_scaling_does_not_bear_out_is_found() -> None:
    arn = f"arn:aws:autoscaling:{REGION}:{ACCOUNT}:autoScalingGroup:1:autoScalingGroupName/g"
    pool = AWSMachinePool.model_validate({"metadata": {"name": "p", "namespace": "c"}, "spec": {"providerID": arn}})
    group = GroupKey(account=ACCOUNT, region=REGION, group="g")
    (found,) = pool_findings([pool], BulkGroups(instances={group: {ID: "InService"}}))
    assert found.subject == "AWSMachinePool/c/p"
    differs = "its label or annotation does not match its instances in Auto Scaling (1)"
    assert found.problem == f"{differs}; the label says nothing"
    assert list(pool_findings([pool], BulkGroups(instances={group: {}}))) == []
    assert list(pool_findings([pool], BulkGroups())) == []


def test_a_lifecycle_that_nothing_names_is_found_once_it_should_have_ended() -> None:
    lifecycles = [(KEY.lifecycle, at(0))]
    assert list(strangers(lifecycles, set(), at(600))) == []
    assert list(strangers(lifecycles, {ID}, at(3600))) == []
    assert [each.subject for each in strangers(lifecycles, set(), at(3600))] == [KEY.lifecycle.path]


def test_the_area_has_an_audit() -> None:
    assert "instances" in audits()


def test_a_shell_without_queues_reports_that_instances_were_not_compared() -> None:
    assert list(unserved([])) == []
    (found,) = unserved([ID, "i-2"])
    assert "2 instances have lifecycles: nothing was compared" in found.problem
