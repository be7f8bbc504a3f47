"""Moves of accounts between organizational units. Organizations allows one change at a time."""

from __future__ import annotations

import random
from datetime import timedelta

from activities.aws.session import Payer, Sessions
from engine.errors import Absent, ApiError, Conflict, Denied, Throttled

_THERE_ALREADY = "DuplicateAccountException"
_MISPLACED = frozenset({"AccountNotFoundException", "DuplicateAccountException", "SourceParentNotFoundException"})


def move_account(sessions: Sessions, account_id: str, root: str, base: str, unit: str) -> None:
    """Move an account from the root, or from another unit below `base`, to `unit`. Nothing is done if it is there
    already.

    Raises:
        Denied: the account is protected, or in neither the root nor a unit below `base`.
        Throttled: another client is changing the organization.
        Absent: the account or unit does not exist.
    """
    sessions.refuse_protected(account_id)
    payer = sessions.payer()
    try:
        _move(payer, account_id, root, unit)
    except (Absent, Conflict) as error:
        if error.code not in _MISPLACED:
            raise
        _move_from_actual_parent(payer, account_id, root, base, unit, error)


def _move_from_actual_parent(payer: Payer, account_id: str, root: str, base: str, unit: str, error: ApiError) -> None:
    parent = parent_of(payer, account_id)
    if parent == unit:
        return
    if parent != root and parent_of(payer, parent) != base:
        raise Denied(
            f"account {account_id} is in {parent}, which is neither the root nor a unit under {base}. "
            f"Perdure did not move it there: move it to {root} or {unit} by hand.",
            code="ForeignParent",
        ) from error
    _move(payer, account_id, parent, unit)


def move_between(sessions: Sessions, account_id: str, source: str, target: str) -> None:
    """Nothing is done if the account is in `target` already."""
    sessions.refuse_protected(account_id)
    try:
        _move(sessions.payer(), account_id, source, target)
    except Conflict as error:
        if error.code != _THERE_ALREADY:
            raise


def _move(payer: Payer, account_id: str, source: str, target: str) -> None:
    try:
        payer.organizations().move_account(AccountId=account_id, SourceParentId=source, DestinationParentId=target)
    except Throttled as error:
        # Organizations allows one change at a time: spread the repetitions.
        error.delay = timedelta(seconds=random.uniform(0.5, 3))  # noqa: S311
        raise


def parent_of(payer: Payer, child: str) -> str:
    parents = payer.organizations().list_parents(ChildId=child)["Parents"] if not child.startswith("r-") else []
    return parents[0]["Id"] if parents else ""
