"""Finds accounts in the wrong OU, in bulk where AWS allows it. Reads and sets the tags of accounts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from activities.aws.account_moves import parent_of
from activities.aws.organization import set_tags, tags_of
from activities.aws.session import Payer, Sessions
from engine.errors import Absent, ApiError

# Up to this many accounts with the same wanted parent are queried one by one.
_FEW = 3


def misplaced(sessions: Sessions, wanted: Mapping[str, str]) -> dict[str, str | ApiError]:
    """The accounts that are not in their wanted parent, each with its present parent or the error."""
    payer, found = sessions.payer(), dict[str, str | ApiError]()
    by_parent: defaultdict[str, list[str]] = defaultdict(list)
    for account_id, parent in wanted.items():
        by_parent[parent].append(account_id)
    for parent, accounts in by_parent.items():
        found.update(_not_in(payer, parent, accounts))
    return found


def _not_in(payer: Payer, parent: str, accounts: Iterable[str]) -> dict[str, str | ApiError]:
    account_ids = list(accounts)
    if len(account_ids) > _FEW:
        try:
            children = _children(payer, parent)
        except ApiError:  # each account is queried instead, and has its own error
            children = set()
        account_ids = [account_id for account_id in account_ids if account_id not in children]
    found = {account_id: _parent(payer, account_id) for account_id in account_ids}
    return {account_id: there for account_id, there in found.items() if there != parent}


def _children(payer: Payer, parent: str) -> set[str]:
    pages = payer.organizations().get_paginator("list_children").paginate(ParentId=parent, ChildType="ACCOUNT")
    return {child["Id"] for page in pages for child in page["Children"]}


def _parent(payer: Payer, account_id: str) -> str | ApiError:
    try:
        parent = parent_of(payer, account_id)
    except ApiError as error:
        return error
    return parent or Absent(f"account {account_id} is not in the organization")


def tags_of_account(sessions: Sessions, account_id: str) -> dict[str, str]:
    return tags_of(sessions.payer(), account_id)


def tag(sessions: Sessions, account_id: str, tags: Mapping[str, str]) -> None:
    sessions.refuse_protected(account_id)
    set_tags(sessions.payer(), account_id, tags)
