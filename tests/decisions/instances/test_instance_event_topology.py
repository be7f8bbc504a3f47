"""Queues, rules and policies: what they are called, what they let in, and when what is there is the same."""

from __future__ import annotations

import inspect
import json
import re
from types import ModuleType
from typing import Any

import pytest
from instance_scenes import ACCOUNT, GROUP, REGION, health, hook_detail, state_change
from instance_scenes import envelope as enveloped

from activities.aws import event_topology, instances
from domain.instances.event_topology import Topology, auto_scaling_pattern, same_document, topology
from domain.instances.event_topology_upkeep import wanted
from domain.instances.permissions import (
    CONSUME,
    SET_UP_QUEUES,
    SET_UP_RULES,
    compatibility_document,
    running_document,
    setup_document,
    terminating_document,
    topologies,
)
from domain.instances.provider_queue_takeover import provider_topology
from domain.instances.served_queues import Place
from starters.events import sqs_queues


def matches(pattern: Any, event: Any) -> bool:
    """Whether EventBridge would deliver, as far as our patterns go: exact values and prefixes."""
    for name, expected in pattern.items():
        value = event.get(name)
        if isinstance(expected, dict):
            if not isinstance(value, dict) or not matches(expected, value):
                return False
        elif not any(
            value == each or (isinstance(each, dict) and str(value).startswith(each["prefix"])) for each in expected
        ):
            return False
    return True


def delivered(place: Topology, event: Any) -> list[str]:
    return [rule.name for rule in place.rules if matches(rule.pattern, event)]


PLACE = topology(ACCOUNT, REGION)
NOTICE = {"instance-id": "i-1", "instance-action": "terminate"}


@pytest.mark.parametrize(
    ("event", "rule"),
    [
        (state_change("pending"), "ec2"),
        (state_change("terminated"), "ec2"),
        (enveloped("aws.ec2", "EC2 Spot Instance Interruption Warning", NOTICE), "ec2"),
        (enveloped("aws.ec2", "EC2 Instance Rebalance Recommendation", NOTICE), "ec2"),
        (enveloped("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning", NOTICE), "ec2"),
        (enveloped("aws.autoscaling", "EC2 Instance-launch Lifecycle Action", hook_detail()), "autoscaling"),
        (enveloped("aws.autoscaling", "EC2 Instance-terminate Lifecycle Action", hook_detail()), "autoscaling"),
        (enveloped("aws.autoscaling", "EC2 Instance Launch Unsuccessful", hook_detail()), "autoscaling"),
        (health(), "health"),
        (health(eventTypeCategory="issue"), "health"),
        (health(eventTypeCategory="plannedChange"), "health"),
    ],
)
def test_each_event_comes_by_exactly_one_rule(event: Any, rule: str) -> None:
    assert delivered(PLACE, event) == [f"perdure-instance-events-{rule}"]


@pytest.mark.parametrize(
    "event",
    [
        health(service="RDS"),
        enveloped("aws.ec2", "AWS API Call via CloudTrail", {}),
        enveloped("my.app", "EC2 Instance State-change Notification", {}),
    ],
)
def test_what_is_of_no_use_is_not_let_in(event: Any) -> None:
    assert delivered(PLACE, event) == []


def test_groups_may_be_chosen_by_how_they_are_called() -> None:
    launch = enveloped("aws.autoscaling", "EC2 Instance-launch Lifecycle Action", hook_detail())
    assert delivered(topology(ACCOUNT, REGION, group_prefix="c1-"), launch)
    assert not delivered(topology(ACCOUNT, REGION, group_prefix="c2-"), launch)
    assert "detail" not in auto_scaling_pattern()
    assert GROUP.startswith("c1-")


def test_the_patterns_are_far_below_eventbridges_limit() -> None:
    assert all(len(json.dumps(rule.pattern)) < 1024 for rule in PLACE.rules)
    assert all(rule.state == "ENABLED" for rule in PLACE.rules)


def test_a_queue_has_its_dead_letters_and_lets_its_rules_in_only() -> None:
    attributes = PLACE.queue.attributes
    assert json.loads(attributes["RedrivePolicy"]) == {
        "deadLetterTargetArn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:perdure-instance-events-dead",
        "maxReceiveCount": 50,
    }
    assert (attributes["VisibilityTimeout"], attributes["MessageRetentionPeriod"]) == ("60", "345600")
    for queue in (PLACE.queue, PLACE.dead_letters):
        statements = json.loads(queue.attributes["Policy"])["Statement"]
        assert {each["Resource"] for each in statements} == {queue.arn}
        sources = [each["Condition"]["ArnEquals"]["aws:SourceArn"] for each in statements]
        assert sources == [rule.arn for rule in PLACE.rules]
        assert all(each["Sid"].isalnum() for each in statements)
    target = PLACE.rules[0].targets[0].document
    assert target["DeadLetterConfig"] == {"Arn": PLACE.dead_letters.arn}
    assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 3600}


def test_arns_are_of_the_regions_partition() -> None:
    place = topology(ACCOUNT, "cn-north-1")
    assert place.queue.arn.startswith("arn:aws-cn:sqs:cn-north-1:")
    assert place.rules[0].arn.startswith("arn:aws-cn:events:cn-north-1:")


def test_names_that_aws_refuses_are_refused_here() -> None:
    assert topology(ACCOUNT, REGION, name="q" * 75)
    with pytest.raises(ValueError, match="SQS allows 80"):
        topology(ACCOUNT, REGION, name="q" * 76)


def test_rules_of_a_queue_with_a_long_name_get_shorter_names() -> None:
    assert [rule.name for rule in topology(ACCOUNT, REGION, name="q" * 52).rules] == [
        f"{'q' * 52}-{source}" for source in ("ec2", "autoscaling", "health")
    ]
    longer = [topology(ACCOUNT, REGION, name=f"{'q' * 60}{end}") for end in ("-a-queue", "-b-queue")]
    names = [rule.name for place in longer for rule in place.rules]
    assert max(map(len, names)) == 64
    assert len(set(names)) == 6
    assert all(rule.arn.endswith(f":rule/{rule.name}") for place in longer for rule in place.rules)


# --- what is there already ---

POLICY = json.loads(PLACE.queue.attributes["Policy"])


def changed(**changes: Any) -> str:
    return json.dumps({**POLICY, **changes})


@pytest.mark.parametrize(
    "found",
    [
        json.dumps(POLICY),
        json.dumps(POLICY, indent=4),
        changed(Statement=POLICY["Statement"][::-1]),
        changed(Statement=[{**each, "Action": ["sqs:SendMessage"]} for each in POLICY["Statement"]]),
        changed(Id="anything"),
    ],
)
def test_a_policy_that_says_the_same_is_left_alone(found: str) -> None:
    assert same_document(POLICY, found)


@pytest.mark.parametrize(
    "found",
    [
        None,
        "",
        "{",
        "{}",
        changed(Statement=POLICY["Statement"][:2]),
        changed(Statement=[*POLICY["Statement"], {"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage"}]),
        changed(Statement=[{**each, "Condition": {}} for each in POLICY["Statement"]]),
        changed(Statement=[{**each, "Effect": "Deny"} for each in POLICY["Statement"]]),
    ],
)
def test_a_policy_that_says_something_else_is_put_right(found: str | None) -> None:
    assert not same_document(POLICY, found)


def test_patterns_are_compared_as_policies_are() -> None:
    pattern = PLACE.rules[0].pattern
    assert same_document(pattern, json.dumps(pattern, indent=1))
    assert not same_document(pattern, json.dumps({**pattern, "detail": {"instance-id": ["i-1"]}}))


# --- compatibility ---


def test_a_clusters_queue_and_rule_are_called_as_the_provider_calls_them() -> None:
    place = provider_topology(ACCOUNT, REGION, ["my.cluster"])
    assert (place.queue.name, place.rules[0].name) == ("my-cluster-queue", "my.cluster-ec2-rule")
    assert place.rules[0].targets[0].document == {"Id": "my-cluster-queue", "Arn": place.queue.arn}
    assert place.queue.attributes["ReceiveMessageWaitTimeSeconds"] == "20"


def test_a_clusters_queue_policy_is_the_providers_to_the_letter() -> None:
    place = provider_topology(ACCOUNT, REGION, ["c1"])
    queue, rule = f"arn:aws:sqs:{REGION}:{ACCOUNT}:c1-queue", f"arn:aws:events:{REGION}:{ACCOUNT}:rule/c1-ec2-rule"
    assert place.queue.attributes["Policy"] == (
        '{"Version":"2012-10-17","Statement":[{"Sid":"CAPAEvents_c1-ec2-rule_c1-queue",'
        '"Principal":{"Service":["events.amazonaws.com"]},"Effect":"Allow","Action":["sqs:SendMessage"],'
        f'"Resource":["{queue}"],"Condition":{{"ArnEquals":{{"aws:SourceArn":"{rule}"}}}}}}],"Id":"{queue}"}}'
    )


def test_a_clusters_rule_lists_no_instances_and_hears_all_states() -> None:
    pattern = provider_topology(ACCOUNT, REGION, ["c1"]).rules[0].pattern
    assert all(matches(pattern, state_change(state)) for state in ("pending", "stopped", "terminated"))
    assert "instance-id" not in pattern["detail"]
    assert pattern["detail"]["state"][-2:] == ["shutting-down", "terminated"]


def test_a_cluster_whose_name_is_too_long_is_named() -> None:
    assert provider_topology(ACCOUNT, REGION, ["c" * 55])
    with pytest.raises(ValueError, match="c-ec2-rule"):
        provider_topology(ACCOUNT, REGION, ["c" * 56])


# --- IAM ---


def allowed(document: Any, action: str) -> list[str]:
    return [resource for each in document["Statement"] if action in each["Action"] for resource in each["Resource"]]


def test_a_running_consumer_may_touch_its_queues_and_answer_hooks_only() -> None:
    document = running_document([PLACE, topology(ACCOUNT, "us-east-1")])
    queues = allowed(document, "sqs:DeleteMessage")
    assert len(queues) == 4
    assert all("perdure-instance-events" in arn for arn in queues)
    assert allowed(document, "ec2:DescribeInstances") == ["*"]
    groups = allowed(document, "autoscaling:CompleteLifecycleAction")
    assert groups[0] == f"arn:aws:autoscaling:{REGION}:{ACCOUNT}:autoScalingGroup:*:autoScalingGroupName/*"
    actions = {action for each in document["Statement"] for action in each["Action"]}
    assert {"sqs:ChangeMessageVisibility", "sqs:SendMessage", "autoscaling:RecordLifecycleActionHeartbeat"} <= actions
    assert not {action for action in actions if action.startswith(("events:", "ec2:Terminate", "sqs:Delete"))} - {
        "sqs:DeleteMessage"
    }


def test_setting_up_touches_its_own_names_only() -> None:
    document = setup_document([PLACE])
    assert allowed(document, "events:PutRule") == sorted(rule.arn for rule in PLACE.rules)
    assert allowed(document, "sqs:SetQueueAttributes") == sorted([PLACE.queue.arn, PLACE.dead_letters.arn])
    assert setup_document([])["Statement"] == [], "IAM refuses a statement without resources"


def test_the_rules_of_a_cluster_with_a_long_name_are_made_and_allowed() -> None:
    place = Place(account=ACCOUNT, region=REGION, queue=f"{'c' * 55}-queue")
    allowed_rules = allowed(setup_document(topologies(place)), "events:PutRule")
    assert {rule.arn for rule in wanted(place).rules} < set(allowed_rules)


def test_the_compatible_document_reaches_the_providers_queues_and_deletes_nothing() -> None:
    document = compatibility_document(topology("*", "*"))
    own = "arn:*:sqs:*:*:perdure-instance-events"
    queues = ["arn:*:sqs:*:*:*-queue", own, f"{own}-dead"]
    for action in (*CONSUME, *SET_UP_QUEUES):
        assert sorted(set(allowed(document, action))) == queues
    for action in SET_UP_RULES:
        assert "arn:*:events:*:*:rule/*-ec2-rule" in allowed(document, action)
    assert allowed(document, "ec2:DescribeInstances") == ["*"]
    actions = {action for each in document["Statement"] for action in each["Action"]}
    assert {action for action in actions if re.search("Delete|Remove", action)} == {"sqs:DeleteMessage"}


# What IAM checks for a call of another name, or in addition for tags.
IMPLIED = {"sqs:DeleteMessageBatch": "sqs:DeleteMessage"}
IMPLIED["sqs:ChangeMessageVisibilityBatch"] = "sqs:ChangeMessageVisibility"
WITH_TAGS = {"sqs:CreateQueue": "sqs:TagQueue", "events:PutRule": "events:TagResource"}


def called(module: ModuleType) -> set[str]:
    """The calls that a module declares as protocols of AWS's clients, as IAM's actions."""
    services = {"_Api": "sqs", "_Sqs": "sqs", "_Events": "events", "_Ec2": "ec2", "_AutoScaling": "autoscaling"}
    found = set[str]()
    for name, body in re.findall(r"class (\w+)\(Protocol\):\n(.*?)\n\n\n", inspect.getsource(module), re.DOTALL):
        if name in services:
            calls = re.findall(r"def (\w+)\(", body)
            found |= {f"{services[name]}:{''.join(part.capitalize() for part in each.split('_'))}" for each in calls}
    actions = {IMPLIED.get(each, each) for each in found}
    return actions | {tagging for each, tagging in WITH_TAGS.items() if each in actions}


def test_the_documents_allow_exactly_the_calls_that_are_made() -> None:
    def actions(document: Any) -> set[str]:
        return {action for each in document["Statement"] for action in each["Action"]}

    running, terminating = running_document([PLACE]), terminating_document([(ACCOUNT, REGION)])
    assert actions(running) | actions(terminating) == called(sqs_queues) | called(instances)
    assert actions(setup_document([PLACE])) == called(event_topology)
