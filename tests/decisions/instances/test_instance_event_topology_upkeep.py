"""What differs between a place's queues and rules and what they should be, and what is left alone."""

from __future__ import annotations

import json
from functools import partial
from typing import Any, cast

import pytest

from activities.aws.event_topology import EventTopology
from activities.aws.session import Services
from domain.instances.cluster_queue_names import provider_clusters
from domain.instances.event_topology import topology
from domain.instances.event_topology_upkeep import (
    differing_attributes,
    key_of,
    missing_targets,
    place_of_key,
    rule_differs,
    wanted,
)
from domain.instances.provider_queue_takeover import provider_topology, rules_of_policy
from domain.instances.served_queues import Place
from engine.errors import Absent, Invalid

PLACE = Place(account="123456789012", region="eu-central-1")
OWN = topology(PLACE.account, PLACE.region)


def found_attributes(**other: str) -> dict[str, str]:
    """A queue's attributes as AWS gives them back: its own order, and the redrive policy's number as a text."""
    redrive = json.loads(OWN.queue.attributes["RedrivePolicy"])
    policy = json.loads(OWN.queue.attributes["Policy"])
    return {
        **OWN.queue.attributes,
        "QueueArn": OWN.queue.arn,
        "RedrivePolicy": json.dumps({"maxReceiveCount": str(redrive["maxReceiveCount"]), **redrive}),
        "Policy": json.dumps({"Statement": policy["Statement"][::-1], "Version": policy["Version"], "Id": "x"}),
        **other,
    }


def test_what_stands_as_it_should_is_left_alone() -> None:
    assert differing_attributes(OWN.queue, found_attributes()) == {}
    rule = OWN.rules[0]
    assert not rule_differs(rule, {"EventPattern": json.dumps(rule.pattern, indent=2), "State": "ENABLED"})
    filled_in = {
        **rule.targets[0].document,
        "RetryPolicy": {"MaximumEventAgeInSeconds": 3600, "MaximumRetryAttempts": 185},
    }
    assert missing_targets(rule, [{"Id": "another's", "Arn": "arn:x"}, filled_in]) == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("VisibilityTimeout", "30"),
        ("RedrivePolicy", ""),
        ("RedrivePolicy", '{"deadLetterTargetArn":"arn:other","maxReceiveCount":5}'),
        ("Policy", ""),
        ("Policy", "no json"),
        ("Policy", '{"Version":"2012-10-17","Statement":[]}'),
    ],
)
def test_an_attribute_that_differs_is_set_alone(name: str, value: str) -> None:
    differing = differing_attributes(OWN.queue, found_attributes(**{name: value}))
    assert differing == {name: OWN.queue.attributes[name]}


def test_whoever_else_may_send_loses_that() -> None:
    policy = json.loads(OWN.queue.attributes["Policy"])
    policy["Statement"].append({"Sid": "all", "Effect": "Allow", "Principal": "*", "Action": "sqs:*", "Resource": "*"})
    assert set(differing_attributes(OWN.queue, found_attributes(Policy=json.dumps(policy)))) == {"Policy"}


def test_a_queue_with_a_key_of_the_customers_keeps_it() -> None:
    encrypted = found_attributes(KmsMasterKeyId="alias/own", SqsManagedSseEnabled="false")
    assert differing_attributes(OWN.queue, encrypted) == {}
    assert set(differing_attributes(OWN.queue, found_attributes(SqsManagedSseEnabled="false"))) == {
        "SqsManagedSseEnabled"
    }


@pytest.mark.parametrize("key", ["alias/aws/sqs", "arn:aws:kms:eu-central-1:123456789012:alias/aws/sqs"])
def test_a_queue_with_a_key_that_eventbridge_may_not_use_loses_it(key: str) -> None:
    differing = differing_attributes(OWN.queue, found_attributes(KmsMasterKeyId=key, SqsManagedSseEnabled="false"))
    assert differing == {"SqsManagedSseEnabled": "true", "KmsMasterKeyId": ""}


@pytest.mark.parametrize(
    "found",
    [
        {"State": "ENABLED"},
        {"EventPattern": '{"source":["aws.ec2"]}', "State": "ENABLED"},
        {"EventPattern": json.dumps(OWN.rules[0].pattern), "State": "DISABLED"},
    ],
)
def test_a_rule_with_another_pattern_or_switched_off_differs(found: dict[str, Any]) -> None:
    assert rule_differs(OWN.rules[0], found)


@pytest.mark.parametrize(
    "change", [{"Arn": "arn:other"}, {"DeadLetterConfig": {"Arn": "arn:other"}}, {"RetryPolicy": None}]
)
def test_a_target_that_delivers_elsewhere_or_gives_up_otherwise_is_put_again(change: dict[str, Any]) -> None:
    rule = OWN.rules[0]
    assert missing_targets(rule, [{**rule.targets[0].document, **change}]) == rule.targets


@pytest.mark.parametrize(
    "change", [{"Input": "{}"}, {"InputPath": "$.detail"}, {"InputTransformer": {"InputTemplate": '"x"'}}]
)
def test_a_target_that_delivers_other_content_than_the_event_is_put_again(change: dict[str, Any]) -> None:
    rule = OWN.rules[0]
    assert missing_targets(rule, [{**rule.targets[0].document, **change}]) == rule.targets
    assert missing_targets(rule, [{**rule.targets[0].document, **dict.fromkeys(change)}]) == ()


def test_a_queue_of_the_providers_is_kept_by_the_providers_names() -> None:
    place = PLACE.model_copy(update={"queue": "a-b-queue"})
    should = wanted(place, ["a.b-ec2-rule", "a-b-ec2-rule", "other-ec2-rule", "something"])
    assert [rule.name for rule in should.rules] == ["a-b-ec2-rule", "a.b-ec2-rule"]
    assert [queue.name for queue in should.queues] == ["perdure-instance-events-dead", "a-b-queue"]
    statements = json.loads(should.queues[1].attributes["Policy"])["Statement"]
    assert [each["Sid"] for each in statements] == [
        "CAPAEvents_a-b-ec2-rule_a-b-queue",
        "CAPAEvents_a.b-ec2-rule_a-b-queue",
    ]
    assert provider_clusters("a-b-queue", ["something"]) == ()
    assert wanted(place).rules[0].name == "a-b-queue-ec2"


class Aws:
    """A queue with a policy, and rules that deliver to nobody."""

    def __init__(self, policy: str, *rules: str) -> None:
        self.policy = policy
        self.rules = rules

    def client(self, service: str, region: str) -> Aws:
        return self

    def list_rule_names_by_target(self, **_: Any) -> Any:
        return {}

    def get_queue_url(self, *, QueueName: str) -> Any:  # noqa: N803
        if not self.policy:
            raise Absent("no queue")
        return {"QueueUrl": QueueName}

    def get_queue_attributes(self, **_: Any) -> Any:
        return {"Attributes": {"Policy": self.policy}}

    def describe_rule(self, *, Name: str) -> Any:  # noqa: N803
        if len(Name) > 64:
            raise Invalid("the name has more than 64 characters", code="ValidationException")
        if Name not in self.rules:
            raise Absent("no rule")
        return {}

    def list_targets_by_rule(self, **_: Any) -> Any:
        return {}


@pytest.mark.parametrize(
    ("cluster", "policy", "rules", "retained"),
    [
        # Somebody took the rule's target away, or the rule.
        ("a.b", True, ("a.b-ec2-rule",), "a.b-ec2-rule"),
        ("a.b", True, (), "a.b-ec2-rule"),
        # And the queue with its policy as well.
        ("c1", False, ("c1-ec2-rule",), "c1-ec2-rule"),
        ("c1", False, (), "c1-queue-ec2"),
    ],
)
def test_a_queue_of_the_providers_that_no_rule_delivers_to_stays_the_providers(
    cluster: str, policy: bool, rules: tuple[str, ...], retained: str
) -> None:
    should = provider_topology(PLACE.account, PLACE.region, [cluster])
    aws = Aws(should.queue.attributes["Policy"] if policy else "", *rules)
    place = PLACE.model_copy(update={"queue": should.queue.name})
    changes = [change.what for change in EventTopology(place, cast(Services, aws)).changes()]
    assert any(f"rule {retained}" in what for what in changes)
    if retained.endswith("-ec2-rule"):
        assert not any("c1-queue-ec2" in what or "c1-queue-dead" in what for what in changes)
        assert any(f"set the targets of the rule {retained} to {should.queue.name}" in what for what in changes)


def test_a_cluster_whose_name_is_too_long_for_the_providers_rule_gets_a_queue() -> None:
    queue = f"{'c' * 63}-queue"
    place = PLACE.model_copy(update={"queue": queue})
    changes = [change.what for change in EventTopology(place, cast(Services, Aws(""))).changes()]
    assert f"create the queue {queue}" in changes


def test_upkeep_requests_only_what_aws_accepts_for_a_fifo_queue() -> None:
    place = PLACE.model_copy(update={"queue": "hooks.fifo"})
    calls: list[tuple[str, Any]] = []

    def request(name: str, **given: Any) -> Any:
        calls.append((name, given))
        return {}

    aws = Aws("")
    for name in ("create_queue", "put_rule", "put_targets"):
        setattr(aws, name, partial(request, name))
    for change in EventTopology(place, cast(Services, aws)).changes():
        change.mend()
    dead, queue = (given for name, given in calls if name == "create_queue")
    assert (dead["QueueName"], dead["Attributes"]) == (OWN.dead_letters.name, OWN.dead_letters.attributes)
    assert queue["QueueName"] == "hooks.fifo"
    assert queue["Attributes"]["FifoQueue"] == "true"
    assert "RedrivePolicy" not in queue["Attributes"], "its dead letters would have to be a FIFO queue"
    targets = [target for name, given in calls if name == "put_targets" for target in given["Targets"]]
    assert [target["Arn"] for target in targets] == [f"{OWN.queue.arn.removesuffix(OWN.queue.name)}hooks.fifo"] * 3
    assert all(target["SqsParameters"]["MessageGroupId"] for target in targets)
    assert not any("DeadLetterConfig" in target for target in targets), "the region's own rules alone may send there"


@pytest.mark.parametrize(
    "policy", ["", "no json", "[]", '{"Statement":[7]}', '{"Statement":[{"Sid":"CAPAEvents_x_other"}]}']
)
def test_a_policy_of_somebody_elses_names_no_rules(policy: str) -> None:
    assert rules_of_policy("c1-queue", policy) == ()


def test_a_place_is_found_by_its_key_as_long_as_the_settings_name_it() -> None:
    other = PLACE.model_copy(update={"queue": "other"})
    key = key_of(PLACE, cluster="blue")
    assert key.workflow_id == "blue/EventTopology/123456789012/eu-central-1.perdure-instance-events"
    assert place_of_key(key, [other, PLACE]) == PLACE
    assert place_of_key(key, [other]) is None
