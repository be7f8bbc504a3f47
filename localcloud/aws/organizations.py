"""AWS Organizations: creation takes time and can fail, e-mail addresses are unique, closing is slow (docs/emulator.md).

A FAILED request has a FailureReason
(https://docs.aws.amazon.com/organizations/latest/APIReference/API_CreateAccountStatus.html). Only the management
account may call this API, except for DescribeOrganization
(https://docs.aws.amazon.com/organizations/latest/APIReference/API_Operations.html).
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import moto.organizations.urls as urls
from moto.core.utils import utcfromtimestamp
from moto.moto_api._internal import mock_random
from moto.organizations import utils as moto_utils
from moto.organizations.models import FakeAccount, FakeOrganizationalUnit, OrganizationsBackend, organizations_backends
from moto.organizations.responses import OrganizationsResponse

from localcloud.aws import call, runtime
from localcloud.aws.contract import AccountLimitAnswer
from localcloud.aws.json_api import page_of
from localcloud.aws.wire import ErrorAnswer, Refusal, denied

_SERVICE = "organizations"
_MAX_PAGE = 20
_EMAIL = re.compile(r"^[^\s@]+@[^\s@]+\.[^\s@]+$")
_CLOSURE_WINDOW_SECONDS = 30 * 24 * 3600.0
_T = TypeVar("_T")


def install() -> None:
    organizations_backends.backend = PerdureOrganizations
    urls.url_paths = {"{0}/$": PerdureOrganizationsResponse.dispatch}


def ensure_organization() -> None:
    backend = of_payer()
    if backend.org is None:
        backend.create_organization("us-east-1", FeatureSet="ALL")
        backend.accounts[0].name = "payer"


def of_payer() -> PerdureOrganizations:
    regional = organizations_backends[runtime.payer_account]
    return cast(PerdureOrganizations, dict.get(regional, "aws") or regional["aws"])


def exists(account_id: str) -> bool:
    return of_payer().find_account(account_id) is not None


def is_closed(account_id: str) -> bool:
    account = of_payer().find_account(account_id)
    return account is not None and account.status != "ACTIVE"


def age_seconds(account_id: str) -> float:
    """The account's age in seconds by the emulator's clock; infinite for the payer."""
    account = of_payer().find_account(account_id)
    born = getattr(account, "born_at", None)
    return float("inf") if born is None else runtime.clock.now() - born


@dataclass
class Creation:
    id: str
    name: str
    email: str
    role_name: str
    tags: list[dict[str, str]]
    requested: float
    due_at: float
    failure_reason: str | None = None
    state: str = "IN_PROGRESS"
    account_id: str | None = None
    completed: float | None = None

    def describe(self) -> dict[str, Any]:
        status: dict[str, Any] = {
            "Id": self.id,
            "AccountName": self.name,
            "State": self.state,
            "RequestedTimestamp": self.requested,
        }
        if self.completed is not None:
            status["CompletedTimestamp"] = self.completed
        if self.account_id is not None:
            status["AccountId"] = self.account_id
        if self.state == "FAILED":
            status["FailureReason"] = self.failure_reason
        return status


class MemberAccount(FakeAccount):
    def __init__(self, organization: Any, creation: Creation) -> None:
        super().__init__(
            organization,
            AccountName=creation.name,
            Email=creation.email,
            RoleName=creation.role_name,
            Tags=creation.tags,
        )
        self.create_account_status_id = creation.id
        self.born_at = creation.due_at
        self.create_time = utcfromtimestamp(creation.completed or time.time())  # type: ignore[arg-type]
        self.closed_from: float | None = None
        self.closed_at: float | None = None


@dataclass
class _Closures:
    asked: list[float] = field(default_factory=list)


class PerdureOrganizations(OrganizationsBackend):
    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.creations: dict[str, Creation] = {}
        self.in_progress: dict[str, Creation] = {}
        self.by_id: dict[str, FakeAccount] = {}
        self.emails: set[str] = set()
        self.closing: list[MemberAccount] = []
        self.closures = _Closures()

    @property
    def _url_module(self) -> Any:
        return urls

    def create_organization(self, region: str, **kwargs: Any) -> dict[str, Any]:
        answer = super().create_organization(region, **kwargs)
        self.by_id = {account.id: account for account in self.accounts}
        self.emails = {account.email.lower() for account in self.accounts}
        return answer

    def find_account(self, account_id: str) -> FakeAccount | None:
        self.let_time_pass()
        return self.by_id.get(account_id)

    def let_time_pass(self) -> None:
        if not self.in_progress and not self.closing:
            return
        now = runtime.clock.now()
        for creation in sorted(self.in_progress.values(), key=lambda c: c.due_at):
            if creation.due_at <= now:
                self._complete(creation)
        for account in [a for a in self.closing if a.closed_at is not None and a.closed_at <= now]:
            account.status, account.state = "SUSPENDED", "CLOSED"
            self.closing.remove(account)
            self._changed()

    def create_account(self, **kwargs: Any) -> dict[str, Any]:
        self.let_time_pass()
        name, email = kwargs.get("AccountName", ""), kwargs.get("Email", "")
        if not 1 <= len(name) <= 50 or not 6 <= len(email) <= 64 or not _EMAIL.match(email):
            raise _refusal("InvalidInputException", "You provided an invalid value.", "INVALID_PATTERN")
        settings = runtime.config()
        concurrency = settings.create_account_concurrency
        if concurrency is not None and len(self.in_progress) >= concurrency:
            raise _refusal(settings.create_account_concurrency_error, "Too many accounts are being created.")
        is_full = settings.account_limit is not None and self.account_total() >= settings.account_limit
        if is_full and settings.account_limit_answer is AccountLimitAnswer.CONSTRAINT:
            message = "You have exceeded the allowed number of AWS accounts."
            raise _refusal("ConstraintViolationException", message, "ACCOUNT_NUMBER_LIMIT_EXCEEDED")
        in_hand = call.current()
        reason = in_hand.failure_reason if in_hand is not None else None
        creation = Creation(
            id="car-" + "".join(mock_random.choice("0123456789abcdef") for _ in range(32)),
            name=name,
            email=email,
            role_name=kwargs.get("RoleName") or "OrganizationAccountAccessRole",
            tags=kwargs.get("Tags") or [],
            requested=time.time(),
            due_at=runtime.clock.now() + settings.create_account_seconds,
            failure_reason=reason or ("ACCOUNT_LIMIT_EXCEEDED" if is_full else None),
        )
        self.creations[creation.id] = self.in_progress[creation.id] = creation
        return {"CreateAccountStatus": creation.describe()}

    def account_total(self) -> int:
        return sum(1 for a in self.accounts if a.status != "SUSPENDED") + len(self.in_progress)

    def describe_create_account_status(self, **kwargs: Any) -> dict[str, Any]:
        self.let_time_pass()
        creation = self.creations.get(kwargs["CreateAccountRequestId"])
        if creation is None:
            message = "You specified a create account request that doesn't exist."
            raise _refusal("CreateAccountStatusNotFoundException", message)
        return {"CreateAccountStatus": creation.describe()}

    def list_create_account_status(self, **kwargs: Any) -> dict[str, Any]:
        self.let_time_pass()
        states = kwargs.get("States") or ("IN_PROGRESS", "SUCCEEDED", "FAILED")
        found = [c.describe() for c in self.creations.values() if c.state in states]
        return _page("CreateAccountStatuses", found, kwargs)

    def describe_account(self, **kwargs: Any) -> dict[str, Any]:
        self.let_time_pass()
        return super().describe_account(**kwargs)

    def list_accounts_page(self, **kwargs: Any) -> dict[str, Any]:
        self.let_time_pass()
        return _page("Accounts", self.accounts, kwargs, FakeAccount.describe)

    def list_accounts_for_parent_page(self, **kwargs: Any) -> dict[str, Any]:
        self.let_time_pass()
        parent = self.validate_parent_id(kwargs["ParentId"])
        return _page("Accounts", [a for a in self.accounts if a.parent_id == parent], kwargs, FakeAccount.describe)

    def list_children(self, **kwargs: Any) -> dict[str, Any]:
        self.let_time_pass()
        return _page("Children", super().list_children(**kwargs)["Children"], kwargs)

    def list_units_page(self, **kwargs: Any) -> dict[str, Any]:
        parent = self.validate_parent_id(kwargs["ParentId"])
        units = [u for u in self.ou if u.parent_id == parent]
        return _page("OrganizationalUnits", units, kwargs, lambda u: u.describe()["OrganizationalUnit"])

    def create_organizational_unit(self, **kwargs: Any) -> dict[str, Any]:
        self._require(kwargs["ParentId"], "ParentNotFoundException")
        self._refuse_twin(kwargs["ParentId"], kwargs["Name"])
        return super().create_organizational_unit(**kwargs)

    def update_organizational_unit(self, **kwargs: Any) -> dict[str, Any]:
        unit = self.get_organizational_unit_by_id(kwargs["OrganizationalUnitId"])
        if "Name" in kwargs and kwargs["Name"] != unit.name:
            self._refuse_twin(unit.parent_id, kwargs["Name"])
            unit.name = kwargs["Name"]
        return unit.describe()

    def delete_organizational_unit(self, **kwargs: Any) -> None:
        unit_id = kwargs["OrganizationalUnitId"]
        if any(a.parent_id == unit_id for a in self.accounts) or any(u.parent_id == unit_id for u in self.ou):
            raise _refusal("OrganizationalUnitNotEmptyException", "The organizational unit is not empty.")
        super().delete_organizational_unit(**kwargs)

    def move_account(self, **kwargs: Any) -> None:
        self.let_time_pass()
        account = self.by_id.get(kwargs["AccountId"])
        source, destination = kwargs["SourceParentId"], kwargs["DestinationParentId"]
        self._require(source, "SourceParentNotFoundException")
        self._require(destination, "DestinationParentNotFoundException")
        if account is None or account.parent_id != source:
            raise _refusal("AccountNotFoundException", "You specified an account that doesn't exist.")
        if source == destination:
            raise _refusal("DuplicateAccountException", "That account is already present in the specified destination.")
        account.parent_id = destination

    def close_account(self, **kwargs: Any) -> None:
        self.let_time_pass()
        account = self.by_id.get(kwargs["AccountId"])
        if account is None:
            raise _refusal("AccountNotFoundException", "You specified an account that doesn't exist.")
        if not isinstance(account, MemberAccount):
            raise _constraint("CANNOT_CLOSE_MANAGEMENT_ACCOUNT", "You cannot close the management account.")
        if account.status == "SUSPENDED":
            raise _refusal("AccountAlreadyClosedException", "The provided account is already closed.")
        if account.status == "PENDING_CLOSURE":
            raise _refusal("ConflictException", "The account is already being closed.")
        now, settings = runtime.clock.now(), runtime.config()
        self.closures.asked = [at for at in self.closures.asked if now - at < _CLOSURE_WINDOW_SECONDS]
        if settings.close_account_quota is not None and len(self.closures.asked) >= settings.close_account_quota:
            message = "You have exceeded close account quota for the past 30 days."
            raise _constraint("CLOSE_ACCOUNT_QUOTA_EXCEEDED", message)
        if settings.close_account_requests is not None and len(self.closing) >= settings.close_account_requests:
            message = "You attempted to exceed the number of accounts that you can close at a time."
            raise _constraint("CLOSE_ACCOUNT_REQUESTS_LIMIT_EXCEEDED", message)
        self.closures.asked.append(now)
        account.status = account.state = "PENDING_CLOSURE"
        account.closed_at = now + settings.close_account_seconds
        self.closing.append(account)

    def remove_account_from_organization(self, **kwargs: Any) -> None:
        super().remove_account_from_organization(**kwargs)
        self.by_id = {account.id: account for account in self.accounts}

    def _complete(self, creation: Creation) -> None:
        del self.in_progress[creation.id]
        # If the clock was moved ahead, the computed instant may lie before the request.
        creation.completed = max(creation.requested, min(time.time(), runtime.clock.real_time_of(creation.due_at)))
        if creation.failure_reason is None and creation.email.lower() in self.emails:
            creation.failure_reason = "EMAIL_ALREADY_EXISTS"
        self._changed()
        if creation.failure_reason is not None:
            creation.state = "FAILED"
            return
        account = MemberAccount(self.org, creation)
        self.accounts.append(account)
        self.by_id[account.id] = account
        self.emails.add(account.email.lower())
        for policy_id in (moto_utils.DEFAULT_SCP_POLICY_ID, moto_utils.DEFAULT_RCP_POLICY_ID):
            policy = self.get_policy_by_id(policy_id)
            account.attached_policies.append(policy)
            policy.attachments.append(account)
        organizations_backends.master_accounts[account.id] = (self.account_id, self.partition)
        creation.state, creation.account_id = "SUCCEEDED", account.id

    def _changed(self) -> None:
        call.touch(self.account_id, "aws")
        call.mark_changed()

    def _require(self, parent_id: str, error: str) -> FakeOrganizationalUnit:
        for unit in self.ou:
            if unit.id == parent_id:
                return unit
        raise _refusal(error, "You specified a parent that doesn't exist.")

    def _refuse_twin(self, parent_id: str | None, name: str) -> None:
        if any(unit.parent_id == parent_id and unit.name == name for unit in self.ou):
            raise _refusal("DuplicateOrganizationalUnitException", "An OU with the same name already exists.")


class PerdureOrganizationsResponse(OrganizationsResponse):
    @property
    def _ours(self) -> PerdureOrganizations:
        return cast(PerdureOrganizations, self.organizations_backend)

    def call_action(self) -> Any:
        if self.current_account != runtime.payer_account:
            error = denied(_SERVICE, self._get_action(), self.current_account)
            if self._get_action() != "DescribeOrganization":
                return error.status, *_headers_and_body(error)
        return super().call_action()

    def list_accounts(self) -> str:
        return json.dumps(self._ours.list_accounts_page(**self.request_params))

    def list_accounts_for_parent(self) -> str:
        return json.dumps(self._ours.list_accounts_for_parent_page(**self.request_params))

    def list_organizational_units_for_parent(self) -> str:
        return json.dumps(self._ours.list_units_page(**self.request_params))


def _headers_and_body(error: ErrorAnswer) -> tuple[dict[str, str], str]:
    refusal = Refusal(_SERVICE, error)
    return dict(refusal.get_headers()), refusal.get_body()


def _page(name: str, entries: list[_T], kwargs: dict[str, Any], describe: Any = lambda entry: entry) -> dict[str, Any]:
    size = int(kwargs.get("MaxResults") or _MAX_PAGE)
    if not 1 <= size <= _MAX_PAGE:
        raise _refusal("InvalidInputException", "You provided an invalid page size.", "MAX_VALUE_EXCEEDED")
    unreadable = _refusal("InvalidInputException", "The provided token is invalid.", "INVALID_NEXT_TOKEN")
    page, following = page_of(entries, size, kwargs.get("NextToken"), unreadable)
    return {name: [describe(entry) for entry in page], **({"NextToken": following} if following else {})}


def _constraint(reason: str, message: str) -> Refusal:
    return _refusal("ConstraintViolationException", message, reason)


def _refusal(code: str, message: str, reason: str | None = None) -> Refusal:
    return Refusal(_SERVICE, ErrorAnswer(code, message, details=(("Reason", reason),) if reason else ()))
