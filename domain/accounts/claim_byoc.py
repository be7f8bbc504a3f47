"""The lifecycle of a claim on a customer's account: BYOC with the customer's key, or STS with a role.

    new:      customer's Secret protected --> Account created --> Account Ready --> claim Ready
              --> support role's ARN and claim's Secret written
    deleted:  federated accesses that are also being deleted are gone --> claim's Secret deleted
              --> Account and Perdure's IAM objects deleted --> customer's Secret released --> finalizer removed

Clients depend on this order: the claim's state is blank until it is Ready or Error, and Ready precedes the Secret.
"""

from __future__ import annotations

from datetime import datetime

from domain.accounts.actions.claim_secrets import (
    DeliverCredentials,
    HoldInputSecret,
    LetFormerSecretGo,
    LetSecretsGo,
    RemoveSecret,
)
from domain.accounts.actions.handover import MakeCustomerAccount
from domain.accounts.claim_first_writes import taken_in_hand
from domain.accounts.claim_validation import customers_account, invalid
from domain.accounts.customer_account import TROUBLE
from domain.accounts.force_release import FORCE_RELEASE, release_reason, released_at
from domain.accounts.naming import secret_of
from domain.accounts.observed import ClaimWorld, key_fault
from domain.accounts.protected_accounts import left_alone
from domain.accounts.resources import Account, AccountClaim, AccountClaimStatus, AccountState, ClaimState
from domain.accounts.state_conditions import TRUE, failure_of, lifted, with_claim_state, with_reason
from domain.accounts.support_role import support_role_arn
from domain.decision import Action, Decision
from domain.resource import condition_of
from domain.writes import Delete

# Conditions of the claim. Only SHUT_OUT becomes False once the problem is solved.
SHUT_OUT = "AuthenticationFailed"
BLOCKED = "ReleaseBlocked"
FAILED = "CCSAccountClaimFailed"


def of_customer(world: ClaimWorld) -> bool:
    """Whether a customer owns the account, according to the Account or, if there is none, to the claim's spec."""
    return world.held.customers if world.held is not None else world.claim.spec.byoc


def decide(world: ClaimWorld, now: datetime) -> Decision:
    claim = world.claim
    if step := taken_in_hand(world):
        return step
    if protected := left_alone(world, customers_account(claim), "another account"):
        return protected
    if former := _former_secret_let_go(world):
        return former
    if not claim.spec.account_link:
        return _unlinked(world, now)
    if _to_hold(world):
        return world.working("protect the customer's Secret from deletion", _hold(world))
    return _linked(world, now)


def _unlinked(world: ClaimWorld, now: datetime) -> Decision:
    claim, known = world.claim, world.known
    if fault := invalid(world, now):
        return fault
    if lacks := None if claim.spec.manual_sts_mode else key_fault(world.input_secret):
        reason, what = lacks
        where = f"Secret {claim.metadata.namespace}/{claim.spec.byoc_secret_ref.name}"
        # Adding the finalizer is retried. Each attempt reads the Secret, even if the watcher does not watch it.
        return _reporting(world, SHUT_OUT, reason, f"{where} {what}", where, now, _hold(world))
    if claim.status.state == ClaimState.ERROR or _is_true(claim.status, SHUT_OUT):
        written = world.write_status(_without_shut_out(claim.status, ClaimState.NEW, now))
        return world.working("continue: the fault is corrected", written)
    if _to_hold(world):
        return world.working("protect the customer's Secret from deletion", _hold(world))
    if known.made:
        link = world.write({"spec": {"accountLink": known.made}}, note="record accountLink")
        return world.working(f"link {known.made}", link)
    make = MakeCustomerAccount(
        claim=claim.key,
        account_id=customers_account(claim),
        legal_entity=claim.spec.legal_entity,
        manual_sts_mode=claim.spec.manual_sts_mode,
    )
    return world.working("create its Account", make)


def _linked(world: ClaimWorld, now: datetime) -> Decision:
    claim, account = world.claim, world.account
    link = f"Account/{claim.spec.account_link}"
    if account is None:
        return world.waiting(f"{link} does not exist", link)
    if world.held is None:
        why = f"{link} does not name this claim in spec.claimLink, so the claim does not use it"
        return world.waiting(why, "spec.accountLink or the Account's spec.claimLink")
    if account.failed:
        return _failed(world, account, link, now)
    if account.status.state != AccountState.READY:
        trouble = condition_of(account.status.conditions, TROUBLE)
        if trouble is not None and trouble.status == TRUE:
            return _reporting(world, SHUT_OUT, trouble.reason or TROUBLE, trouble.message or "", link, now)
        return world.waiting(f"{link} is {account.status.state or 'new'}", link)
    step = _handed_over(world, account, now)
    return ((world.paused(account) or world.lacking("fedramp")) if step.actions else None) or step


def _handed_over(world: ClaimWorld, account: Account, now: datetime) -> Decision:
    claim = world.claim
    if claim.status.state != ClaimState.READY or _is_true(claim.status, SHUT_OUT):
        corrected = _without_shut_out(claim.status, ClaimState.READY, now)
        return world.reaching(ClaimState.READY, "Claimed", "BYOC account ready", now, status=corrected)
    role = support_role_arn(world.config.partition, account.spec.aws_account_id, account.iam_user_id)
    # A support role chosen by the customer stays in the claim's spec.
    wanted = claim.spec.support_role_arn if claim.spec.sts_role_arn else role
    delivered = world.delivered and claim.spec.support_role_arn == wanted
    if not (delivered or claim.spec.manual_sts_mode):
        return world.working("hand over the account's key", _deliver(world, account, wanted))
    return world.settled(f"holds {account.metadata.name}")


def _deliver(world: ClaimWorld, account: Account, role: str) -> DeliverCredentials:
    claim = world.claim
    return DeliverCredentials(
        claim=claim.key,
        account=account.metadata.name,
        source_secret=account.spec.iam_user_secret or secret_of(account.metadata.name),
        secret=claim.spec.aws_credential_secret.name,
        input_secret=claim.spec.byoc_secret_ref.name,
        support_role_arn=role,
    )


def _to_hold(world: ClaimWorld) -> bool:
    secret = world.input_secret
    named = world.claim.spec.byoc_secret_ref.name
    return secret is not None and not secret.held and world.known.held_secret != named


def _former_secret_let_go(world: ClaimWorld) -> Decision | None:
    claim, held = world.claim, world.known.held_secret
    if held in {"", claim.spec.byoc_secret_ref.name}:
        return None
    let_go = LetFormerSecretGo(claim=claim.key, input_secret=held, secret="")
    return world.working(let_go.summary, let_go)


def _hold(world: ClaimWorld) -> HoldInputSecret:
    return HoldInputSecret(claim=world.claim.key, secret=world.claim.spec.byoc_secret_ref.name)


def _without_shut_out(status: AccountClaimStatus, state: str, now: datetime) -> AccountClaimStatus:
    return status.model_copy(update={"state": state, "conditions": lifted(status.conditions, SHUT_OUT, now)})


def _failed(world: ClaimWorld, account: Account, link: str, now: datetime) -> Decision:
    claim = world.claim
    failure = failure_of(account.status)
    reason, message = (failure.reason, failure.message) if failure else ("", "")
    status = with_claim_state(claim.status, ClaimState.ERROR, FAILED, FAILED, "CCS Account Failed", now)
    conditions = with_reason(status.conditions, "InternalError", reason or FAILED, message or "", now)
    writes = world.status_change(status.model_copy(update={"conditions": conditions}))
    why = f"{link} has failed: {message or reason or 'no reason given'}"
    return world.waiting(why, link, *writes, phase=ClaimState.ERROR)


def _reporting(
    world: ClaimWorld, type_: str, reason: str, message: str, waits_for: str, now: datetime, *retried: Action
) -> Decision:
    claim = world.claim
    conditions = with_reason(claim.status.conditions, type_, reason, message, now)
    writes = world.status_change(claim.status.model_copy(update={"conditions": conditions}))
    return world.waiting(message, waits_for, *writes, *retried)


def _is_true(status: AccountClaimStatus, type_: str) -> bool:
    found = condition_of(status.conditions, type_)
    return found is not None and found.status == TRUE


def releasing(world: ClaimWorld, now: datetime) -> Decision:
    claim = world.claim
    if account := world.held:
        link = f"Account/{account.metadata.name}"
        if not account.metadata.deleting:
            paused = None if release_reason(claim, account) else world.paused(account)
            delete = world.working(f"delete {link}", _delete(world, account))
            return _accesses_first(world, account, now) or paused or _secret_removed(world, account) or delete
        if account.failed:
            failure = condition_of(account.status.conditions, "AccountClientError")
            what = failure.message if failure and failure.message else "its account cannot be cleaned up"
            forced = f"`perdure abandon --skip-cleanup` or the annotation {FORCE_RELEASE}"
            message = f"{link}: {what} ({forced} releases the claim without a clean-up)"
            reason = "AccountClientError" if failure else "AccountFailed"
            return _reporting(world, BLOCKED, reason, message, link, now)
        return world.waiting(f"{link} is being cleaned up", link)
    if former := _former_secret_let_go(world):
        return former
    if not world.known.secrets_let_go:
        input_secret = claim.spec.byoc_secret_ref.name
        let_go = LetSecretsGo(claim=claim.key, input_secret=input_secret, secret=_own_secret(claim))
        return world.working("release its Secrets", let_go)
    return world.working("it holds no Account and no Secret any more", world.drop_finalizer())


def _secret_removed(world: ClaimWorld, account: Account) -> Decision | None:
    """The deletion of the claim's Secret; None if Perdure wrote none, or has deleted it. The Account must still exist:
    the key in its Secret shows whether the claim's Secret is our copy.
    """
    claim = world.claim
    secret = _own_secret(claim)
    if not secret or world.known.secret_removed:
        return None
    remove = RemoveSecret(claim=claim.key, account=account.metadata.name, secret=secret)
    return world.working("delete its Secret", remove)


def _own_secret(claim: AccountClaim) -> str:
    """The Secret that Perdure wrote for the claim. Empty before Ready, in STS mode, or if the claim names the
    customer's own Secret.
    """
    given = not claim.spec.manual_sts_mode and condition_of(claim.status.conditions, "Claimed") is not None
    secret = claim.spec.aws_credential_secret.name
    return secret if given and secret != claim.spec.byoc_secret_ref.name else ""


def _accesses_first(world: ClaimWorld, account: Account, now: datetime) -> Decision | None:
    """The wait for federated accesses: their revocation needs the support role and the claim's Secret. None if there
    are no accesses, a day has passed, or the release is forced.
    """
    until = released_at(world.claim.metadata)
    if not world.accesses or release_reason(world.claim, account) or until is None or now >= until:
        return None
    namespace = world.claim.metadata.namespace
    waits_for = tuple(f"AWSFederatedAccountAccess/{namespace}/{name}" for name in world.accesses)
    why = f"federated access is revoked first: {', '.join(world.accesses)}"
    at = "the account is released, and the roles of its federated accesses stay in it"
    return world.waiting(why, waits_for, deadline=until, at=at)


def _delete(world: ClaimWorld, account: Account) -> Action:
    return Delete(key=account.key.model_copy(update={"cluster": world.key.cluster}))
