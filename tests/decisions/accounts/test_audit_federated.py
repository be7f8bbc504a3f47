"""What the audit finds of federated access, as tables."""

from __future__ import annotations

import pytest
from federated_objects import access, role

from starters.cli.audits.accounts.federated import left, torn

UID = "bcd456"


@pytest.mark.parametrize(
    ("name", "observed", "found"),
    [
        ("perdure-validation-uid-of-role", 1, True),  # it has been judged since
        ("perdure-validation-uid-of-role", 0, False),  # it is being judged
        ("perdure-validation-gone", 1, True),
    ],
)
def test_leftovers_of_an_interrupted_judgement_are_found(name: str, observed: int, found: bool) -> None:
    validated = role(status={"state": "Valid", "conditions": [], "observedGeneration": observed})
    assert [finding.subject for finding in torn([name], [validated])] == (
        [f"policy {name} of the payer"] if found else []
    )


@pytest.mark.parametrize(
    ("name", "tag", "found"),
    [
        (f"read-only-{UID}", "uid-of-access", False),
        (f"read-only-{UID}", "", False),  # the replaced operator's, of an access that is there
        ("read-only-zzzzzz", "", True),
        ("reader-zzzzzz", "", True),
        ("somebody-zzzzzz", "", False),
        ("somebody-zzzzzz", "gone", True),
        ("read-only", "", False),
    ],
)
def test_a_role_or_policy_without_its_access_is_found(name: str, tag: str, found: bool) -> None:
    labelled = access(meta={"labels": {"uid": UID}})
    findings = left("111122223333", [("role", name, tag)], [role()], [labelled])
    assert [finding.subject for finding in findings] == ([f"role {name} in 111122223333"] if found else [])
