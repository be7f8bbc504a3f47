"""What the area's decisions read: one `World` class per kind, small enough for Temporal's history."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import ClassVar, Self

from domain.accounts.claim_holder import holds
from domain.accounts.config import OperatorConfig
from domain.accounts.constants import DEVELOPMENT_ACCOUNT
from domain.accounts.resources import (
    Account,
    AccountClaim,
    AccountClaimStatus,
    AccountSpec,
    AccountState,
    AccountStatus,
    ClaimState,
    ServiceQuota,
)
from domain.accounts.state_conditions import with_account_state, with_claim_state, with_condition, with_failure
from domain.accounts.unrecorded_regions_and_quotas import still_unwritten
from domain.control_annotations import paused
from domain.decision import Action, Decision
from domain.model import Model
from domain.object_world import ObjectWorld
from domain.resource import condition_of
from domain.writes import JsonPatch, Patch, difference


class Verdict(StrEnum):
    GRANTED = "Granted"
    LIMIT_REACHED = "LimitReached"  # the account limit is reached, or cannot be read
    BUDGET_SPENT = "BudgetSpent"
    QUEUED = "Queued"  # other accounts are being created first; another answer follows


class Permit(Model):
    """The organization's answer to an Account: a permit to create its AWS account, valid until `until`, or a refusal.

    `account_id` or `request_id` is set if AWS already has an account of the Account's name, or a request to create one.
    """

    verdict: Verdict
    message: str = ""
    until: datetime | None = None
    request_id: str = ""
    account_id: str = ""


class RegionOutcome(Model):
    """`given_up`: no instance ran in time, but AWS did not definitely refuse. `vcpus_asked`: a request for vCPUs is
    open.
    """

    region: str
    ok: bool
    message: str = ""
    given_up: bool = False
    vcpus_asked: bool = False


class InputSecret(Model):
    """What is known of a customer's Secret, without its content.

    `complete`: it has both parts of a key. `held`: it has our finalizer, until the claim is released.
    """

    complete: bool
    held: bool


def key_fault(secret: InputSecret | None) -> tuple[str, str] | None:
    """What is wrong with the customer's Secret, as reason and explanation; None if nothing is wrong."""
    if secret is None:
        return "BYOCSecretMissing", "does not exist"
    incomplete = "BYOCSecretIncomplete", "lacks aws_access_key_id or aws_secret_access_key"
    return None if secret.complete else incomplete


class ConfiguredWorld(ObjectWorld):
    config: OperatorConfig = OperatorConfig()

    def partition_unknown(self) -> Decision | None:
        return self.waiting(self.config.fault("fedramp"), "ConfigMap") if self.config.missing("fedramp") else None


class AreaWorld(ConfiguredWorld):
    protected: tuple[str, ...] = ()
    dev_mode: bool = False

    def lacking(self, *keys: str, deadline: datetime | None = None, at: str = "") -> Decision | None:
        fault = self.config.fault(*keys)
        return self.waiting(fault, "ConfigMap", deadline=deadline, at=at) if fault else None

    def member_of(self, account: Account) -> dict[str, str]:
        return {"account_id": account.spec.aws_account_id, "partition": self.config.partition}

    def stands_in(self, account: Account) -> bool:
        return self.dev_mode and account.spec.aws_account_id == DEVELOPMENT_ACCOUNT and not account.customers


class AccountMemory(Model):
    """What an Account's lifecycle remembers. Without it, queries are repeated, but no object in AWS is lost.

    `inherited`: AWS may have objects of the Account that this memory lacks, so even first attempts search for them.
    """

    inherited: bool | None = None
    permit: Permit | None = None
    request_id: str = ""
    created_account_id: str = ""
    failure: str = ""  # AWS's code for the last failed create request
    tagged: bool = False
    support_role: bool = False
    support_role_shut: bool = False  # AWS refused to let it be assumed after it was last ensured
    admin_secret: str = ""  # the Secret with the admin user's key; empty until this key exists
    regions: tuple[str, ...] | None = None
    outcomes: dict[str, RegionOutcome] = {}
    cleaned: dict[str, str] = {}  # region -> result, for regions cleaned after an interrupted initialisation
    case_id: str = ""
    resolved_case: str = ""
    identities_deleted: bool = False
    opt_in_asked: bool = False  # a permit to opt in to regions was requested
    opt_in_until: datetime | None = None  # expiry of that permit
    opt_in_news: dict[str, str] = {}  # opt-in region -> status not written yet; "" if AWS does not know the region
    quota_news: dict[str, dict[str, ServiceQuota]] = {}  # quotas not written yet, by region ("": account-wide) and code
    vcpus_asked: tuple[str, ...] = ()  # regions whose initialisation had an open request for vCPUs when last seen


class AccountWorld(AreaWorld):
    about: ClassVar[str] = "account"
    first_phase: ClassVar[str] = "Pending"

    account: Account = Account()
    claim: AccountClaim | None = None
    email_domain: str = ""
    input_secret: InputSecret | None = None  # the customer's Secret that a BYOC claim names; None if it does not exist
    known: AccountMemory = AccountMemory()

    @property
    def owner(self) -> str:
        meta = self.account.metadata
        owner = next((each for each in meta.owner_references if each.controller), None)
        return f"{owner.kind}/{meta.namespace}/{owner.name}" if owner else ""

    @property
    def member(self) -> dict[str, str]:
        return self.member_of(self.account)

    def entering(
        self, state: str, message: str, now: datetime, why: str = "", status: AccountStatus | None = None
    ) -> Decision:
        entered = with_account_state(status or self.account.status, state, message, now)
        return self.working(why or message, self.write_status(entered))

    def failing(
        self,
        type_: str,
        reason: str,
        message: str,
        now: datetime,
        *more: Action,
        why: str = "",
        status: AccountStatus | None = None,
    ) -> Decision:
        failed = with_failure(status or self.account.status, type_, reason, message, now)
        return self.working(why or message, self.write_status(failed), *more)

    def noted(self, type_: str, reason: str, message: str, now: datetime) -> tuple[Action, ...]:
        status = self.account.status
        if condition_of(status.conditions, type_) is not None:
            return ()
        conditions = with_condition(status.conditions, type_, reason, message, now)
        return (self.write_status(status.model_copy(update={"conditions": conditions})),)

    def write_status(self, status: AccountStatus, note: str = "") -> Patch:
        patch: JsonPatch = {"status": difference(self.account.status, status)}
        return self.write(patch, note or f"status {status.state}", "status")

    def write_spec(self, spec: AccountSpec, note: str) -> Patch:
        return self.write({"spec": difference(self.account.spec, spec)}, note)

    def recall(self, before: Self) -> Self:
        known = before.known
        if known.inherited is None:
            found = bool(self.account.spec.aws_account_id or self.account.status.state)
            known = known.model_copy(update={"inherited": found})
        recalled = self.model_copy(update={"refusals": before.refusals, "known": known})
        return recalled._after(before.account)

    def written(self, patch: dict[str, object], resource_version: str, *, gone: bool = False) -> Self:
        return super().written(patch, resource_version, gone=gone)._after(self.account)

    def _after(self, before: Account) -> Self:
        """Drop memory and refusals when the Account becomes Ready, leaves Failed, or has its state blanked.

        While a Ready Account names a Secret or a claim, `admin_secret` stays empty. After a fleet manager's claim has
        deleted the Account's Secret, the Account gets a new key only if `admin_secret` is empty.
        """
        was, is_ = before.status.state, self.account.status.state
        ended = is_ in {AccountState.READY, AccountState.NEW} and was not in {is_, AccountState.NEW}
        if ended or (before.failed and not self.account.failed):
            return self.model_copy(update={"known": AccountMemory(inherited=True), "refusals": {}})
        spec = self.account.spec
        served = is_ == AccountState.READY and (spec.iam_user_secret or spec.claim_link)
        return self.learn(
            admin_secret="" if served else self.known.admin_secret,
            **still_unwritten(self.account.status, self.known.opt_in_news, self.known.quota_news),
        )


class ClaimMemory(Model):
    """What a claim's lifecycle remembers. Without it, steps are repeated, but no object in AWS is lost.

    `fulfilled` names the Account that was handed over; it is kept only until the claim is Ready.
    """

    fulfilled: str = ""
    made: str = ""  # the Account created for a customer's account, until the claim has its link
    fleet_principal: str = ""  # the principal that the fleet manager's role trusts; empty before the role exists
    role_delivered: bool = False
    fleet_role_deleted: bool = False
    held_secret: str = ""  # the customer's Secret that has our finalizer, even if the claim now names another one
    secret_removed: bool = False
    secrets_let_go: bool = False
    fake_secret: bool | None = None  # a fake claim's Secret: True once it is written, False once it is deleted
    keys_rotated: bool = False
    cleaned: dict[str, str] = {}  # region (or "global") -> report
    closed: str = ""  # the AWS account that was closed instead of released
    closing_limited: str = ""  # AWS's message about its limit on closing accounts, until recorded on the Account


class ClaimWorld(AreaWorld):
    about: ClassVar[str] = "claim"

    claim: AccountClaim = AccountClaim()
    # The Account in `spec.accountLink`, otherwise an Account that names this claim; None if there is none.
    account: Account | None = None
    pool_exists: bool = True
    unserved: str = ""  # why none of the pool's accounts fits the claim
    by_pool: bool = False  # the pool's pass, which has just bound the claim, decides instead of the claim's workflow
    rotate_keys: bool = True
    input_secret: InputSecret | None = None  # the customer's Secret that a BYOC claim names; None if it does not exist
    delivered: bool = False  # whether a BYOC claim's own Secret exists
    accesses: tuple[str, ...] = ()  # names of federated accesses to revoke before a customer's account is released
    known: ClaimMemory = ClaimMemory()

    @property
    def held(self) -> Account | None:
        """The Account if it names the claim as its holder. The claim's link proves nothing: tenants can write it."""
        return self.account if self.account is not None and holds(self.claim, self.account) else None

    def with_spec(self, **fields: object) -> Self:
        """The world after an activity has written these fields. The new resourceVersion is unknown, so the next write
        has no precondition.
        """
        spec = self.claim.spec.model_copy(update=fields)
        metadata = self.claim.metadata.model_copy(update={"resource_version": ""})
        return self.model_copy(update={"claim": self.claim.model_copy(update={"spec": spec, "metadata": metadata})})

    def paused(self, account: Account) -> Decision | None:
        name = account.metadata.name
        return self.waiting(f"Account {name} is paused", f"Account/{name}") if paused(account.metadata) else None

    def reaching(
        self,
        state: str,
        type_: str,
        message: str,
        now: datetime,
        why: str = "",
        status: AccountClaimStatus | None = None,
    ) -> Decision:
        entered = with_claim_state(status or self.claim.status, state, type_, "AccountClaimed", message, now)
        return self.working(why or message, self.write_status(entered))

    def write_status(self, status: AccountClaimStatus, note: str = "") -> Patch:
        return super().write_status(status, entering(status.state) if status.state != self.state else "conditions")

    def recall(self, before: Self) -> Self:
        recalled = super().recall(before)._after()
        if recalled.known.held_secret or not (self.input_secret and self.input_secret.held):
            return recalled
        return recalled.learn(held_secret=self.claim.spec.byoc_secret_ref.name)

    def written(self, patch: dict[str, object], resource_version: str, *, gone: bool = False) -> Self:
        return super().written(patch, resource_version, gone=gone)._after()

    def _after(self) -> Self:
        """A Ready claim forgets the handover, so that the handover is repeated if the claim's state is reset."""
        linked = self.learn(made="") if self.claim.spec.account_link else self
        if self.claim.status.state != ClaimState.READY:
            return linked
        fake_secret = None if self.known.fake_secret else self.known.fake_secret
        return linked.learn(fulfilled="", fleet_principal="", role_delivered=False, fake_secret=fake_secret)


def entering(state: str) -> str:
    return f"status {state}"
