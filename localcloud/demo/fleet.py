from __future__ import annotations

from typing import Any

import boto3

from domain.instances.event_topology import topology
from domain.instances.served_queues import Place
from localcloud.aws.control import Emulator
from localcloud.aws.events_contract import Published
from localcloud.instance_groups import image_of, make_hooked_group

_TYPE = "t3.small"
_TAG = {"Key": "perdure-demo", "Value": "instances"}


class Fleet:
    def __init__(self, place: Place, emulator: Emulator) -> None:
        self._place = place
        self._emulator = emulator
        self.zone = f"{place.region}a"
        self._groups: dict[str, str] = {}

    def has_rules(self) -> bool:
        rules = self._client("events").list_rule_names_by_target(
            TargetArn=topology(self._place.account, self._place.region, self._place.queue).queue.arn
        )
        return len(rules["RuleNames"]) == len(topology(self._place.account, self._place.region).rules)

    def launch(self, *, spot: bool) -> str:
        market: dict[str, Any] = {"InstanceMarketOptions": {"MarketType": "spot"}} if spot else {}
        launched = self._client("ec2").run_instances(
            ImageId=image_of(self._client("ec2")),
            MinCount=1,
            MaxCount=1,
            InstanceType=_TYPE,
            TagSpecifications=[{"ResourceType": "instance", "Tags": [_TAG]}],
            **market,
        )
        return str(launched["Instances"][0]["InstanceId"])

    def launch_group(self, name: str) -> str:
        group = make_hooked_group(self._client, name, zone=self.zone, instance_type=_TYPE, hook_seconds=600)
        self._groups[name] = group["AutoScalingGroupARN"]
        return str(group["Instances"][0]["InstanceId"])

    def launch_into_group(self, name: str) -> str:
        client, zone = self._client, self.zone
        make_hooked_group(client, name, zone=zone, instance_type=_TYPE, hook_seconds=600, launching=True)
        client("autoscaling").set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=1)
        groups = client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[name])
        return str(groups["AutoScalingGroups"][0]["Instances"][0]["InstanceId"])

    def lifecycle_state(self, instance: str) -> str:
        found = self._client("autoscaling").describe_auto_scaling_instances(InstanceIds=[instance])
        return "".join(str(each["LifecycleState"]) for each in found["AutoScalingInstances"])

    def group_arn(self, name: str) -> str:
        return self._groups[name]

    def shrink(self, name: str) -> None:
        self._client("autoscaling").set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=0)

    def stop(self, instance: str) -> None:
        self._client("ec2").stop_instances(InstanceIds=[instance])

    def start(self, instance: str) -> None:
        self._client("ec2").start_instances(InstanceIds=[instance])

    def terminate(self, instance: str) -> None:
        self._client("ec2").terminate_instances(InstanceIds=[instance])

    def is_terminated(self, instance: str) -> bool:
        found = self._client("ec2").describe_instances(InstanceIds=[instance])["Reservations"]
        return bool(found[0]["Instances"][0]["State"]["Name"] == "terminated")

    def announce(self, kind: str, instance: str, **more: object) -> Published:
        return self._emulator.announce(kind, self._place.account, self._place.region, instance, **more)

    def end(self, group: str) -> None:
        groups = self._client("autoscaling")
        if groups.describe_auto_scaling_groups(AutoScalingGroupNames=[group])["AutoScalingGroups"]:
            groups.delete_auto_scaling_group(AutoScalingGroupName=group, ForceDelete=True)
            groups.delete_launch_configuration(LaunchConfigurationName=group)
        filters = [{"Name": f"tag:{_TAG['Key']}", "Values": [_TAG["Value"]]}]
        found = self._client("ec2").describe_instances(Filters=filters)["Reservations"]
        instances = [each for reservation in found for each in reservation["Instances"]]
        running = [each["InstanceId"] for each in instances if each["State"]["Name"] != "terminated"]
        if running:
            self._client("ec2").terminate_instances(InstanceIds=running)

    def _client(self, service: str) -> Any:
        return boto3.client(service, region_name=self._place.region)  # type: ignore[call-overload]
