"""The custom policy of a federated role, as IAM's JSON.

If a policy in an account differs from this JSON, it gets another default version and stays attached.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from domain.accounts.federated.resources import CustomPolicy, PolicyStatement

_MOST_VERSIONS = 5  # of a policy (IAM API reference: CreatePolicyVersion)


def document(policy: CustomPolicy) -> str:
    statements = [_statement(each) for each in policy.aws_statements]
    return json.dumps({"Version": "2012-10-17", "Statement": statements}, separators=(",", ":"))


def differs(default_version: Mapping[str, object] | str, wanted: str) -> bool:
    found = json.loads(default_version) if isinstance(default_version, str) else default_version
    return bool(found != json.loads(wanted))


def versions_to_delete(spare: Sequence[str]) -> Sequence[str]:
    """The versions to delete before another is created; `spare` are all but the default version, oldest first."""
    return spare[: max(0, len(spare) + 2 - _MOST_VERSIONS)]


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
