"""Permits to opt in to regions: at most nine accounts of the organization opt in at once.

Accounts that are opting in count towards the nine, and so do valid permits of other Accounts. An Account asks for a
permit until it begins to opt in, so the organization's lifecycle gives the same permits even without its memory.
Ready Accounts come last, and older Accounts precede younger ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta

from domain.accounts.config import OperatorConfig
from domain.accounts.constants import OPTING_IN_ACCOUNTS
from domain.accounts.opt_in_regions import is_opting_in, regions_of, wants_to_opt_in
from domain.accounts.organization import OrganizationMemory, ReleasedPermits
from domain.accounts.resources import Account, AccountState, oldest_first
from domain.model import Model

# An Account that has not begun to opt in within this time gets another permit later.
PERMIT_LIFETIME = timedelta(minutes=2)


# The pause after a permit that a Ready Account did not use, for example because no worker ran.
NOT_OFFERED_AGAIN = timedelta(hours=6)


class Permits(Model):
    """By Account path: when valid permits expire, and when Ready Accounts let a permit expire unused."""

    granted: dict[str, datetime] = {}
    waiting: int = 0
    let_go: ReleasedPermits = ReleasedPermits()


def permits(
    accounts: Iterable[Account],
    config: OperatorConfig,
    granted: Mapping[str, datetime],
    now: datetime,
    let_go: ReleasedPermits | None = None,
    protected: Collection[str] = (),
) -> Permits:
    everyone = [account for account in accounts if account.spec.aws_account_id not in protected]
    asking = oldest_first(account for account in everyone if wants_to_opt_in(account, config))
    asking.sort(key=_is_ready)
    left = _let_go(asking, regions_of(config), granted, now, let_go or ReleasedPermits())
    wanting = [path for account in asking if (path := account.key.path) not in left.at]
    under_way = {account.key.path for account in everyone if is_opting_in(account)}
    valid = {path: until for path, until in granted.items() if until > now and path not in under_way}
    places = OPTING_IN_ACCOUNTS - len(under_way) - len(valid)
    chosen = [path for path in wanting if path not in valid][: max(0, places)]
    given = {**valid, **dict.fromkeys(chosen, now + PERMIT_LIFETIME)}
    return Permits(granted=given, waiting=sum(path not in given for path in wanting), let_go=left)


def _let_go(
    asking: Iterable[Account],
    regions: tuple[str, ...],
    granted: Mapping[str, datetime],
    now: datetime,
    before: ReleasedPermits,
) -> ReleasedPermits:
    ready = (account.key.path for account in asking if _is_ready(account))
    over = [path for path in ready if path in granted and granted[path] <= now]
    known = before.at if before.regions == regions else {}
    remaining = {path: at for path, at in known.items() if now < at + NOT_OFFERED_AGAIN}
    return ReleasedPermits(regions=regions, at={**dict.fromkeys(over, now), **remaining})


def _is_ready(account: Account) -> bool:
    return account.status.state == AccountState.READY


def permits_age(known: OrganizationMemory, now: datetime) -> bool:
    return any(until <= now for until in known.opt_in_granted.values())
