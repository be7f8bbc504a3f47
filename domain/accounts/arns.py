"""ARNs of roles and policies. The ConfigMap's key `fedramp` chooses the partition of AWS with which they begin."""

from __future__ import annotations


def partition_of(*, fedramp: bool) -> str:
    return "aws-us-gov" if fedramp else "aws"


def role_arn(partition: str, account_id: str, name: str) -> str:
    return f"arn:{partition}:iam::{account_id}:role/{name}"


def policy_arn(partition: str, account_id: str, name: str) -> str:
    return f"arn:{partition}:iam::{account_id}:policy/{name}"
