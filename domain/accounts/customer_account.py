"""The lifecycle of a customer's Account: BYOC, or accessed through the customer's role (STS mode).

    ""  --its claim--> Creating --support role, admin user--> InitializingRegions --the claim's regions--> Ready
                                (STS mode: neither)

There is no deadline before InitializingRegions. While the customer's Secret is missing, or AWS refuses the key or role,
the Account waits: the condition `AuthenticationError` says why, and becomes False once access works. An unusable region
fails the Account at once. `account_lifecycle.py` handles pause, retry, failure and deletion.
"""

from __future__ import annotations

from datetime import datetime

from domain.accounts.account_access import customers_key
from domain.accounts.actions.iam_identities import EnsureAdminUser, EnsureSupportRole
from domain.accounts.actions.region_initialization import ListRegions
from domain.accounts.admin_user import key_and_regions, refused_by_iam, secret_recorded
from domain.accounts.constants import NOT_ENTERED, SUPPORT_ROLE_PREFIX
from domain.accounts.observed import AccountWorld, key_fault
from domain.accounts.region_initialization import initializing, list_regions, regions_done, wanted_regions
from domain.accounts.resources import AccountClaim, AccountState
from domain.accounts.state_conditions import lifted, with_reason
from domain.accounts.support_role import support_role, without_jump_role
from domain.decision import Action, Decision
from domain.refusal import ErrorType, Refusal

TROUBLE = "AuthenticationError"
NOT_THERE = "Failed to initialize new CCS account"


def decide(world: AccountWorld, now: datetime) -> Decision:
    account = world.account
    if account.status.state == AccountState.INITIALIZING_REGIONS:
        if world.claim is None:
            return _without_claim(world, now)
        return initializing(world, now, _initialized)
    if account.status.state == AccountState.NEW or not account.status.claimed:
        return _new(world, now)
    if account.status.state == AccountState.READY:
        holder = f"{account.spec.claim_link_namespace}/{account.spec.claim_link}"
        why = f"a customer's account, held by claim {holder}"
        return world.settled(why)
    if world.claim is None:
        return _without_claim(world, now)
    return _creating(world, world.claim, now)


def _new(world: AccountWorld, now: datetime) -> Decision:
    account = world.account
    if world.claim is None:
        return _without_claim(world, now)
    if not account.spec.aws_account_id:
        return world.waiting("spec.awsAccountID is empty", "spec.awsAccountID")
    status, why = account.status.model_copy(update={"claimed": True}), "the customer's account is claimed"
    return world.entering(AccountState.CREATING, "Creating", now, why=why, status=status)


def _without_claim(world: AccountWorld, now: datetime) -> Decision:
    spec = world.account.spec
    why = f"AccountClaim {spec.claim_link_namespace}/{spec.claim_link} not found"
    return world.failing("AccountCreationFailed", why, NOT_THERE, now, why=why)


def _creating(world: AccountWorld, claim: AccountClaim, now: datetime) -> Decision:
    account, known = world.account, world.known
    for_regions = ("ami-owner",) if wanted_regions(world) else ()
    if lacking := without_jump_role(world, *for_regions):
        return lacking
    if not account.spec.manual_sts_mode:
        if not known.support_role:
            return _support_role(world, claim, now)
        if refused := refused_by_iam(world, now):
            return refused
        if (refusal := world.refused(EnsureAdminUser.activity)) and refusal.code == NOT_ENTERED:
            waits_for = f"role {SUPPORT_ROLE_PREFIX}{account.iam_user_id}"
            # The role may be gone, or trust an earlier payer: the customer's key mends it.
            mended = [support_role(world, customers_key(world))] if known.support_role_shut else []
            return _troubled(world, NOT_ENTERED, refusal.message, waits_for, now, *mended, *key_and_regions(world))
    if (refusal := world.refused(ListRegions.activity)) and account.spec.manual_sts_mode:
        waits_for = f"role {claim.spec.sts_role_arn}"
        return _troubled(world, _reason(refusal), refusal.message, waits_for, now, list_regions(world))
    if todo := key_and_regions(world):
        return world.working("create credentials and list the regions", *todo)
    if not account.spec.manual_sts_mode and account.spec.iam_user_secret != known.admin_secret:
        return world.working("record the Secret", secret_recorded(world))
    return _entered(world, now)


def _support_role(world: AccountWorld, claim: AccountClaim, now: datetime) -> Decision:
    ensure = support_role(world, customers_key(world))
    where = f"Secret {claim.metadata.namespace}/{claim.spec.byoc_secret_ref.name}"
    if fault := key_fault(world.input_secret):
        reason, what = fault
        return _troubled(world, reason, f"{where} {what}", where, now, ensure)
    refusal = world.refused(EnsureSupportRole.activity)
    if refusal and refusal.type is not ErrorType.BUG:
        return _troubled(world, _reason(refusal), f"{where}: {refusal.message}", where, now, ensure)
    return world.working("create the support role with the customer's key", ensure)


def _entered(world: AccountWorld, now: datetime) -> Decision:
    account = world.account
    status = account.status.model_copy(update={"conditions": lifted(account.status.conditions, TROUBLE, now)})
    unusable = [region for region in wanted_regions(world) if region not in (world.known.regions or ())]
    if unusable:
        message = f"AWS region {unusable[0]} is not supported in account {account.spec.aws_account_id}: enable it there"
        return world.failing("AccountCreationFailed", "RegionNotSupported", message, now, status=status)
    message, why = "Initializing Regions", "the credentials are ready"
    return world.entering(AccountState.INITIALIZING_REGIONS, message, now, why=why, status=status)


def _initialized(world: AccountWorld, now: datetime) -> Decision:
    return world.entering(AccountState.READY, "BYOC Account Ready", now, why=regions_done(world))


def _troubled(
    world: AccountWorld, reason: str, message: str, waits_for: str, now: datetime, *retried: Action
) -> Decision:
    account = world.account
    conditions = with_reason(account.status.conditions, TROUBLE, reason, message, now)
    status = account.status.model_copy(update={"conditions": conditions})
    writes = world.status_change(status, note=f"condition {TROUBLE}")
    return world.waiting(message, waits_for, *writes, *retried)


def _reason(refusal: Refusal) -> str:
    return refusal.code or refusal.type.value
