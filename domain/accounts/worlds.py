"""What the decisions of the area see: one world per kind, each small enough to be carried in a history."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Self

from domain.accounts.config import OperatorConfig
from domain.accounts.resources import Account, AccountClaim, AccountState, ClaimState, ServiceQuota
from domain.accounts.unwritten import still_unwritten
from domain.decision import World
from domain.model import Model
from domain.writes import patched


class Verdict(StrEnum):
    """The organization's answer to an Account that wants to be created."""

    GRANTED = "Granted"
    LIMIT_REACHED = "LimitReached"  # or there is no limit that could be read
    BUDGET_SPENT = "BudgetSpent"
    QUEUED = "Queued"  # others are in flight; an answer follows when one has landed


class Permit(Model):
    """What the organization's workflow tells an Account.

    A granted permit is valid `until` then. `request_id` and `account_id` name what the organization already has under
    this Account's name: it is adopted, nothing is created.
    """

    verdict: Verdict
    message: str = ""
    until: datetime | None = None
    request_id: str = ""
    account_id: str = ""


class RegionOutcome(Model):
    """How the initialisation of one region ended; `vcpus_asked` if a request for vCPUs is open there because of it.

    `given_up` after a while in which it was no use, without having been refused for good.
    """

    region: str
    ok: bool
    message: str = ""
    given_up: bool = False
    vcpus_asked: bool = False


class InputSecret(Model):
    """What is known of the Secret with a customer's key; never its content.

    `held` while it carries the finalizer by which we keep it until the claim is released.
    """

    complete: bool
    held: bool


class AccountKnown(Model):
    """What an Account's workflow knows beside the custom resource; losing it costs look-ups, never a cloud object.

    `inherited` is True when the first observation found a lifecycle under way: an earlier life may have made what this
    one is about to make, so every first attempt searches.
    """

    inherited: bool | None = None
    permit: Permit | None = None
    request_id: str = ""
    created_account_id: str = ""
    failure: str = ""  # how the last create request ended without an account: AWS's code
    failed_at: datetime | None = None
    tagged: bool = False
    support_role: bool = False
    admin_secret: str = ""
    regions: tuple[str, ...] | None = None
    outcomes: dict[str, RegionOutcome] = {}
    cleaned: dict[str, str] = {}  # regions whose initialisation was cut short, swept since
    case_id: str = ""
    resolved_case: str = ""
    identities_deleted: bool = False
    opt_in_asked: bool = False  # the organization knows that this account wants to opt in to regions
    opt_in_until: datetime | None = None  # how long its permit to begin with that is valid
    opt_in_news: dict[str, str] = {}  # opt-in regions whose status is not written yet; "": AWS knows no such region
    quota_news: dict[str, dict[str, ServiceQuota]] = {}  # the same of quotas, by region ("": account-wide) and code
    vcpus_asked: tuple[str, ...] = ()  # regions in which the request of an initialisation was open when last seen


class AccountWorld(World):
    """One Account, the configuration, and the claim that holds it (for its custom tags and key)."""

    account: Account = Account()
    config: OperatorConfig = OperatorConfig()
    claim: AccountClaim | None = None
    claim_gone: bool = False
    protected: tuple[str, ...] = ()
    email_domain: str = ""
    dev_mode: bool = False
    input_secret: InputSecret | None = None  # a BYOC claim's
    known: AccountKnown = AccountKnown()

    def recall(self, before: Self) -> Self:
        """This new observation with the old knowledge."""
        known = before.known
        if known.inherited is None:
            found = bool(self.account.spec.aws_account_id or self.account.status.state)
            known = known.model_copy(update={"inherited": found})
        recalled = self.model_copy(update={"refusals": before.refusals, "known": known})
        return recalled._after(before.account)

    def written(self, patch: dict[str, object], resource_version: str, *, gone: bool = False) -> Self:
        """This world after a write of the Account."""
        if gone:
            return self.model_copy(update={"exists": False})
        account = patched(self.account, patch, resource_version)
        return self.model_copy(update={"account": account})._after(self.account)

    def _after(self, before: Account) -> Self:
        """A life ends at Ready, when blanked, when Failed is left: the next remembers nothing, no refusal either.

        A key that was made for a Ready account is forgotten once it is recorded, or the account claimed: a fleet
        manager's claim takes the key away, and after it another one is to be made.
        """
        was, is_ = before.status.state, self.account.status.state
        ended = is_ in {AccountState.READY, AccountState.NEW} and was not in {is_, AccountState.NEW}
        if ended or (before.failed and not self.account.failed):
            return self.model_copy(update={"known": AccountKnown(inherited=True), "refusals": {}})
        spec = self.account.spec
        served = is_ == AccountState.READY and (spec.iam_user_secret or spec.claim_link)
        return self.learn(
            admin_secret="" if served else self.known.admin_secret,
            **still_unwritten(self.account.status, self.known.opt_in_news, self.known.quota_news),
        )


class ClaimKnown(Model):
    """What a claim's workflow knows beside the custom resource; losing it costs a repetition, never a cloud object.

    `fulfilled` names the Account that was handed over on the way to Ready.
    """

    fulfilled: str = ""
    made: str = ""  # the Account that was made for a customer's account
    fleet_role: bool = False
    role_delivered: bool = False
    fleet_role_deleted: bool = False
    secret_held: bool = False
    secret_removed: bool = False
    secrets_let_go: bool = False
    fake_secret: bool | None = None  # a fake claim's: True when it was put, False when it was removed
    keys_rotated: bool = False
    cleaned: dict[str, str] = {}  # region (or "global") -> report
    closed: str = ""  # the AWS account that was closed instead of being freed
    closing_limited: str = ""  # AWS's limit on closing accounts, until it is noted on the Account


class ClaimWorld(World):
    """One AccountClaim, and the Account it is linked to.

    `account` is the one that `spec.accountLink` names or, for a claim without a link, one that names this claim; None
    if there is none. `unserved` says why none of the pool's accounts fits. `accesses` are the federated accesses to a
    customer's account, by name, that end with the claim.
    """

    claim: AccountClaim = AccountClaim()
    account: Account | None = None
    config: OperatorConfig = OperatorConfig()
    pool_exists: bool = True
    unserved: str = ""
    by_pool: bool = False  # the pool's pass decides for the claim right after binding it
    rotate_keys: bool = True
    dev_mode: bool = False
    protected: tuple[str, ...] = ()
    input_secret: InputSecret | None = None  # a BYOC claim's, None where there is none
    delivered: bool = False  # whether a BYOC claim's own Secret exists
    accesses: tuple[str, ...] = ()
    known: ClaimKnown = ClaimKnown()

    def recall(self, before: Self) -> Self:
        """This new observation with the old knowledge."""
        return super().recall(before)._after()

    def written(self, patch: dict[str, object], resource_version: str, *, gone: bool = False) -> Self:
        """This world after a write of the claim."""
        if gone:
            return self.model_copy(update={"exists": False})
        return self.model_copy(update={"claim": patched(self.claim, patch, resource_version)})._after()

    def _after(self) -> Self:
        """A claim that leaves Ready again (by hand) is handed its account anew, Secret and all."""
        if self.claim.status.state != ClaimState.READY:
            return self
        return self.learn(fulfilled="", fleet_role=False, role_delivered=False)
