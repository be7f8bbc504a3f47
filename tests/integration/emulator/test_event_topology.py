"""A place's queues and rules on the emulator: made once, mended by content, others' left alone; events arrive."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from emulator_process import Cloud
from temporalio.testing import ActivityEnvironment

from activities.aws.queue_account_roles import Places
from activities.instances.event_topology_upkeep import TopologyActivities
from domain.decision import Outcome
from domain.instances.event_topology_upkeep import KeepTopology, TopologyWorld, key_of
from domain.instances.served_queues import Place
from localcloud.aws.control import Emulator

pytestmark = pytest.mark.integration

REGION = "eu-central-1"


class Upkeep:
    """The activity in an account of its own."""

    def __init__(self, cloud: Cloud, place: Place, *, observing: bool = False) -> None:
        self.cloud, self.place = cloud, place
        callers = Places(connections=4, observing=observing)
        self.activities = TopologyActivities([place], callers.caller, group_prefix="", observing=observing)

    async def look(self, *, dry_run: bool = False, place: Place | None = None) -> TopologyWorld:
        action = KeepTopology(key=key_of(place or self.place), dry_run=dry_run)
        world = await ActivityEnvironment().run(self.activities.keep_topology, action)
        assert isinstance(world, TopologyWorld)
        return world

    def client(self, service: str) -> Any:
        return self.cloud.client(service, REGION)

    def url(self) -> str:
        url: str = self.client("sqs").get_queue_url(QueueName=self.place.queue)["QueueUrl"]
        return url

    def attributes(self) -> dict[str, str]:
        found: dict[str, str] = self.client("sqs").get_queue_attributes(QueueUrl=self.url(), AttributeNames=["All"])[
            "Attributes"
        ]
        return found


@pytest.fixture
def as_process(payer: Cloud) -> Iterator[pytest.MonkeyPatch]:
    """AWS's libraries in this process find the emulator and the payer's keys."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", payer.endpoint)
        patch.setenv("AWS_ACCESS_KEY_ID", payer.credentials["aws_access_key_id"])
        patch.setenv("AWS_SECRET_ACCESS_KEY", payer.credentials["aws_secret_access_key"])
        yield patch


@pytest.fixture
def upkeep(payer: Cloud, as_process: pytest.MonkeyPatch) -> Upkeep:
    account = payer.new_account()
    role = f"arn:aws:iam::{account}:role/OrganizationAccountAccessRole"
    return Upkeep(payer.in_account(account), Place(account=account, region=REGION, role=role))


async def test_a_place_is_set_up_once_and_events_arrive(upkeep: Upkeep, emulator: Emulator) -> None:
    planned = (await upkeep.look(dry_run=True)).decision
    assert (planned.phase, len(planned.planned)) == ("Differs", 8)
    made = (await upkeep.look()).decision
    assert (made.phase, made.outcome) == ("Kept", Outcome.SETTLED)
    writes = emulator.ledger().mutating()
    decision = (await upkeep.look()).decision
    assert "up to date" in decision.why
    assert emulator.ledger().mutating() == writes, "a look that finds all as it should be writes nothing"
    emulator.publish(upkeep.place.account, REGION, "aws.ec2", "EC2 Instance State-change Notification", {"state": "x"})
    (message,) = upkeep.client("sqs").receive_message(QueueUrl=upkeep.url(), WaitTimeSeconds=0)["Messages"]
    assert json.loads(message["Body"])["account"] == upkeep.place.account
    tags = upkeep.client("sqs").list_queue_tags(QueueUrl=upkeep.url())["Tags"]
    assert tags["owned-by"] == "perdure"


async def test_drift_is_corrected_and_foreign_rules_are_left(upkeep: Upkeep) -> None:
    await upkeep.look()
    sqs, events = upkeep.client("sqs"), upkeep.client("events")
    rule = f"{upkeep.place.queue}-ec2"
    sqs.set_queue_attributes(QueueUrl=upkeep.url(), Attributes={"Policy": "", "VisibilityTimeout": "5"})
    events.put_rule(Name=rule, EventPattern='{"source":["nobody"]}', State="DISABLED")
    events.remove_targets(Rule=rule, Ids=[upkeep.place.queue])
    events.put_targets(Rule=rule, Targets=[{"Id": "another", "Arn": f"arn:aws:sqs:{REGION}:1:another"}])
    corrected = (await upkeep.look()).decision
    assert corrected.why.count(";") == 2
    assert upkeep.attributes()["VisibilityTimeout"] == "60"
    assert len(json.loads(upkeep.attributes()["Policy"])["Statement"]) == 3
    assert events.describe_rule(Name=rule)["State"] == "ENABLED"
    targets = {target["Id"] for target in events.list_targets_by_rule(Rule=rule)["Targets"]}
    assert targets == {"another", upkeep.place.queue}
    assert "up to date" in (await upkeep.look()).decision.why


async def test_a_queue_of_the_providers_is_taken_over(upkeep: Upkeep) -> None:
    place = upkeep.place.model_copy(update={"queue": "my-cluster-queue"})
    provider = Upkeep(upkeep.cloud, place)
    sqs, events = upkeep.client("sqs"), upkeep.client("events")
    url = sqs.create_queue(QueueName=place.queue, Attributes={"ReceiveMessageWaitTimeSeconds": "20"})["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    listed = {"instance-id": ["i-1", "i-2"], "state": ["shutting-down", "terminated"]}
    pattern = {"source": ["aws.ec2"], "detail-type": ["EC2 Instance State-change Notification"], "detail": listed}
    events.put_rule(Name="my.cluster-ec2-rule", EventPattern=json.dumps(pattern), State="DISABLED")
    events.put_targets(Rule="my.cluster-ec2-rule", Targets=[{"Id": place.queue, "Arn": arn}])
    await provider.look()
    rule = events.describe_rule(Name="my.cluster-ec2-rule")
    assert "instance-id" not in json.loads(rule["EventPattern"])["detail"]
    assert rule["State"] == "ENABLED"
    assert [each["Name"] for each in events.list_rules()["Rules"]] == ["my.cluster-ec2-rule"]
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert json.loads(found["Policy"])["Statement"][0]["Sid"] == "CAPAEvents_my.cluster-ec2-rule_my-cluster-queue"
    assert "up to date" in (await provider.look()).decision.why


async def test_the_provider_can_go_on_with_what_was_taken_over(upkeep: Upkeep, emulator: Emulator) -> None:
    """As it does when its gate is on again: the queue as it makes it, the rule read, extended and enabled."""
    place = upkeep.place.model_copy(update={"queue": "my-cluster-queue"})
    sqs, events = upkeep.client("sqs"), upkeep.client("events")
    made = {"QueueName": place.queue, "Attributes": {"ReceiveMessageWaitTimeSeconds": "20"}}
    url = sqs.create_queue(**made)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    states = {"state": ["shutting-down", "terminated"]}
    pattern = {"source": ["aws.ec2"], "detail-type": ["EC2 Instance State-change Notification"], "detail": states}
    events.put_rule(Name="my.cluster-ec2-rule", EventPattern=json.dumps(pattern), State="DISABLED")
    events.put_targets(Rule="my.cluster-ec2-rule", Targets=[{"Id": place.queue, "Arn": arn}])
    await Upkeep(upkeep.cloud, place).look()

    assert sqs.create_queue(**made)["QueueUrl"] == url
    extended = json.loads(events.describe_rule(Name="my.cluster-ec2-rule")["EventPattern"])
    assert set(extended) == set(pattern)
    assert set(states["state"]) <= set(extended["detail"]["state"])
    extended["detail"]["instance-id"] = ["i-1"]
    events.put_rule(Name="my.cluster-ec2-rule", EventPattern=json.dumps(extended), State="ENABLED")
    (target,) = events.list_targets_by_rule(Rule="my.cluster-ec2-rule")["Targets"]
    assert (target["Id"], target["Arn"]) == (place.queue, arn)
    for instance in ("i-1", "i-2"):
        detail = {"instance-id": instance, "state": "terminated"}
        emulator.publish(place.account, REGION, "aws.ec2", "EC2 Instance State-change Notification", detail)
    messages = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=0, MaxNumberOfMessages=10)["Messages"]
    assert [json.loads(each["Body"])["detail"]["instance-id"] for each in messages] == ["i-1"]


async def test_a_refusal_is_reported_and_observed_again(upkeep: Upkeep, emulator: Emulator) -> None:
    emulator.fault("events", "PutRule", kind="denied", account=upkeep.place.account, count=1)
    refused = (await upkeep.look()).decision
    assert (refused.phase, refused.outcome) == ("Waiting", Outcome.WAITING)
    assert "PutRule" in refused.why
    assert refused.deadline is not None
    assert (await upkeep.look()).decision.phase == "Kept"


async def test_observing_writes_nothing(upkeep: Upkeep, emulator: Emulator) -> None:
    observer = Upkeep(upkeep.cloud, upkeep.place, observing=True)
    emulator.reset_ledger()
    assert (await observer.look()).decision.phase == "Differs"
    assert emulator.ledger().mutating() == 0


async def test_a_place_that_the_settings_name_no_more_is_left_unchanged(upkeep: Upkeep, emulator: Emulator) -> None:
    emulator.reset_ledger()
    world = await upkeep.look(place=upkeep.place.model_copy(update={"queue": "former"}))
    assert (world.exists, world.decision.outcome) == (False, Outcome.GONE)
    assert emulator.ledger().total() == 0
