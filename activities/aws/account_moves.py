"""Finds accounts in the wrong organizational unit, in bulk where AWS allows it, and moves accounts between units."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import timedelta

from activities.aws.session import Sessions
from engine.errors import Absent, ApiError, Conflict, Denied, Throttled

_THERE_ALREADY = "DuplicateAccountException"
_MISPLACED = frozenset({"AccountNotFoundException", "DuplicateAccountException", "SourceParentNotFoundException"})
# Up to this many accounts with the same wanted parent are queried one by one.
_FEW = 3


def move_account(sessions: Sessions, account_id: str, root: str, base: str, unit: str) -> None:
    """Move an account from the root, or from another unit below `base`, to `unit`. Nothing is done if it is there
    already.

    Raises:
        Denied: the account is protected, or in neither the root nor a unit below `base`.
        Throttled: another client is changing the organization.
        Absent: the account or unit does not exist.
    """
    sessions.refuse_protected(account_id)
    try:
        _move(sessions, account_id, root, unit)
    except (Absent, Conflict) as error:
        if error.code not in _MISPLACED:
            raise
        _move_from_actual_parent(sessions, account_id, root, base, unit, error)


def _move_from_actual_parent(
    sessions: Sessions, account_id: str, root: str, base: str, unit: str, error: ApiError
) -> None:
    parent = parent_of(sessions, account_id)
    if parent == unit:
        return
    if parent != root and parent_of(sessions, parent) != base:
        raise Denied(
            f"account {account_id} is in {parent}, which is neither the root nor a unit under {base}. "
            f"Perdure moves accounts only out of these. Move the account to {root} or {unit} by hand.",
            code="ForeignParent",
        ) from error
    _move(sessions, account_id, parent, unit)


def move_between(sessions: Sessions, account_id: str, source: str, target: str) -> None:
    """Nothing is done if the account is in `target` already."""
    sessions.refuse_protected(account_id)
    try:
        _move(sessions, account_id, source, target)
    except Conflict as error:
        if error.code != _THERE_ALREADY:
            raise


def _move(sessions: Sessions, account_id: str, source: str, target: str) -> None:
    try:
        sessions.organizations().move_account(AccountId=account_id, SourceParentId=source, DestinationParentId=target)
    except Throttled as error:
        # Organizations allows one change at a time: spread the repetitions.
        error.delay = timedelta(seconds=random.uniform(0.5, 3))  # noqa: S311
        raise


def parent_of(sessions: Sessions, child: str) -> str:
    if child.startswith("r-"):
        return ""
    # AWS may answer with an empty page and a token for the next one.
    pages = sessions.organizations().get_paginator("list_parents").paginate(ChildId=child)
    return next((parent["Id"] for page in pages for parent in page["Parents"]), "")


def misplaced(sessions: Sessions, wanted: Mapping[str, str]) -> dict[str, str | ApiError]:
    """The accounts that are not in their wanted parent, each with its present parent or the error."""
    found = dict[str, str | ApiError]()
    by_parent: defaultdict[str, list[str]] = defaultdict(list)
    for account_id, parent in wanted.items():
        by_parent[parent].append(account_id)
    for parent, accounts in by_parent.items():
        found.update(_not_in(sessions, parent, accounts))
    return found


def _not_in(sessions: Sessions, parent: str, accounts: Iterable[str]) -> dict[str, str | ApiError]:
    account_ids = list(accounts)
    if len(account_ids) > _FEW:
        try:
            children = _children(sessions, parent)
        except ApiError:  # each account is queried instead, and has its own error
            children = set()
        account_ids = [account_id for account_id in account_ids if account_id not in children]
    found = {account_id: _parent(sessions, account_id) for account_id in account_ids}
    return {account_id: there for account_id, there in found.items() if there != parent}


def _children(sessions: Sessions, parent: str) -> set[str]:
    pages = sessions.organizations().get_paginator("list_children").paginate(ParentId=parent, ChildType="ACCOUNT")
    return {child["Id"] for page in pages for child in page["Children"]}


def _parent(sessions: Sessions, account_id: str) -> str | ApiError:
    try:
        parent = parent_of(sessions, account_id)
    except ApiError as error:
        return error
    return parent or Absent(f"account {account_id} is not in the organization")
