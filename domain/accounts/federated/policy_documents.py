"""A federated role's custom policy and trust policy, as IAM's JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping

from domain.accounts.federated.resources import CustomPolicy, PolicyStatement


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
