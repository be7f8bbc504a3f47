"""Reads accounts' OUs and tags, in bulk where AWS allows it, and corrects them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from activities.aws import organization
from activities.aws.session import Payer, Sessions
from engine.errors import Absent, ApiError, Conflict

# Up to this many accounts of one parent are asked for one by one.
_FEW = 3
_THERE_ALREADY = "DuplicateAccountException"


def misplaced(sessions: Sessions, wanted: Mapping[str, str]) -> dict[str, str | ApiError]:
    """By account: the actual parent where it is not the desired one, or the error."""
    payer, found = sessions.payer(), dict[str, str | ApiError]()
    by_parent: defaultdict[str, list[str]] = defaultdict(list)
    for account_id, parent in wanted.items():
        by_parent[parent].append(account_id)
    for parent, accounts in by_parent.items():
        found.update(_not_in(payer, parent, accounts))
    return found


def _not_in(payer: Payer, parent: str, accounts: Iterable[str]) -> dict[str, str | ApiError]:
    asked = list(accounts)
    if len(asked) > _FEW:
        try:
            children = _children(payer, parent)
        except ApiError:  # one by one: each then has its own error
            children = set()
        asked = [account_id for account_id in asked if account_id not in children]
    found = {account_id: _parent(payer, account_id) for account_id in asked}
    return {account_id: there for account_id, there in found.items() if there != parent}


def _children(payer: Payer, parent: str) -> set[str]:
    pages = payer.organizations().get_paginator("list_children").paginate(ParentId=parent, ChildType="ACCOUNT")
    return {child["Id"] for page in pages for child in page["Children"]}


def _parent(payer: Payer, account_id: str) -> str | ApiError:
    try:
        parent = organization.parent_of(payer, account_id)
    except ApiError as error:
        return error
    return parent or Absent(f"account {account_id} is not in the organization")


def move(sessions: Sessions, account_id: str, source: str, target: str) -> None:
    """Move an account between parents; one that is there already counts as done.

    Raises:
        ApiError: it is protected, or AWS refuses.
    """
    sessions.refuse_protected(account_id)
    try:
        organization.move(sessions.payer(), account_id, source, target)
    except Conflict as error:
        if error.code != _THERE_ALREADY:
            raise


def tag(sessions: Sessions, account_id: str, tags: Mapping[str, str]) -> None:
    """Set these tags, overwriting existing values.

    Raises:
        ApiError: the account is protected, or AWS refuses.
    """
    sessions.refuse_protected(account_id)
    organization.set_tags(sessions.payer(), account_id, tags)
