"""The custom policy of a federated role in a customer's account: when it gets another default version."""

from __future__ import annotations

import json

import pytest

from domain.accounts.federated.custom_policy import differs, document, versions_to_delete
from domain.accounts.federated.resources import CustomPolicy, PolicyStatement

WANTED = document(CustomPolicy(name="p", aws_statements=(PolicyStatement(effect="Allow", action=("s3:Get*",)),)))


def test_a_policy_in_another_spelling_is_left_as_it_is() -> None:
    assert not differs(WANTED, WANTED)
    assert not differs(json.loads(WANTED), WANTED)
    assert not differs(json.dumps(json.loads(WANTED), indent=2, sort_keys=True), WANTED)


def test_a_policy_that_allows_something_else_is_replaced() -> None:
    assert differs(WANTED.replace("s3:Get*", "s3:*"), WANTED)
    assert differs({}, WANTED)


@pytest.mark.parametrize(("spare", "deleted"), [("", ""), ("abc", ""), ("abcd", "a"), ("abcde", "ab")])
def test_only_the_oldest_versions_make_room_for_another_one(spare: str, deleted: str) -> None:
    assert "".join(versions_to_delete(spare)) == deleted
