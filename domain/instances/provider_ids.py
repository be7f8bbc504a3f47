"""The instance and its region, or the Auto Scaling group, in a `spec.providerID`."""

from __future__ import annotations

import re

from domain.instances.arns import parse_arn
from domain.instances.workflow_ids import GroupKey

_ZONE_OF_PROVIDER_ID = re.compile(r"[^:]+:///([a-z]{2,4}(?:-[a-z]+)+-[0-9]+)[^/]*/")
_PROVIDER_ID = re.compile(r"[^:]+://.*[^/]")
_SLASHES = "aws:///zone/id".count("/")


def instance_of_provider_id(provider_id: str) -> str:
    """The instance id in a provider id such as `aws:///eu-central-1a/i-0abc`; empty if there is none."""
    return provider_id.rsplit("/", 1)[-1] if _PROVIDER_ID.fullmatch(provider_id) else ""


def instance_of_node(provider_id: str) -> str:
    """The EC2 instance id in a Node's provider id; empty for other clouds and for Fargate
    (`aws:///ZONE/UUID/fargate-ip-10-0-0-1.REGION.compute.internal`).
    """
    ours = provider_id.startswith("aws://") and provider_id.count("/") <= _SLASHES
    return instance_of_provider_id(provider_id) if ours else ""


def region_of_provider_id(provider_id: str) -> str:
    """The region of the provider id's zone, which may be a local zone (`us-west-2-lax-1a`); empty if the id has no
    zone.
    """
    found = _ZONE_OF_PROVIDER_ID.match(provider_id)
    return found.group(1) if found else ""


def group_of_arn(text: str) -> GroupKey | None:
    """The group in an AWSMachinePool's provider id, which is an ARN; None for another ARN."""
    arn = parse_arn(text)
    if arn is None or arn.service != "autoscaling" or "autoScalingGroupName/" not in arn.resource:
        return None
    name = arn.resource.partition("autoScalingGroupName/")[2]
    return GroupKey(account=arn.account, region=arn.region, group=name) if name else None
