"""IAM policy documents, and names of objects in a customer's account.

IAM's limits (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html): a role's name has at most 64
characters, a policy's name at most 128. Both consist of letters, digits and `+=,.@_-`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping

from domain.accounts.constants import SUFFIX_LENGTH
from domain.accounts.federated.resources import (
    AWSFederatedAccountAccess,
    AWSFederatedRole,
    CustomPolicy,
    PolicyStatement,
)
from domain.accounts.naming import suffix_of

_NAME = re.compile(r"[\w+=,.@-]+", re.ASCII)
LONGEST_ROLE, LONGEST_POLICY = 64, 128
_CONSOLES = {"aws-us-gov": "signin.amazonaws-us-gov.com"}


def document(policy: CustomPolicy) -> str:
    statements = [_statement(each) for each in policy.aws_statements]
    return _compact({"Version": "2012-10-17", "Statement": statements})


def _statement(statement: PolicyStatement) -> dict[str, object]:
    found: dict[str, object] = {"Effect": statement.effect, "Action": list(statement.action)}
    if statement.resource:
        found["Resource"] = list(statement.resource)
    if statement.condition is not None:
        tests = {"StringEquals": statement.condition.string_equals, "StringLike": statement.condition.string_like}
        found["Condition"] = {name: dict(sorted(values.items())) for name, values in tests.items() if values}
    if statement.principal is not None:
        found["Principal"] = {"AWS": list(statement.principal.aws)}
    return found


def trust(principal: str) -> str:
    allowed = {"Effect": "Allow", "Action": ["sts:AssumeRole"], "Principal": {"AWS": [principal]}}
    return _compact({"Version": "2012-10-17", "Statement": [allowed]})


def _compact(value: Mapping[str, object]) -> str:
    return json.dumps(value, separators=(",", ":"))


def uid_of(access: AWSFederatedAccountAccess) -> str:
    """The six-character suffix of the access's names in AWS: the recorded one, else derived from the object's uid."""
    return access.place.uid or suffix_of(access.metadata.uid)


def named(name: str, uid: str) -> str:
    return f"{name}-{uid}"


def policy_arn(partition: str, account_id: str, name: str) -> str:
    return f"arn:{partition}:iam::{account_id}:policy/{name}"


def console_url(partition: str, account_id: str, role: str) -> str:
    host = _CONSOLES.get(partition, "signin.aws.amazon.com")
    return f"https://{host}/switchrole?account={account_id}&roleName={role}"


def name_fault(name: str, longest: int) -> str:
    """Why IAM would refuse the name followed by a uid; empty if IAM would accept it."""
    room = longest - SUFFIX_LENGTH - 1
    if len(name) > room:
        return f"{name!r} has {len(name)} characters; with the uid, IAM allows {room}"
    return "" if _NAME.fullmatch(name) else f"{name!r} is not a valid name in IAM: letters, digits and +=,.@_- only"


def wanted_digest(access: AWSFederatedAccountAccess, role: AWSFederatedRole, partition: str) -> str:
    spec = role.spec
    custom = spec.aws_custom_policy if spec.aws_custom_policy.name else CustomPolicy()
    content = (
        *(role.metadata.name, partition, access.spec.external_customer_aws_iam_arn, spec.role_description),
        *(sorted(set(spec.aws_managed_policies)), custom.name, document(custom)),
    )
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
