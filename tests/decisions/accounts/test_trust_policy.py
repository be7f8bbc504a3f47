"""Which principals a role lets in, and whether it lets in just these."""

from __future__ import annotations

import json

import pytest

from domain.accounts.trust_policy import trust, trust_of_access, trusted, trusts_only

ONE, TWO = "arn:aws:iam::1:user/one", "arn:aws:iam::2:role/two"
BOTH = json.loads(trust(ONE, TWO))
(STATEMENT,) = BOTH["Statement"]


def test_a_policy_trusts_just_those_whom_it_names() -> None:
    assert trusts_only(BOTH, (TWO, ONE), "sts:AssumeRole")
    assert not trusts_only(trust(ONE), (ONE, TWO), "sts:AssumeRole")
    assert not trusts_only(BOTH, (ONE,), "sts:AssumeRole")
    assert (trusted(trust(TWO)), trusted(BOTH), trusted({})) == ({TWO}, {ONE, TWO}, frozenset())


def test_a_list_of_actions_is_accepted_only_where_it_is_named() -> None:
    listed = trust_of_access(ONE)
    assert trusts_only(listed, (ONE,), "sts:AssumeRole", ["sts:AssumeRole"])
    assert not trusts_only(listed, (ONE,), "sts:AssumeRole")


@pytest.mark.parametrize(
    "statements",
    [
        [STATEMENT, STATEMENT],
        [{**STATEMENT, "Condition": {}}],
        [{**STATEMENT, "Effect": "Deny"}],
        [{**STATEMENT, "Action": "sts:*"}],
        STATEMENT,
        [],
    ],
)
def test_a_policy_of_another_form_is_not_the_wanted_one(statements: object) -> None:
    assert not trusts_only({**BOTH, "Statement": statements}, (ONE, TWO), "sts:AssumeRole")
