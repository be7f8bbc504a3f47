"""ARNs, and AWS's partitions."""

from __future__ import annotations

import re

from domain.model import Model


class Arn(Model):
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
    """The domain of the region's endpoints, such as `amazonaws.com`."""
    return _DNS_SUFFIXES.get(partition_of(region), "amazonaws.com")


_DNS_SUFFIXES = {
    "aws-cn": "amazonaws.com.cn",
    "aws-eusc": "amazonaws.eu",
    "aws-iso": "c2s.ic.gov",
    "aws-iso-b": "sc2s.sgov.gov",
    "aws-iso-e": "cloud.adc-e.uk",
    "aws-iso-f": "csp.hci.ic.gov",
}
