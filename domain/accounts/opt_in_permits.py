"""Whose turn it is to opt in to regions: at most nine accounts of the organization at once, oldest Account first.

Accounts that are not Ready yet come before those that are. A Ready one looks as if it wanted a turn also where what it
lacks is no region (AWS takes such names out of its status again): it lets the turn run out, and is not offered another
for hours, or until the list of regions is changed.

Who opts in is read off the Accounts themselves (their state, or an open region of one that is Ready). A permit that is
not used within its time is void. It counts until then, or until its Account is seen to opt in or to want it no more: so
a lifecycle that lost its memory gives the same permits again, in the same order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta

from domain.accounts.config import OperatorConfig
from domain.accounts.constants import OPTING_IN_ACCOUNTS
from domain.accounts.opt_in import is_opting_in, regions_of, wants_to_opt_in
from domain.accounts.organization import OrganizationKnown, TurnsLetGo, ordered
from domain.accounts.resources import Account, AccountState
from domain.model import Model

# How long an Account may take to begin; it asks again after that.
PERMIT_LIFETIME = timedelta(minutes=2)


# A turn that was missed, because no worker ran, comes again after that.
NOT_OFFERED_AGAIN = timedelta(hours=6)


class Turns(Model):
    """Who may begin to opt in, by name, and until when; how many wait for their turn; who has let one run out."""

    granted: dict[str, datetime] = {}
    waiting: int = 0
    let_go: TurnsLetGo = TurnsLetGo()


def turns(
    accounts: Iterable[Account],
    config: OperatorConfig,
    granted: Mapping[str, datetime],
    now: datetime,
    let_go: TurnsLetGo | None = None,
    protected: Collection[str] = (),
) -> Turns:
    """The permits that are valid now, new ones included."""
    everyone = [account for account in accounts if account.spec.aws_account_id not in protected]
    asking = ordered(account for account in everyone if wants_to_opt_in(account, config))
    asking.sort(key=_is_ready)
    left = _let_go(asking, regions_of(config), granted, now, let_go or TurnsLetGo())
    wanting = [account.metadata.name for account in asking if account.metadata.name not in left.at]
    under_way = {account.metadata.name for account in everyone if is_opting_in(account)}
    valid = {name: until for name, until in granted.items() if until > now and name not in under_way}
    places = OPTING_IN_ACCOUNTS - len(under_way) - len(valid)
    chosen = [name for name in wanting if name not in valid][: max(0, places)]
    given = {**valid, **dict.fromkeys(chosen, now + PERMIT_LIFETIME)}
    return Turns(granted=given, waiting=sum(name not in given for name in wanting), let_go=left)


def _let_go(
    asking: Iterable[Account],
    regions: tuple[str, ...],
    granted: Mapping[str, datetime],
    now: datetime,
    before: TurnsLetGo,
) -> TurnsLetGo:
    ready = (account.metadata.name for account in asking if _is_ready(account))
    over = [name for name in ready if name in granted and granted[name] <= now]
    known = before.at if before.regions == regions else {}
    kept = {name: at for name, at in known.items() if now < at + NOT_OFFERED_AGAIN}
    return TurnsLetGo(regions=regions, at={**dict.fromkeys(over, now), **kept})


def _is_ready(account: Account) -> bool:
    return account.status.state == AccountState.READY


def turns_age(known: OrganizationKnown, now: datetime) -> bool:
    """True when the end of a permit has come, which gives its place to another."""
    return any(until <= now for until in known.opt_in_granted.values())
