"""Auto Scaling groups on the emulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from localcloud.aws.contract import IMAGE_OWNER


def image_of(ec2: Any) -> str:
    return str(ec2.describe_images(Owners=[IMAGE_OWNER])["Images"][0]["ImageId"])


def make_hooked_group(
    client: Callable[[str], Any],
    name: str,
    *,
    zone: str,
    instance_type: str,
    hook_seconds: int,
    default_result: str = "CONTINUE",
    launching: bool = False,
) -> dict[str, Any]:
    """Create a group of one instance whose termination waits for a hook; returns its description.

    `client` returns the account's boto3 client of a service. With `launching` the hook is for launches instead, and the
    group starts empty.
    """
    scaling = client("autoscaling")
    scaling.create_launch_configuration(
        LaunchConfigurationName=name, ImageId=image_of(client("ec2")), InstanceType=instance_type
    )
    scaling.create_auto_scaling_group(
        AutoScalingGroupName=name,
        LaunchConfigurationName=name,
        MinSize=0,
        MaxSize=1,
        DesiredCapacity=0 if launching else 1,
        AvailabilityZones=[zone],
    )
    scaling.put_lifecycle_hook(
        AutoScalingGroupName=name,
        LifecycleHookName="join" if launching else "drain",
        LifecycleTransition=f"autoscaling:EC2_INSTANCE_{'LAUNCHING' if launching else 'TERMINATING'}",
        HeartbeatTimeout=hook_seconds,
        DefaultResult=default_result,
    )
    groups: list[dict[str, Any]] = scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])[
        "AutoScalingGroups"
    ]
    return groups[0]
