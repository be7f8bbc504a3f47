"""The identities of instances and Auto Scaling groups: workflow ids, provider ids and ARNs; the names of the
provider's queues and rules.

An instance's lifecycle key (`domain.identity.Key`) has account and region as namespace, EC2's id as name, and no uid,
as EC2 never reuses ids. It does not name the custom resource: events may precede the AWSMachine, which may also move to
another management cluster. An instance is identified by id, account and region together, since anyone who may send to
the queue can name any id.
"""

from __future__ import annotations

import re
from typing import ClassVar, Self

from domain.identity import Key
from domain.instances.constants import GROUP_WORKFLOW, INSTANCE_WORKFLOW
from domain.model import Model

LONGEST_ID = 64
_QUEUE_SUFFIX = "-queue"

_ZONE_OF_PROVIDER_ID = re.compile(r"[^:]+:///([a-z]{2,4}(?:-[a-z]+)+-[0-9]+)[^/]*/")
_PROVIDER_ID = re.compile(r"[^:]+://.*[^/]")
_SLASHES = "aws:///zone/id".count("/")


class _RegionalKey(Model):
    account: str
    region: str

    workflow: ClassVar[str]
    named: ClassVar[str]
    """The name of the field that holds AWS's name: the instance's id or the group's name."""

    @property
    def workflow_id(self) -> str:
        return self.lifecycle.workflow_id

    @property
    def lifecycle(self) -> Key:
        return self.lifecycle_in("")

    def lifecycle_in(self, cluster: str) -> Key:
        """The lifecycle's key with the cluster whose workers run it: needed to start the lifecycle."""
        place, name = f"{self.account}/{self.region}", getattr(self, self.named)
        return Key(kind=self.workflow, namespace=place, name=name, uid="", cluster=cluster)

    @classmethod
    def of(cls, lifecycle: Key) -> Self:
        account, _, region = lifecycle.namespace.partition("/")
        return cls.model_validate({"account": account, "region": region, cls.named: lifecycle.name})

    def __str__(self) -> str:
        return self.workflow_id


class InstanceKey(_RegionalKey):
    instance_id: str

    workflow: ClassVar[str] = INSTANCE_WORKFLOW
    named: ClassVar[str] = "instance_id"


class GroupKey(_RegionalKey):
    group: str

    workflow: ClassVar[str] = GROUP_WORKFLOW
    named: ClassVar[str] = "group"


def usable_id(text: object, longest: int = LONGEST_ID) -> bool:
    """Whether the text is short, printable ASCII without space or slash, as slashes join the parts of workflow ids. No
    other form is required, because emulators have ids of their own form.
    """
    return (
        isinstance(text, str)
        and 0 < len(text) <= longest
        and text.isascii()
        and text.isprintable()
        and not set(text) & set(" /")
    )


def instance_of_provider_id(provider_id: str) -> str:
    """The instance id in a `spec.providerID` such as `aws:///eu-central-1a/i-0abc`; empty if there is none."""
    return provider_id.rsplit("/", 1)[-1] if _PROVIDER_ID.fullmatch(provider_id) else ""


def instance_of_node(provider_id: str) -> str:
    """The EC2 instance id in a Node's `spec.providerID`; empty for other clouds and for Fargate
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


class Arn(Model):
    """An ARN. In Spot events `account` is empty, and `region` is an availability zone."""

    partition: str
    service: str
    region: str
    account: str
    resource: str

    @property
    def resource_type(self) -> str:
        """The part before the resource's first slash or colon: `instance`, `dedicated-host`, `autoScalingGroup`."""
        return re.split(r"[/:]", self.resource, maxsplit=1)[0]

    @property
    def resource_id(self) -> str:
        return self.resource.rsplit("/", 1)[-1]


def parse_arn(text: str) -> Arn | None:
    pieces = text.split(":", 5)
    if len(pieces) < 6 or pieces[0] != "arn":
        return None
    _, partition, service, region, account, resource = pieces
    return Arn(partition=partition, service=service, region=region, account=account, resource=resource)


def group_of_arn(text: str) -> GroupKey | None:
    """The group in the ARN of an AWSMachinePool's `spec.providerID`; None for another ARN."""
    arn = parse_arn(text)
    if arn is None or arn.service != "autoscaling" or "autoScalingGroupName/" not in arn.resource:
        return None
    name = arn.resource.partition("autoScalingGroupName/")[2]
    return GroupKey(account=arn.account, region=arn.region, group=name) if name else None


def partition_of(region: str) -> str:
    """The region's AWS partition, such as `aws-cn`; `*` for the region `*`, as in an IAM policy's ARN."""
    if region == "*":
        return "*"
    for prefix, partition in _PARTITIONS.items():
        if region.startswith(prefix):
            return partition
    return "aws"


_PARTITIONS = {
    "cn-": "aws-cn",
    "us-gov-": "aws-us-gov",
    "eusc-": "aws-eusc",
    "us-iso-": "aws-iso",
    "us-isob-": "aws-iso-b",
    "eu-isoe-": "aws-iso-e",
    "us-isof-": "aws-iso-f",
}


def dns_suffix_of(region: str) -> str:
    """The domain of AWS's endpoints for the region, such as `amazonaws.com` in `sqs.eu-central-1.amazonaws.com`."""
    return _DNS_SUFFIXES.get(partition_of(region), "amazonaws.com")


_DNS_SUFFIXES = {
    "aws-cn": "amazonaws.com.cn",
    "aws-eusc": "amazonaws.eu",
    "aws-iso": "c2s.ic.gov",
    "aws-iso-b": "sc2s.sgov.gov",
    "aws-iso-e": "cloud.adc-e.uk",
    "aws-iso-f": "csp.hci.ic.gov",
}


def cluster_queue_name(cluster: str) -> str:
    return f"{cluster.replace('.', '-')}{_QUEUE_SUFFIX}"


def cluster_rule_name(cluster: str) -> str:
    return f"{cluster}-ec2-rule"


def cluster_of_queue(queue: str) -> str:
    """The name of the Cluster that may have this queue, with dashes in place of dots; empty if the provider gives no
    queue such a name.
    """
    cluster = queue.removesuffix(_QUEUE_SUFFIX)
    return cluster if cluster_queue_name(cluster) == queue else ""
