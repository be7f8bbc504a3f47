"""Opt-in regions: enables them, and polls AWS's progress.

The account's own role is used, because the payer would need trusted access.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from activities import attempt
from activities.aws.session import Sessions
from domain.accounts.actions.opt_in_regions import EnableRegions, RegionStatuses
from domain.accounts.opt_in_regions import BY_REFUSAL, BY_STATE, ENABLING, TODO, UNKNOWN, free_places
from engine.errors import ApiError, Conflict, Denied, Invalid, Pending, Throttled

if TYPE_CHECKING:
    from mypy_boto3_account.client import AccountClient

# In an account that is minutes old a denial may be temporary; a service control policy denies every attempt.
_ATTEMPTS_BEFORE_DENIAL_COUNTS = 3
_LOOKS_AT_FIRST = 15  # the number of polls that are one interval apart; later polls are further apart
_LONGEST_INTERVALS = 5


def enable_regions(sessions: Sessions, action: EnableRegions) -> RegionStatuses:
    """Raises Pending until a status differs from `seen`."""
    member = sessions.member(action.account_id, action.partition, settle=attempt.SETTLING)
    account = member.account()
    stand = _stand(account, action.seen)
    statuses = _enabled(account, action, stand)
    if statuses == action.seen:
        delay = sessions.poll * min(max(1, attempt.number() - _LOOKS_AT_FIRST), _LONGEST_INTERVALS)
        raise Pending(f"AWS is enabling {', '.join(sorted(action.seen))} in {action.account_id}", delay=delay)
    return RegionStatuses(statuses=statuses)


def _enabled(account: AccountClient, action: EnableRegions, stand: Mapping[str, str]) -> dict[str, str]:
    places = free_places(stand.values(), action.at_once)
    statuses: dict[str, str] = {}
    for region in sorted(action.seen, key=lambda name: (action.seen[name] == TODO, name)):
        state = stand.get(region, UNKNOWN)
        statuses[region] = BY_STATE.get(state, TODO)
        if state == "DISABLED" and places > 0:
            attempt.checkpoint()
            statuses[region] = _request_opt_in(account, region)
            places -= statuses[region] == ENABLING
    return statuses


def _request_opt_in(account: AccountClient, region: str) -> str:
    try:
        account.enable_region(RegionName=region)
    except (Conflict, Throttled, Invalid, Denied) as error:
        _raise_unless_definite(error)
        return BY_REFUSAL[error.type]
    return ENABLING


def _stand(account: AccountClient, regions: Iterable[str]) -> dict[str, str]:
    try:
        pages = list(account.get_paginator("list_regions").paginate())
    except Denied as error:
        _raise_unless_definite(error)
        return {region: _one(account, region) for region in regions}
    return {item["RegionName"]: item["RegionOptStatus"] for page in pages for item in page["Regions"]}


def _one(account: AccountClient, region: str) -> str:
    try:
        return account.get_region_opt_status(RegionName=region)["RegionOptStatus"]
    except Invalid:
        return UNKNOWN
    except Denied:
        return "DISABLED"  # EnableRegion then shows whether the region may be enabled


def _raise_unless_definite(error: ApiError) -> None:
    if error.ours:
        raise error
    if attempt.age() < attempt.SETTLING and not attempt.definite(error, _ATTEMPTS_BEFORE_DENIAL_COUNTS):
        raise attempt.settling(error) from error.__cause__
