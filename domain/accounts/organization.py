"""Permits, queries and OUs that AWS limits for the whole organization. One workflow distributes them.

| resource | limit |
|---|---|
| permits to create an account (`creation_permits.py`) | pending requests, `account-limit`, the create budget |
| queries of open support cases (`support_case_polling.py`) | one query for all, with growing pauses |
| organizational units | one per legal entity |
| permits to opt in to regions (`opt_in_permits.py`) | nine accounts at once |

It also writes the ConfigMap's key `CCS-Access-Arn` (`ccs_access.py`).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from domain.accounts import THE_ORGANIZATION
from domain.accounts.ccs_access import CcsAccess, ConfigState
from domain.accounts.constants import CREATED_AT_ONCE
from domain.accounts.pool import Room
from domain.identity import Key
from domain.model import Model

ORGANIZATION = THE_ORGANIZATION


class MemberAccount(Model):
    """An account of the organization, or the payer. `state` is AWS's: ACTIVE, SUSPENDED, PENDING_CLOSURE, ..."""

    id: str
    name: str
    email: str
    state: str

    @property
    def active(self) -> bool:
        return self.state == "ACTIVE"


class CreateAttempt(Model):
    name: str
    request_id: str
    state: str
    requested_at: datetime
    account_id: str = ""


class Census(Model):
    """`taken_at` is AWS's time (from the Date header). `attempts` are recent CreateAccount requests, and all pending
    ones.
    """

    taken_at: datetime
    accounts: tuple[MemberAccount, ...]
    attempts: tuple[CreateAttempt, ...]

    @property
    def active(self) -> int:
        return sum(account.active for account in self.accounts)


class Budget(Model):
    in_flight: int = CREATED_AT_ONCE
    number: int = 30
    window: timedelta = timedelta(hours=1)


class ReleasedPermits(Model):
    regions: tuple[str, ...] = ()
    at: dict[str, datetime] = {}


class OrganizationMemory(Model):
    granted: dict[str, datetime] = {}  # Account name -> expiry of its permit
    reported: dict[str, str] = {}  # Account name -> last reported verdict
    room: Room | None = None
    counted_at: datetime | None = None
    young_cases_at: datetime | None = None  # last query of young cases
    old_cases_at: datetime | None = None
    youngest_case_at: datetime | None = None  # when the youngest open case was opened
    young_cases: dict[str, Key] = {}  # case id -> its Account
    old_cases: dict[str, Key] = {}
    cases_problem: str = ""  # why the last query of cases was refused
    wanting: int = 0  # how many Accounts waited for an AWS account in the last pass
    room_unreported: bool = False  # the last change of the room has not been reported to the pools
    news: bool = False  # that change must be reported to the pools now
    units: dict[str, str] = {}  # legal entity id -> OU id
    opt_in_granted: dict[str, datetime] = {}  # Account path -> expiry of its permit to opt in to regions
    opt_in_wanting: int = 0  # how many Accounts waited for such a permit in the last pass
    opt_in_let_go: ReleasedPermits = ReleasedPermits()
    strangers: tuple[str, ...] = ()  # AWS accounts of another installation that have the name of an Account
    passed: dict[str, str] = {}  # Account name -> path of the permitted Account, if an older Account has the same name
    config: ConfigState | None = None  # the ConfigMap as observed by the last pass
    ccs_access: CcsAccess = CcsAccess()
