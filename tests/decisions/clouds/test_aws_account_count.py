"""The count of the organization's accounts, which limits the creation of further ones."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from account_objects import AWS_ID

from activities.aws.organization import count_active
from activities.aws.session import Sessions
from engine.errors import Unavailable


def payer(*pages: list[dict[str, str]]) -> Sessions:
    """A payer's session whose ListAccounts has these pages."""
    answers: list[dict[str, Any]] = [{"Accounts": page, "ResponseMetadata": {"HTTPHeaders": {}}} for page in pages]
    paginator = SimpleNamespace(paginate=lambda: answers)
    organizations = SimpleNamespace(get_paginator=lambda _: paginator)
    return cast("Sessions", SimpleNamespace(organizations=lambda: organizations))


def test_accounts_on_every_page_are_counted() -> None:
    account = {"Id": AWS_ID, "State": "ACTIVE"}
    assert count_active(payer([], [account, {**account, "State": "SUSPENDED"}], [], [account])) == 2


def test_a_list_without_the_payer_is_not_counted() -> None:
    with pytest.raises(Unavailable):
        count_active(payer([], []))
