"""The organization as its own workflow's pass sees it: who is in it, its units, and who stands where.

Plain functions, called on threads: by the one workflow that owns the organization, but for the moves, which each
hand-over makes itself. All calls are the payer's, and few: the Organizations API allows a handful per second for a
whole company and pages by at most twenty entries.

Facts (AWS Organizations API reference): an account's `State` replaced `Status` in 2025, both are read; create requests
are listed for 90 days; lists are eventually consistent; two organizational units of one parent may not share a name;
MoveAccount wants the account's real parent as its source.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, TypeGuard

from activities.aws.session import Payer, Sessions
from domain.accounts.observations import UnitRefused, Units
from domain.accounts.organization import Census, CreateAttempt, MemberAccount
from engine.errors import Absent, ApiError, Conflict, Denied, Invalid, Throttled

if TYPE_CHECKING:
    from mypy_boto3_organizations.type_defs import AccountTypeDef, CreateAccountStatusTypeDef

IN_PROGRESS = "IN_PROGRESS"
SUCCEEDED = "SUCCEEDED"
FAILED = "FAILED"

SIDE_BY_SIDE = 4  # units being created at once
DUPLICATE_UNIT = "DuplicateOrganizationalUnitException"
_MISPLACED = frozenset({"AccountNotFoundException", "DuplicateAccountException", "SourceParentNotFoundException"})


def census(sessions: Sessions, since: datetime) -> Census:
    """List the organization: ListAccounts and ListCreateAccountStatus, every page of both."""
    payer = sessions.payer()
    taken_at, accounts = _accounts(payer)
    attempts = (item for item in list_attempts(payer) if item.requested_at >= since or item.state == IN_PROGRESS)
    return Census(taken_at=taken_at, accounts=tuple(accounts), attempts=tuple(attempts))


def count_active(sessions: Sessions) -> int:
    """How many accounts are ACTIVE, the payer included: ListAccounts only, one call per twenty accounts."""
    _, accounts = _accounts(sessions.payer())
    return sum(account.active for account in accounts)


def names_in_progress(sessions: Sessions) -> set[str]:
    """The names of the accounts that are being created: ListCreateAccountStatus, for requests under way only."""
    return {item.name for item in list_attempts(sessions.payer(), IN_PROGRESS)}


def list_accounts(payer: Payer) -> list[MemberAccount]:
    """Every account of the organization."""
    return _accounts(payer)[1]


def list_attempts(payer: Payer, *states: str) -> list[CreateAttempt]:
    """The CreateAccount requests of the last 90 days, all or those in the given states, oldest first."""
    organizations = payer.organizations()
    pages = organizations.get_paginator("list_create_account_status").paginate(States=list(states))  # type: ignore[arg-type]
    found = [_attempt(item) for page in pages for item in page["CreateAccountStatuses"]]
    return sorted(found, key=lambda item: item.requested_at)


def ensure_organizational_units(sessions: Sessions, base: str, names: Iterable[str]) -> Units:
    """The units of these names under `base`: made, or found where they exist.

    Creating first costs one call for a new name; the listing, needed once for all that exist already, one per twenty.
    AWS takes one change of an organization at a time and refuses who meets another. A change is quick, so a few are
    tried side by side; those that met are made one after the other.

    Raises:
        ApiError: what no single name is to blame for. The units made before it are found again by the next attempt.
    """
    payer, wanted = sessions.payer(), tuple(dict.fromkeys(names))
    with ThreadPoolExecutor(SIDE_BY_SIDE, thread_name_prefix="units") as threads:
        begun = [threads.submit(copy_context().run, _create_unit, payer, base, name) for name in wanted]
        answers = {name: each.result() for name, each in zip(wanted, begun, strict=True)}
    for name in [name for name, answer in answers.items() if isinstance(answer, Throttled)]:
        answers[name] = _create_unit(payer, base, name)
    existing = list_units(payer, base) if any(_is_duplicate(answer) for answer in answers.values()) else {}
    ids: dict[str, str] = {}
    refused: dict[str, UnitRefused] = {}
    for name, answer in answers.items():
        if isinstance(answer, str):
            ids[name] = answer
        elif _is_duplicate(answer):
            ids[name] = _listed(existing, name, answer)
        elif isinstance(answer, Invalid):
            refused[name] = UnitRefused(message=answer.message, code=answer.code)
        else:
            raise answer
    return Units(ids=ids, refused=refused)


def _create_unit(payer: Payer, base: str, name: str) -> str | ApiError:
    """The id of the new unit, or what AWS said instead."""
    try:
        answer = payer.organizations().create_organizational_unit(ParentId=base, Name=name)
    except ApiError as error:
        return error
    return answer["OrganizationalUnit"]["Id"]


def _is_duplicate(answer: str | ApiError) -> TypeGuard[Conflict]:
    return isinstance(answer, Conflict) and answer.code == DUPLICATE_UNIT


def _listed(existing: Mapping[str, str], name: str, error: Conflict) -> str:
    if name not in existing:
        said = f"{error.message} It is not listed yet; it is looked up again."
        raise Throttled(said, code=error.code, delay=timedelta(seconds=2)) from error
    return existing[name]


def move_account(sessions: Sessions, account_id: str, root: str, base: str, unit: str) -> None:
    """Move an account from the root to a unit; if it is there already, nothing is changed.

    From another unit it is moved only if that unit is below `base`: otherwise another party has put it there.

    Raises:
        Denied: the account is protected, or stands outside of root and `base`.
        Throttled: another client is changing the organization.
        Absent: the account, or the unit, is not in the organization.
    """
    sessions.refuse_protected(account_id)
    payer = sessions.payer()
    try:
        _move(payer, account_id, root, unit)
    except (Absent, Conflict) as error:
        if error.code not in _MISPLACED:
            raise
        _move_from_where_it_is(payer, account_id, root, base, unit, error)


def _move_from_where_it_is(payer: Payer, account_id: str, root: str, base: str, unit: str, error: ApiError) -> None:
    parent = _parent(payer, account_id)
    if parent == unit:
        return
    if parent != root and _parent(payer, parent) != base:
        raise Denied(
            f"account {account_id} stands in {parent}, neither the root nor a unit under {base}. "
            f"Perdure did not put it there: move it to {root} or {unit} by hand.",
            code="ForeignParent",
        ) from error
    _move(payer, account_id, parent, unit)


def _move(payer: Payer, account_id: str, source: str, unit: str) -> None:
    try:
        payer.organizations().move_account(AccountId=account_id, SourceParentId=source, DestinationParentId=unit)
    except Throttled as error:
        # Organizations allows one change at a time: those who met are spread, so that they do not meet again.
        error.delay = timedelta(seconds=random.uniform(0.5, 3))  # noqa: S311
        raise


def _parent(payer: Payer, child: str) -> str:
    """The one parent of an account or unit, empty for a root."""
    parents = payer.organizations().list_parents(ChildId=child)["Parents"] if not child.startswith("r-") else []
    return parents[0]["Id"] if parents else ""


def list_units(payer: Payer, base: str) -> dict[str, str]:
    """The ids of all units under a parent, by name."""
    pages = payer.organizations().get_paginator("list_organizational_units_for_parent").paginate(ParentId=base)
    return {unit["Name"]: unit["Id"] for page in pages for unit in page["OrganizationalUnits"]}


def _accounts(payer: Payer) -> tuple[datetime, list[MemberAccount]]:
    pages = list(payer.organizations().get_paginator("list_accounts").paginate())
    dated = pages[0]["ResponseMetadata"]["HTTPHeaders"].get("date", "")
    return _moment(dated), [_account(item) for page in pages for item in page["Accounts"]]


def _account(item: AccountTypeDef) -> MemberAccount:
    state = item.get("State") or item.get("Status") or ""
    return MemberAccount(id=item["Id"], name=item.get("Name", ""), email=item.get("Email", ""), state=state)


def _attempt(item: CreateAccountStatusTypeDef) -> CreateAttempt:
    return CreateAttempt(
        name=item.get("AccountName", ""),
        request_id=item["Id"],
        state=item["State"],
        requested_at=item["RequestedTimestamp"],
        account_id=item.get("AccountId", ""),
        failure_reason=item.get("FailureReason", ""),
    )


def _moment(http_date: str) -> datetime:
    return parsedate_to_datetime(http_date).astimezone(UTC) if http_date else datetime.now(UTC)
