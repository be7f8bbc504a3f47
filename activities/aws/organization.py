"""The organization as its own workflow's pass sees it: who is in it, its units, and who stands where.

Plain functions, called on threads by the one workflow that owns the organization; nothing here is concurrent with
itself. All calls are the payer's, and few: the Organizations API allows a handful per second for a whole company and
pages by at most twenty entries.

Facts (AWS Organizations API reference): an account's `State` replaced `Status` in 2025, both are read; create requests
are listed for 90 days; lists are eventually consistent; two organizational units of one parent may not share a name;
MoveAccount wants the account's real parent as its source.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from activities.aws.session import Payer, Sessions
from domain.accounts.organization import Census, CreateAttempt, MemberAccount
from engine.errors import Absent, ApiError, Conflict, Denied, Throttled

if TYPE_CHECKING:
    from mypy_boto3_organizations.type_defs import AccountTypeDef, CreateAccountStatusTypeDef

IN_PROGRESS = "IN_PROGRESS"
SUCCEEDED = "SUCCEEDED"
FAILED = "FAILED"

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


def list_accounts(payer: Payer) -> list[MemberAccount]:
    """Every account of the organization."""
    return _accounts(payer)[1]


def list_attempts(payer: Payer, *states: str) -> list[CreateAttempt]:
    """The CreateAccount requests of the last 90 days, all or those in the given states, oldest first."""
    organizations = payer.organizations()
    pages = organizations.get_paginator("list_create_account_status").paginate(States=list(states))  # type: ignore[arg-type]
    found = [_attempt(item) for page in pages for item in page["CreateAccountStatuses"]]
    return sorted(found, key=lambda item: item.requested_at)


def ensure_organizational_units(
    sessions: Sessions, base: str, names: Iterable[str], known: Mapping[str, str]
) -> dict[str, str]:
    """The ids of the units of these names under `base`; those not `known` are made, or found where they exist.

    Creating first costs one call for a new name; the listing, needed once for all that exist already, one per twenty.

    Raises:
        Invalid: a name that AWS does not accept. The units made before it are found again by the next attempt.
    """
    organizations = sessions.payer().organizations()
    units = {name: known[name] for name in names if name in known}
    existing: dict[str, str] | None = None
    for name in (name for name in names if name not in known):
        if existing is None or name not in existing:
            try:
                answer = organizations.create_organizational_unit(ParentId=base, Name=name)
            except Conflict as error:
                if error.code != DUPLICATE_UNIT:
                    raise
                existing = _units(sessions.payer(), base)
                if name not in existing:
                    raise Throttled(
                        f"{error.message} It is not listed yet; looked for again.",
                        code=error.code,
                        delay=timedelta(seconds=2),
                    ) from error
            else:
                units[name] = answer["OrganizationalUnit"]["Id"]
                continue
        units[name] = existing[name]
    return units


def move_account(sessions: Sessions, account_id: str, root: str, base: str, unit: str) -> None:
    """Move an account from the root to a unit; one that is there already is left as it is.

    From another unit it is moved only if that unit stands under `base`: anything else was put there by somebody else.

    Raises:
        Denied: the account is protected, or stands outside of root and `base`.
        Throttled: the organization is being changed by somebody else.
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
            f"account {account_id} stands in {parent}, neither the root nor a unit under {base}: somebody else put it "
            f"there. Move it to {root} or {unit} by hand.",
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


def _units(payer: Payer, base: str) -> dict[str, str]:
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
