"""An Auto Scaling group on the emulator, as demos, benchmarks and tests have it, and the image that it starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from localcloud.aws.contract import IMAGE_OWNER


def image_of(ec2: Any) -> str:
    """The id of an image that instances can be launched from."""
    return str(ec2.describe_images(Owners=[IMAGE_OWNER])["Images"][0]["ImageId"])


def make_hooked_group(
    client: Callable[[str], Any],
    name: str,
    *,
    zone: str,
    instance_type: str,
    hook_seconds: int,
    default_result: str = "CONTINUE",
) -> dict[str, Any]:
    """Make a group of one instance, whose termination waits for a hook; the group as Auto Scaling describes it.

    Args:
        client: the account's boto3 client of a service.
        name: of the group and of its launch configuration.
        zone: where its instance runs.
        instance_type: of its instance.
        hook_seconds: how long the hook waits without a heartbeat.
        default_result: what follows then.
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
        DesiredCapacity=1,
        AvailabilityZones=[zone],
    )
    scaling.put_lifecycle_hook(
        AutoScalingGroupName=name,
        LifecycleHookName="drain",
        LifecycleTransition="autoscaling:EC2_INSTANCE_TERMINATING",
        HeartbeatTimeout=hook_seconds,
        DefaultResult=default_result,
    )
    groups: list[dict[str, Any]] = scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])[
        "AutoScalingGroups"
    ]
    return groups[0]
