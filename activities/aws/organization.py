"""The organization's accounts, units and tags, read and written with the payer's credentials.

The API allows an organization a few calls a second, and lists are eventually consistent. An account's `State` replaced
`Status` in 2025: both are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, TypeGuard

from activities import attempt
from activities.aws.session import Sessions, tag_list
from domain.accounts.constants import CCS_ACCESS_ROLE
from domain.accounts.organization import Census, CreateAttempt, MemberAccount
from domain.accounts.passes import UnitRefused, Units
from engine.errors import Absent, ApiError, Conflict, Invalid, Throttled, Unavailable

if TYPE_CHECKING:
    from mypy_boto3_organizations.type_defs import AccountTypeDef, CreateAccountStatusTypeDef

IN_PROGRESS = "IN_PROGRESS"
SUCCEEDED = "SUCCEEDED"
FAILED = "FAILED"

SIDE_BY_SIDE = 4  # units created concurrently
DUPLICATE_UNIT = "DuplicateOrganizationalUnitException"
_UNLISTED_LOOKS = 5


def census(sessions: Sessions, since: datetime) -> Census:
    """All accounts, and the CreateAccount requests that are pending or newer than `since`."""
    taken_at, accounts = _accounts(sessions)
    attempts = (item for item in list_attempts(sessions) if item.requested_at >= since or item.state == IN_PROGRESS)
    return Census(taken_at=taken_at, accounts=tuple(accounts), attempts=tuple(attempts))


def count_active(sessions: Sessions) -> int:
    """The number of ACTIVE accounts, including the payer. This takes one call, ListAccounts, per twenty accounts."""
    return sum(account.active for account in list_accounts(sessions))


def names_in_progress(sessions: Sessions) -> set[str]:
    return {item.name for item in list_attempts(sessions, IN_PROGRESS)}


def ccs_access_arn(sessions: Sessions) -> str:
    """The ARN of the payer's role `RH-SRE-CCS-Access`. Raises Absent if the payer has no such role."""
    return sessions.payer().iam().get_role(RoleName=CCS_ACCESS_ROLE)["Role"]["Arn"]


def list_accounts(sessions: Sessions) -> list[MemberAccount]:
    return _accounts(sessions)[1]


def list_attempts(sessions: Sessions, *states: str) -> list[CreateAttempt]:
    """The CreateAccount requests of the last 90 days, oldest first: those in `states`, or all if none is given."""
    organizations = sessions.organizations()
    pages = organizations.get_paginator("list_create_account_status").paginate(States=list(states))  # type: ignore[arg-type]
    found = [_attempt(item) for page in pages for item in page["CreateAccountStatuses"]]
    return sorted(found, key=lambda item: item.requested_at)


def ensure_organizational_units(sessions: Sessions, base: str, names: Iterable[str]) -> Units:
    """Create the units of these names under `base`. Existing units are listed only if AWS reports a duplicate.

    A few units are created concurrently. Those that AWS throttles are tried again one by one. Failures that concern all
    names are raised.
    """
    wanted = tuple(dict.fromkeys(names))
    with ThreadPoolExecutor(SIDE_BY_SIDE, thread_name_prefix="units") as threads:
        begun = [threads.submit(copy_context().run, _create_unit, sessions, base, name) for name in wanted]
        answers = {name: each.result() for name, each in zip(wanted, begun, strict=True)}
    for name in [name for name, answer in answers.items() if isinstance(answer, Throttled)]:
        answers[name] = _create_unit(sessions, base, name)
    existing = list_units(sessions, base) if any(_is_duplicate(answer) for answer in answers.values()) else {}
    ids: dict[str, str] = {}
    refused: dict[str, UnitRefused] = {}
    for name, answer in answers.items():
        if isinstance(answer, str):
            ids[name] = answer
        elif _is_duplicate(answer):
            if name in existing:
                ids[name] = existing[name]
            else:
                refused[name] = _not_listed(name, answer)
        elif isinstance(answer, Invalid):
            refused[name] = UnitRefused(message=answer.message, code=answer.code)
        else:
            raise answer
    return Units(ids=ids, refused=refused)


def _create_unit(sessions: Sessions, base: str, name: str) -> str | ApiError:
    try:
        answer = sessions.organizations().create_organizational_unit(ParentId=base, Name=name)
    except ApiError as error:
        return error
    return answer["OrganizationalUnit"]["Id"]


def _is_duplicate(answer: str | ApiError) -> TypeGuard[Conflict]:
    return isinstance(answer, Conflict) and answer.code == DUPLICATE_UNIT


def _not_listed(name: str, error: Conflict) -> UnitRefused:
    """AWS reported a duplicate, but its list may lag, so the call is repeated. If the name stays missing, the existing
    unit is spelled differently, and only this name is refused.
    """
    if attempt.number() < _UNLISTED_LOOKS:
        message = f"{error.message} AWS does not list the unit yet; Perdure looks again."
        raise Throttled(message, code=error.code, delay=timedelta(seconds=2)) from error
    message = (
        f"{error.message} But AWS lists no unit with exactly the name {name!r}. Probably a unit has this name in "
        "another spelling, for example in upper case: spell spec.legalEntity.id like the name of that unit."
    )
    return UnitRefused(message=message, code=error.code)


def tags_of(sessions: Sessions, account_id: str) -> dict[str, str]:
    pages = sessions.organizations().get_paginator("list_tags_for_resource").paginate(ResourceId=account_id)
    return {tag["Key"]: tag["Value"] for page in pages for tag in page["Tags"]}


def set_tags(sessions: Sessions, account_id: str, tags: Mapping[str, str]) -> None:
    sessions.refuse_protected(account_id)
    sessions.organizations().tag_resource(ResourceId=account_id, Tags=tag_list(tags))


def list_units(sessions: Sessions, base: str) -> dict[str, str]:
    pages = sessions.organizations().get_paginator("list_organizational_units_for_parent").paginate(ParentId=base)
    return {unit["Name"]: unit["Id"] for page in pages for unit in page["OrganizationalUnits"]}


def _accounts(sessions: Sessions) -> tuple[datetime, list[MemberAccount]]:
    pages = list(sessions.organizations().get_paginator("list_accounts").paginate())
    dated = pages[0]["ResponseMetadata"]["HTTPHeaders"].get("date", "")
    found = [member_account(item) for page in pages for item in page["Accounts"]]
    if not found:  # the payer is always in its own organization; a count of 0 would allow too many accounts
        raise Unavailable("ListAccounts of the organization returned no account; it is called again", code="NoAccounts")
    return _moment(dated), found


def is_closed(sessions: Sessions, account_id: str) -> bool:
    try:
        account = sessions.organizations().describe_account(AccountId=account_id)["Account"]
    except Absent:
        return False
    return not member_account(account).active


def member_account(item: AccountTypeDef) -> MemberAccount:
    state = item.get("State") or item.get("Status") or ""
    return MemberAccount(id=item["Id"], name=item.get("Name", ""), email=item.get("Email", ""), state=state)


def _attempt(item: CreateAccountStatusTypeDef) -> CreateAttempt:
    return CreateAttempt(
        name=item.get("AccountName", ""),
        request_id=item["Id"],
        state=item["State"],
        requested_at=item["RequestedTimestamp"],
        account_id=item.get("AccountId", ""),
    )


def _moment(http_date: str) -> datetime:
    return parsedate_to_datetime(http_date).astimezone(UTC) if http_date else datetime.now(UTC)
