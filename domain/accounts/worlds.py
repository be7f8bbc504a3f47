"""What the decisions of the area see: one world per kind, each small enough to be carried in a history."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import ClassVar, Self

from domain.accounts.config import OperatorConfig, parse_tags
from domain.accounts.constants import DEVELOPMENT_ACCOUNT, PROTECTED
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
from domain.accounts.status import with_account_state, with_claim_state, with_condition, with_failure
from domain.accounts.unwritten import still_unwritten
from domain.decision import Action, Decision
from domain.levers import paused
from domain.model import Model
from domain.object_world import ObjectWorld
from domain.resource import condition_of
from domain.writes import JsonPatch, Patch, difference


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


def key_fault(secret: InputSecret | None) -> tuple[str, str] | None:
    """What is wrong with a customer's Secret, as reason and words; None if nothing is."""
    if secret is None:
        return "BYOCSecretMissing", "does not exist"
    incomplete = "BYOCSecretIncomplete", "lacks aws_access_key_id or aws_secret_access_key"
    return None if secret.complete else incomplete


class AreaWorld(ObjectWorld):
    """What the worlds of Accounts and claims have in common: which AWS accounts are not touched."""

    config: OperatorConfig = OperatorConfig()
    protected: tuple[str, ...] = ()
    dev_mode: bool = False

    def untouchable(self, account_id: str) -> bool:
        """True for a payer or another account of the blocklist: nothing is done in it."""
        return bool(account_id) and account_id in {*self.config.payer_account_ids, *self.protected}

    def forbidden(self, account_id: str, waits_for: str = "its removal") -> Decision | None:
        """The wait of an object in whose AWS account nothing is done; None for any other."""
        if not self.untouchable(account_id):
            return None
        why = f"AWS account {account_id} is a payer or protected account: nothing is done in it"
        return self.waiting(why, waits_for)

    def lacking(self, *keys: str, deadline: datetime | None = None, at: str = "") -> Decision | None:
        """The wait for keys of the ConfigMap; None where none of them is missing."""
        missing = self.config.missing(*keys)
        why = f"missing in the operator's ConfigMap: {', '.join(missing)}"
        return self.waiting(why, "ConfigMap", deadline=deadline, at=at) if missing else None

    def member_of(self, account: Account) -> dict[str, str]:
        """Where an effect in an Account's AWS account happens, as its action says it."""
        return {"account_id": account.spec.aws_account_id, "partition": self.config.partition}

    def stands_in(self, account: Account) -> bool:
        """True for the id that development mode records where it asks AWS for no account: many Accounts may have it."""
        return self.dev_mode and account.spec.aws_account_id == DEVELOPMENT_ACCOUNT and not account.customers


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


class AccountWorld(AreaWorld):
    """One Account, the configuration, and the claim that holds it (for its custom tags and key)."""

    about: ClassVar[str] = "account"
    first_phase: ClassVar[str] = "Pending"

    account: Account = Account()
    claim: AccountClaim | None = None
    email_domain: str = ""
    input_secret: InputSecret | None = None  # a BYOC claim's
    known: AccountKnown = AccountKnown()

    @property
    def owner(self) -> str:
        """What the Account was made for, a pool mostly."""
        meta = self.account.metadata
        owner = next((each for each in meta.owner_references if each.controller), None)
        return f"{owner.kind}/{meta.namespace}/{owner.name}" if owner else ""

    @property
    def is_protected(self) -> bool:
        """True for an Account in whose AWS account nothing is done."""
        return self.untouchable(self.account.spec.aws_account_id)

    @property
    def out_of_bounds(self) -> bool:
        """True where development mode's id is a payer's or protected: it is shown as an account, nothing is done in it.

        Who the payer is, only AWS knows: its refusal tells.
        """
        refused = any(refusal.code == PROTECTED for refusal in self.refusals.values())
        return self.stands_in(self.account) and (self.is_protected or refused)

    @property
    def ownership_tags(self) -> dict[str, str]:
        """The tags of what is made in the AWS account: our marks win over what tenants and configuration name."""
        custom = parse_tags(self.claim.spec.custom_tags) if self.claim else {}
        return {**self.config.managed_tags, **custom, **self.account.marks}

    @property
    def member(self) -> dict[str, str]:
        """Where an effect in its AWS account happens."""
        return self.member_of(self.account)

    def entering(
        self, state: str, message: str, now: datetime, why: str = "", status: AccountStatus | None = None
    ) -> Decision:
        """Write the state with its condition, onto `status` where more of it changes."""
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
        """Write the state Failed with the condition that says why, onto `status` where more of it changes."""
        failed = with_failure(status or self.account.status, type_, reason, message, now)
        return self.working(why or message, self.write_status(failed), *more)

    def noted(self, type_: str, reason: str, message: str, now: datetime) -> tuple[Action, ...]:
        """The write of a condition that the Account does not have yet."""
        status = self.account.status
        if condition_of(status.conditions, type_) is not None:
            return ()
        conditions = with_condition(status.conditions, type_, reason, message, now)
        return (self.write_status(status.model_copy(update={"conditions": conditions})),)

    def write_status(self, status: AccountStatus, note: str = "") -> Patch:
        """The write that turns the Account's status into this one."""
        patch: JsonPatch = {"status": difference(self.account.status, status)}
        return self.write(patch, note or f"status {status.state}", "status")

    def write_spec(self, spec: AccountSpec, note: str) -> Patch:
        """The write that turns the Account's spec into this one."""
        return self.write({"spec": difference(self.account.spec, spec)}, note)

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
        return super().written(patch, resource_version, gone=gone)._after(self.account)

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


class ClaimWorld(AreaWorld):
    """One AccountClaim, and the Account it is linked to.

    `account` is the one that `spec.accountLink` names or, for a claim without a link, one that names this claim; None
    if there is none. `unserved` says why none of the pool's accounts fits. `accesses` are the federated accesses to a
    customer's account, by name, that end with the claim.
    """

    about: ClassVar[str] = "claim"

    claim: AccountClaim = AccountClaim()
    account: Account | None = None
    pool_exists: bool = True
    unserved: str = ""
    by_pool: bool = False  # the pool's pass decides for the claim right after binding it
    rotate_keys: bool = True
    input_secret: InputSecret | None = None  # a BYOC claim's, None where there is none
    delivered: bool = False  # whether a BYOC claim's own Secret exists
    accesses: tuple[str, ...] = ()
    known: ClaimKnown = ClaimKnown()

    @property
    def held(self) -> Account | None:
        """The Account, if it names the claim as its holder: its link is the truth, a tenant can write the claim's."""
        return self.account if self.account is not None and self.claim.holds(self.account) else None

    def with_spec(self, **fields: object) -> Self:
        """This world after an activity has written these fields of the claim's spec.

        The resourceVersion is not known then, so the next write goes without.
        """
        spec = self.claim.spec.model_copy(update=fields)
        metadata = self.claim.metadata.model_copy(update={"resource_version": ""})
        return self.model_copy(update={"claim": self.claim.model_copy(update={"spec": spec, "metadata": metadata})})

    def paused(self, account: Account) -> Decision | None:
        """Wait while a person holds the Account: what its claim would do with it, or in it, is held as well."""
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
        """Write the state with its condition, onto `status` where more of it changes."""
        entered = with_claim_state(status or self.claim.status, state, type_, "AccountClaimed", message, now)
        return self.working(why or message, self.write_status(entered))

    def write_status(self, status: AccountClaimStatus, note: str = "") -> Patch:
        """The write of the claim's status; whether it enters a state is said in its note."""
        return super().write_status(status, entering(status.state) if status.state != self.state else "conditions")

    def recall(self, before: Self) -> Self:
        """This new observation with the old knowledge."""
        return super().recall(before)._after()

    def written(self, patch: dict[str, object], resource_version: str, *, gone: bool = False) -> Self:
        """This world after a write of the claim."""
        return super().written(patch, resource_version, gone=gone)._after()

    def _after(self) -> Self:
        """A claim that leaves Ready again (by hand) is handed its account anew, Secret and all."""
        if self.claim.status.state != ClaimState.READY:
            return self
        return self.learn(fulfilled="", fleet_role=False, role_delivered=False)


def entering(state: str) -> str:
    """The note of the write by which a claim enters a state: later writes of its whole status name the state, too."""
    return f"status {state}"
