"""Trust policies: which principals may assume an IAM role."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import cast

Policy = Mapping[str, object] | str


def trust(*principals: str) -> str:
    allowed = {"Effect": "Allow", "Principal": {"AWS": list(principals)}, "Action": "sts:AssumeRole"}
    return json.dumps({"Version": "2012-10-17", "Statement": [allowed]})


def trust_of_access(principal: str) -> str:
    """The trust policy of a federated access, in the replaced operator's spelling."""
    allowed = {"Effect": "Allow", "Action": ["sts:AssumeRole"], "Principal": {"AWS": [principal]}}
    return json.dumps({"Version": "2012-10-17", "Statement": [allowed]}, separators=(",", ":"))


def trusts_only(policy: Policy, principals: tuple[str, ...], *actions: str | list[str]) -> bool:
    """Whether the policy has one statement, which allows just these principals to assume the role, without conditions.
    `actions` are accepted spellings of the action.
    """
    statements = _parsed(policy).get("Statement", [])
    if not isinstance(statements, list) or len(statements) != 1:
        return False
    (statement,) = statements
    allows = statement.get("Effect") == "Allow" and statement.get("Action") in actions and "Condition" not in statement
    return allows and trusted(policy) == frozenset(principals)


def trusted(policy: Policy) -> frozenset[str]:
    statements = _parsed(policy).get("Statement", [])
    found: set[str] = set()
    for statement in statements if isinstance(statements, list) else [statements]:
        principal = statement.get("Principal", {})
        named = principal.get("AWS", []) if isinstance(principal, dict) else []
        found.update([named] if isinstance(named, str) else named)
    return frozenset(found)


def _parsed(policy: Policy) -> dict[str, list[dict[str, object]]]:
    found = json.loads(policy) if isinstance(policy, str) else policy
    return cast("dict[str, list[dict[str, object]]]", found)
