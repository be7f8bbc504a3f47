"""What the emulator's EC2 and Auto Scaling report, by which rules it reaches queues, and what hooks and Spot do.

Each test has an account of its own with the queue and the three rules that an installation has.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from emulator_process import Cloud, EmulatorProcess, error_of
from waiting import until

from domain.instances.event_topology import Topology, topology
from localcloud.aws.control import Emulator
from localcloud.instance_groups import image_of

pytestmark = pytest.mark.integration

REGION = "eu-central-1"


@dataclass
class Place:
    """An account with rules that lead to a queue, and what the queue was seen to hold."""

    cloud: Cloud
    account: str
    wanted: Topology
    seen: list[dict[str, Any]] = field(default_factory=list)

    def client(self, service: str) -> Any:
        return self.cloud.client(service, REGION)

    def set_up(self) -> Place:
        sqs, events = self.client("sqs"), self.client("events")
        for queue in (self.wanted.dead_letters, self.wanted.queue):
            sqs.create_queue(QueueName=queue.name, Attributes=queue.attributes)
        for rule in self.wanted.rules:
            events.put_rule(Name=rule.name, EventPattern=json.dumps(rule.pattern))
            events.put_targets(Rule=rule.name, Targets=[target.document for target in rule.targets])
        return self

    def url(self, name: str = "") -> str:
        url: str = self.client("sqs").get_queue_url(QueueName=name or self.wanted.queue.name)["QueueUrl"]
        return url

    def look(self) -> list[dict[str, Any]]:
        """Take what the queue holds; return everything seen so far."""
        sqs, url = self.client("sqs"), self.url()
        while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=0).get("Messages"):
            for message in messages:
                self.seen.append(json.loads(message["Body"]))
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return self.seen

    def until_seen(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        found: list[dict[str, Any]] = until(lambda: [each for each in self.look() if wanted(each)], "an event comes")
        return found[0]

    def states_of(self, instance: str) -> list[str]:
        details = [each["detail"] for each in self.look() if each["detail-type"].startswith("EC2 Instance State")]
        return [detail["state"] for detail in details if detail["instance-id"] == instance]

    def launch(self, **more: Any) -> str:
        ec2 = self.client("ec2")
        image = image_of(ec2)
        launched = ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1, InstanceType="t3.small", **more)
        instance: str = launched["Instances"][0]["InstanceId"]
        return instance

    def group(self, name: str, size: int, **hooks: str) -> None:
        """A group of that size; the hooks are there before its instances. Their keywords are launch and terminate."""
        autoscaling = self.client("autoscaling")
        image = image_of(self.client("ec2"))
        autoscaling.create_launch_configuration(LaunchConfigurationName=name, ImageId=image, InstanceType="t3.small")
        autoscaling.create_auto_scaling_group(
            AutoScalingGroupName=name,
            LaunchConfigurationName=name,
            MinSize=0,
            MaxSize=5,
            DesiredCapacity=0,
            AvailabilityZones=[f"{REGION}a"],
        )
        for hook, transition in hooks.items():
            autoscaling.put_lifecycle_hook(
                AutoScalingGroupName=name,
                LifecycleHookName=hook,
                LifecycleTransition=f"autoscaling:EC2_INSTANCE_{transition}",
                HeartbeatTimeout=600,
                DefaultResult="CONTINUE",
                NotificationMetadata="said",
            )
        autoscaling.set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=size)

    def members(self, name: str) -> dict[str, str]:
        groups = self.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[name])
        instances = groups["AutoScalingGroups"][0]["Instances"]
        return {instance["InstanceId"]: instance["LifecycleState"] for instance in instances}

    def state(self, instance: str) -> str:
        found = self.client("ec2").describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"][0]
        state: str = found["State"]["Name"]
        return state


@pytest.fixture
def place(payer: Cloud) -> Place:
    account = payer.new_account()
    return Place(payer.in_account(account), account, topology(account, REGION)).set_up()


def test_an_instance_announces_every_state_it_enters(place: Place) -> None:
    instance = place.launch()
    ec2 = place.client("ec2")
    ec2.stop_instances(InstanceIds=[instance])
    ec2.stop_instances(InstanceIds=[instance])
    ec2.start_instances(InstanceIds=[instance])
    ec2.terminate_instances(InstanceIds=[instance])
    ec2.terminate_instances(InstanceIds=[instance])
    assert error_of(lambda: ec2.start_instances(InstanceIds=[instance])) == "IncorrectInstanceState"
    ups, downs = ["pending", "running"], ["stopping", "stopped"]
    assert place.states_of(instance) == [*ups, *downs, *ups, "shutting-down", "terminated"]
    event = place.seen[0]
    assert (event["account"], event["region"], event["source"]) == (place.account, REGION, "aws.ec2")
    assert len({each["id"] for each in place.seen}) == len(place.seen)


def test_states_in_between_last_as_long_as_the_settings_say(place: Place, emulator: Emulator) -> None:
    emulator.config(run_instances_seconds=600, terminate_instances_seconds=600)
    instance = place.launch()
    assert place.state(instance) == "pending"
    emulator.clock(advance_seconds=601)
    until(lambda: place.states_of(instance) == ["pending", "running"], "it runs, without a request that observes it")
    place.client("ec2").terminate_instances(InstanceIds=[instance])
    assert place.state(instance) == "shutting-down"
    emulator.clock(advance_seconds=601)
    assert place.state(instance) == "terminated"


def test_an_event_on_its_way_survives_a_restart(own_emulator: EmulatorProcess) -> None:
    own_emulator.start()
    with own_emulator.control() as emulator:
        account = emulator.health().payer_account
        emulator.config(run_instances_seconds=600)
        emulator.event_fault("drop", detail_type="EC2 Spot*")
    place = Place(own_emulator.cloud(), account, topology(account, REGION)).set_up()
    place.group("held", 1, wait="LAUNCHING")
    (instance,) = place.members("held")
    token = place.until_seen(lambda each: "Lifecycle Action" in each["detail-type"])["detail"]["LifecycleActionToken"]
    own_emulator.end(signal.SIGTERM)
    own_emulator.start()
    place.cloud = own_emulator.cloud()
    with own_emulator.control() as emulator:
        assert [fault.detail_type for fault in emulator.event_faults()] == ["EC2 Spot*"]
        emulator.clock(advance_seconds=200)
    assert place.members("held") == {instance: "Pending:Wait"}
    with own_emulator.control() as emulator:
        emulator.clock(advance_seconds=401)
    until(lambda: place.states_of(instance) == ["pending", "running"], "it runs")
    until(lambda: place.members("held") == {instance: "InService"}, "the hook's time is over")
    named = {"AutoScalingGroupName": "held", "LifecycleHookName": "wait", "LifecycleActionResult": "CONTINUE"}
    late = place.client("autoscaling").complete_lifecycle_action
    assert error_of(lambda: late(LifecycleActionToken=token, **named)) == "ValidationError"


def test_a_rule_that_is_off_or_a_queue_that_admits_no_sender_delivers_nothing(place: Place) -> None:
    events, sqs = place.client("events"), place.client("sqs")
    ec2_rule = place.wanted.rules[0].name
    events.disable_rule(Name=ec2_rule)
    place.launch()
    assert place.look() == []
    events.enable_rule(Name=ec2_rule)
    sqs.set_queue_attributes(QueueUrl=place.url(), Attributes={"Policy": ""})
    instance = place.launch()
    assert place.look() == []
    dead = sqs.receive_message(
        QueueUrl=place.url(place.wanted.dead_letters.name), MaxNumberOfMessages=10, MessageAttributeNames=["All"]
    )["Messages"]
    assert {json.loads(each["Body"])["detail"]["instance-id"] for each in dead} == {instance}
    assert dead[0]["MessageAttributes"]["RULE_ARN"]["StringValue"] == place.wanted.rules[0].arn


def test_events_are_dropped_doubled_and_reordered_on_request(place: Place, emulator: Emulator) -> None:
    emulator.event_fault("drop", account=place.account, count=1)
    emulator.event_fault("double", account=place.account, count=1, delay_seconds=0)
    instance = place.launch()
    assert place.states_of(instance) == ["running", "running"]
    assert place.seen[0]["id"] == place.seen[1]["id"]
    emulator.event_fault("reorder", account=place.account, count=1, delay_seconds=3600)
    place.client("ec2").stop_instances(InstanceIds=[instance])
    assert place.states_of(instance)[2:] == ["stopped", "stopping"]
    emulator.clock(advance_seconds=3601)
    emulator.event_fault("delay", account=place.account, count=1, delay_seconds=3600)
    place.client("ec2").terminate_instances(InstanceIds=[instance])
    assert place.states_of(instance)[4:] == ["terminated"]
    emulator.clock(advance_seconds=3601)
    until(lambda: place.states_of(instance)[5:] == ["shutting-down"], "the delayed one comes")
    mine = [record for record in emulator.events() if record.event["account"] == place.account]
    assert [record.queues for record in mine if record.fault] == [0, 1, 1, 1, 1]


def test_a_reordered_event_without_a_successor_comes_once_after_its_delay(place: Place, emulator: Emulator) -> None:
    instance = place.launch()
    assert place.states_of(instance) == ["pending", "running"]
    emulator.event_fault("drop", account=place.account, count=1)
    emulator.event_fault("reorder", account=place.account, count=1, delay_seconds=3600)
    place.client("ec2").stop_instances(InstanceIds=[instance])
    assert place.states_of(instance)[2:] == []
    emulator.clock(advance_seconds=3601)
    until(lambda: place.states_of(instance)[2:] == ["stopped"], "the event comes after its delay")
    place.client("ec2").terminate_instances(InstanceIds=[instance])
    assert place.states_of(instance)[3:] == ["shutting-down", "terminated"]


def test_a_terminating_instance_waits_for_its_hook(place: Place, emulator: Emulator) -> None:
    place.group("draining", 1, drain="TERMINATING")
    (instance,) = place.members("draining")
    autoscaling = place.client("autoscaling")
    named = {"AutoScalingGroupName": "draining", "LifecycleHookName": "drain"}
    (hook,) = autoscaling.describe_lifecycle_hooks(AutoScalingGroupName="draining")["LifecycleHooks"]
    assert "RoleARN" not in hook
    assert (hook["HeartbeatTimeout"], hook["GlobalTimeout"]) == (600, 60_000)
    autoscaling.set_desired_capacity(AutoScalingGroupName="draining", DesiredCapacity=0)
    event = place.until_seen(lambda each: each["detail-type"] == "EC2 Instance-terminate Lifecycle Action")
    token = event["detail"]["LifecycleActionToken"]
    assert (event["detail"]["EC2InstanceId"], event["detail"]["NotificationMetadata"]) == (instance, "said")
    assert place.members("draining") == {instance: "Terminating:Wait"}
    for _ in range(3):  # each heartbeat is worth ten minutes
        emulator.clock(advance_seconds=500)
        autoscaling.record_lifecycle_action_heartbeat(LifecycleActionToken=token, **named)
    assert place.state(instance) == "running"
    autoscaling.complete_lifecycle_action(LifecycleActionToken=token, LifecycleActionResult="CONTINUE", **named)
    assert (place.members("draining"), place.state(instance)) == ({}, "terminated")
    result = place.until_seen(lambda each: each["detail-type"] == "EC2 Instance Terminate Successful")
    assert result["detail"]["EC2InstanceId"] == instance
    again = {"LifecycleActionToken": token, "LifecycleActionResult": "CONTINUE", **named}
    assert error_of(lambda: autoscaling.complete_lifecycle_action(**again)) == "ValidationError"


@pytest.mark.slow
def test_heartbeats_do_not_hold_an_instance_for_ever(place: Place, emulator: Emulator) -> None:
    place.group("endless", 1, drain="TERMINATING")
    (instance,) = place.members("endless")
    autoscaling = place.client("autoscaling")
    autoscaling.set_desired_capacity(AutoScalingGroupName="endless", DesiredCapacity=0)
    named = {"AutoScalingGroupName": "endless", "LifecycleHookName": "drain", "InstanceId": instance}
    for _ in range(119):  # of ten minutes each there may be a hundred, whatever the heartbeats
        emulator.clock(advance_seconds=500)
        autoscaling.record_lifecycle_action_heartbeat(**named)
    assert place.state(instance) == "running"
    emulator.clock(advance_seconds=599)
    assert error_of(lambda: autoscaling.record_lifecycle_action_heartbeat(**named)) == "ValidationError"
    assert place.state(instance) == "terminated"


def test_an_abandoned_launch_is_replaced(place: Place) -> None:
    place.group("launching", 1, ready="LAUNCHING")
    (first,) = place.members("launching")
    autoscaling = place.client("autoscaling")
    named = {"AutoScalingGroupName": "launching", "LifecycleHookName": "ready"}
    autoscaling.complete_lifecycle_action(InstanceId=first, LifecycleActionResult="ABANDON", **named)
    (second,) = place.members("launching")
    assert (place.state(first), place.state(second)) == ("terminated", "running")
    autoscaling.complete_lifecycle_action(InstanceId=second, LifecycleActionResult="CONTINUE", **named)
    assert place.members("launching") == {second: "InService"}
    results = [each["detail-type"] for each in place.look() if "Launch " in each["detail-type"]]
    assert results == ["EC2 Instance Launch Unsuccessful", "EC2 Instance Launch Successful"]
    activities = autoscaling.describe_scaling_activities(AutoScalingGroupName="launching")["Activities"]
    assert [each["StatusCode"] for each in activities] == ["Successful", "Successful", "Failed"]


def test_spot_takes_what_it_announced(place: Place, emulator: Emulator) -> None:
    spot, other = place.launch(InstanceMarketOptions={"MarketType": "spot"}), place.launch()
    ec2 = place.client("ec2")
    emulator.announce("rebalance", place.account, REGION, spot)
    emulator.announce("spot", place.account, REGION, spot, action="terminate")
    with pytest.raises(Exception, match="no Spot instance"):
        emulator.announce("spot", place.account, REGION, other)
    place.until_seen(lambda each: each["detail-type"] == "EC2 Spot Instance Interruption Warning")
    place.until_seen(lambda each: each["detail-type"] == "EC2 Instance Rebalance Recommendation")

    def status() -> str:
        filters = [{"Name": "instance-id", "Values": [spot]}]
        (request,) = ec2.describe_spot_instance_requests(Filters=filters)["SpotInstanceRequests"]
        code: str = request["Status"]["Code"]
        return code

    assert (status(), place.state(spot)) == ("marked-for-termination", "running")
    emulator.clock(advance_seconds=121)
    until(lambda: place.state(spot) == "terminated", "Spot takes it")
    assert (status(), place.state(other)) == ("instance-terminated-no-capacity", "running")


def test_a_scheduled_event_is_announced_and_listed_moved_and_cancelled(place: Place, emulator: Emulator) -> None:
    instance = place.launch()

    def listed() -> list[dict[str, Any]]:
        (status,) = place.client("ec2").describe_instance_status(InstanceIds=[instance])["InstanceStatuses"]
        events: list[dict[str, Any]] = status.get("Events", [])
        return events

    assert listed() == []
    start = 1_900_000_000.0
    announced = emulator.announce("health", place.account, REGION, instance, start=start)
    (event,) = listed()
    assert (event["Code"], event["NotBefore"].timestamp()) == ("instance-retirement", start)
    moved = {"event": announced.event, "start": start + 3600}
    emulator.announce("health", place.account, REGION, instance, **moved)
    assert [each["NotBefore"].timestamp() for each in listed()] == [start + 3600]
    emulator.announce("health", place.account, REGION, instance, status="closed", entity_status="RESOLVED", **moved)
    assert [each["Description"].startswith("[Canceled]") for each in listed()] == [True]
    until(lambda: len([each for each in place.look() if each["source"] == "aws.health"]) == 3, "all three are reported")
    details = [each["detail"] for each in place.seen if each["source"] == "aws.health"]
    assert len({detail["eventArn"] for detail in details}) == 1, "they are of one event"
    assert len({detail["communicationId"] for detail in details}) == 3, "and a message of their own each"


def test_events_of_put_events_carry_their_account(place: Place) -> None:
    events = place.client("events")
    entry = {
        "Source": "aws.ec2",
        "DetailType": "EC2 Instance State-change Notification",
        "Detail": '{"instance-id": "i-1", "state": "<region>"}',
    }
    events.put_events(Entries=[entry])
    event = place.until_seen(lambda each: True)
    assert (event["account"], event["detail"]["state"]) == (place.account, "<region>")
