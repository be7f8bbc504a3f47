"""Whose turn it is to opt in to regions: at most nine accounts of the organization at once, oldest Account first.

Who opts in is read off the Accounts themselves (their state, or an open region of one that is Ready). A permit that is
not used within its time is void. It counts until then, or until its Account is seen to opt in or to want it no more: so
a lifecycle that lost its memory gives the same permits again, in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from domain.accounts.config import OperatorConfig
from domain.accounts.constants import OPTING_IN_ACCOUNTS
from domain.accounts.opt_in import is_opting_in, wants_to_opt_in
from domain.accounts.organization import OrganizationKnown, ordered
from domain.accounts.resources import Account
from domain.model import Model

# How long an Account may take to begin; it asks again after that.
PERMIT_LIFETIME = timedelta(minutes=2)


class Turns(Model):
    """Who may begin to opt in, by name, and until when; how many wait for their turn."""

    granted: dict[str, datetime] = {}
    waiting: int = 0


def turns(accounts: Iterable[Account], config: OperatorConfig, granted: Mapping[str, datetime], now: datetime) -> Turns:
    """The permits that are valid now, new ones included."""
    everyone = list(accounts)
    wanting = [account.metadata.name for account in ordered(a for a in everyone if wants_to_opt_in(a, config))]
    under_way = {account.metadata.name for account in everyone if is_opting_in(account)}
    valid = {name: until for name, until in granted.items() if until > now and name not in under_way}
    places = OPTING_IN_ACCOUNTS - len(under_way) - len(valid)
    chosen = [name for name in wanting if name not in valid][: max(0, places)]
    given = {**valid, **dict.fromkeys(chosen, now + PERMIT_LIFETIME)}
    return Turns(granted=given, waiting=sum(name not in given for name in wanting))


def turns_age(known: OrganizationKnown, now: datetime) -> bool:
    """True when the end of a permit has come, which gives its place to another."""
    return any(until <= now for until in known.opt_in_granted.values())
