"""The quotas that a pool may raise: AWS's quota code and its service.

The first seven are the replaced operator's. The others are the quotas of the same services that clusters exhaust
soonest. A code belongs to one service in all regions, and never changes
(https://docs.aws.amazon.com/general/latest/gr/aws-service-information.html).
"""

from __future__ import annotations

from collections.abc import Mapping

# The quota that the ConfigMap's `quota.vcpu` requests.
VCPUS = "L-1216C47A"

SERVICE_OF: Mapping[str, str] = {
    "L-0EA8095F": "vpc",  # rules per security group
    VCPUS: "ec2",  # running On-Demand Standard instances, in vCPUs
    "L-69A177A2": "elasticloadbalancing",  # Network Load Balancers per Region
    "L-0263D0A3": "ec2",  # EC2-VPC Elastic IPs
    "L-2AEEBF1A": "vpc",  # rules per network ACL
    "L-7A658B76": "ebs",  # storage for gp3 volumes, in TiB
    "L-FE177D64": "iam",  # roles per account
    "L-F678F1CE": "vpc",  # VPCs per Region
    "L-A4707A72": "vpc",  # internet gateways per Region
    "L-FE5A380F": "vpc",  # NAT gateways per Availability Zone
    "L-DF5E4CA3": "vpc",  # network interfaces per Region
    "L-E79EC296": "vpc",  # security groups per Region
    "L-407747CB": "vpc",  # subnets per VPC
    "L-29B6F2EB": "vpc",  # interface endpoints per VPC
    "L-1B52E74A": "vpc",  # gateway endpoints per Region
    "L-53DA6B97": "elasticloadbalancing",  # Application Load Balancers per Region
    "L-E9E9831D": "elasticloadbalancing",  # Classic Load Balancers per Region
    "L-D18FCD1D": "ebs",  # storage for gp2 volumes, in TiB
}
