"""Whose an account says that it is stays so, unless it was created just now."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from account_objects import AWS_ID
from temporalio.testing import ActivityEnvironment

from activities.aws.account_creation import tag_account
from activities.aws.session import Sessions
from domain.accounts.actions.account_creation import TagAccount
from domain.refusal import AREA_PAUSED, OBSERVE_MODE
from engine.errors import ApiError, Denied, Unavailable


class Organizations:
    """An account's tags."""

    def __init__(self, tags: dict[str, str]) -> None:
        self.tags = tags

    def get_paginator(self, _: str) -> Any:
        page = {"Tags": [{"Key": name, "Value": value} for name, value in self.tags.items()]}
        return SimpleNamespace(paginate=lambda **_: [page])

    def tag_resource(self, ResourceId: str, Tags: list[dict[str, str]]) -> None:  # noqa: N803 - boto3's words
        self.tags |= {tag["Key"]: tag["Value"] for tag in Tags}


def tagged(before: dict[str, str], tags: dict[str, str], *, fresh: bool) -> dict[str, str]:
    """The account's tags afterwards."""
    organizations = Organizations(dict(before))
    sessions = SimpleNamespace(organizations=lambda: organizations, refuse_protected=lambda _: None)
    tag_account(cast("Sessions", sessions), TagAccount(account_id=AWS_ID, tags=tags, fresh=fresh))
    return organizations.tags


OURS, THEIRS, UNNAMED = {"owner": "shard-1"}, {"owner": "other-shard"}, {"owner": ""}


@pytest.mark.parametrize(
    ("before", "tags", "after"),
    [
        ({}, OURS, OURS),
        (OURS, {**OURS, "app-code": "APP"}, {**OURS, "app-code": "APP"}),
        (THEIRS, {**OURS, "app-code": "APP"}, THEIRS),
        (THEIRS, UNNAMED, THEIRS),
        ({}, {**UNNAMED, "app-code": "APP"}, {"app-code": "APP"}),
        ({}, {"app-code": "APP"}, {"app-code": "APP"}),
    ],
)
def test_an_account_that_exists_keeps_the_owner_that_it_names(
    before: dict[str, str], tags: dict[str, str], after: dict[str, str]
) -> None:
    assert tagged(before, tags, fresh=False) == after


@pytest.mark.parametrize("tags", [OURS, UNNAMED])
def test_a_fresh_account_is_tagged_at_once(tags: dict[str, str]) -> None:
    assert tagged({}, tags, fresh=True) == tags


class Refusing(Organizations):
    def __init__(self, error: ApiError) -> None:
        super().__init__({})
        self.error = error

    def tag_resource(self, **_: object) -> None:
        raise self.error


def attempt_to_tag(error: ApiError, number: int) -> None:
    sessions = SimpleNamespace(organizations=lambda: Refusing(error), refuse_protected=lambda _: None)
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, attempt=number)
    action = TagAccount(account_id=AWS_ID, tags=OURS, fresh=True)
    environment.run(tag_account, cast("Sessions", sessions), action)


@pytest.mark.parametrize(
    "error",
    [Unavailable("not sent", code=AREA_PAUSED), Denied("not sent", code=OBSERVE_MODE)],
    ids=["pause", "observe"],
)
def test_an_account_is_tagged_however_long_perdure_may_not_write(error: ApiError) -> None:
    with pytest.raises(type(error)):
        attempt_to_tag(error, 9)


def test_an_account_that_organizations_does_not_tag_is_left_to_the_validation() -> None:
    with pytest.raises(Unavailable):
        attempt_to_tag(Unavailable("no answer"), 4)
    attempt_to_tag(Unavailable("no answer"), 5)
