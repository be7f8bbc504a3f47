"""The deletion of an Account: what Perdure created in AWS is deleted before the finalizer is removed.

    deleted --> waits until no claim holds the Account --> waits until no CreateAccount is pending
            --> an open support case is resolved --> instances of interrupted launches are terminated
            --> our IAM users and roles are deleted --> finalizer removed

Deletion leaves the AWS account open. A pool's account that AWS has closed counts as cleaned
(`activities/aws/iam_identities.py`). Refusals are retried until a person forces the release (`force_release.py`).

In a customer's account, attempts use the customer's key and the support role in turn: a session of the support role
loses its permissions when it deletes that role. If neither gives access any more, the release is forced after a day. If
neither ever gave access, three refusals suffice.
"""

from __future__ import annotations

from datetime import datetime

from domain.accounts.account_access import access_to, customers_key
from domain.accounts.account_creation import await_account
from domain.accounts.actions.account_access import Access
from domain.accounts.actions.iam_identities import DeleteIdentities
from domain.accounts.actions.region_initialization import EndLaunches
from domain.accounts.claim_holder import holds
from domain.accounts.constants import NO_ACCOUNT_ID, PROTECTED
from domain.accounts.force_release import release_reason, released_at
from domain.accounts.iam_and_instance_tags import ownership_tags
from domain.accounts.observed import AccountWorld
from domain.accounts.pending_verification import case_to_resolve
from domain.accounts.protected_accounts import is_protected
from domain.accounts.region_initialization import entered_at, wanted_regions
from domain.accounts.resources import AccountState
from domain.decision import Action, Decision
from domain.refusal import ErrorType, Refusal

TRIES = 3  # refusals after which the Account is shown as Failed, or a region is no longer searched for launches
LEFT_LAUNCHES = "terminate instances that an interrupted initialisation may have left"


def deleting(world: AccountWorld, now: datetime) -> Decision:
    account, known = world.account, world.known
    protected = is_protected(world, account.spec.aws_account_id)
    if waits := world.given_up("cleaned up"):
        return waits
    if _held_by_living_claim(world):
        return _held(world, now)
    forced = release_reason(account, world.claim if account.customers else None)
    if not forced and (unknown := world.lacking("fedramp")):
        return unknown
    if not (forced or account.spec.aws_account_id or known.created_account_id) and known.request_id:
        return world.working("AWS is still creating the account", await_account(world))
    if account.customers and not protected:
        why = "everything that Perdure created is gone or out of reach"
        return _in_customers_account(world, now) or world.working(why, world.drop_finalizer())
    if forced:
        return world.working(f"release without a clean-up: {forced}", world.drop_finalizer())
    if case := None if protected else case_to_resolve(world):
        return world.working("its support case is not needed any more", case)
    if ends := launches_to_end(world):
        return world.working(LEFT_LAUNCHES, *ends)
    account_id = account.spec.aws_account_id or known.created_account_id
    if account_id and not known.identities_deleted and not protected:
        return _clean_identities(world, account_id, now)
    return world.working("nothing that Perdure created is left", world.drop_finalizer())


def _identities(world: AccountWorld, access: Access | None = None, account_id: str = "") -> DeleteIdentities:
    meta, member = world.account.metadata, world.member
    where = {**member, "account_id": account_id} if account_id else member
    return DeleteIdentities(**where, access=access, name=meta.name, namespace=meta.namespace)


def _clean_identities(world: AccountWorld, account_id: str, now: datetime) -> Decision:
    clean = _identities(world, account_id=account_id)
    refusal = world.refused(DeleteIdentities.activity)
    if refusal and refusal.code in {PROTECTED, NO_ACCOUNT_ID}:
        return world.working(f"there is nothing to delete: {refusal.message}", world.drop_finalizer())
    if refusal and refusal.attempts >= TRIES and world.state != AccountState.FAILED:
        return _shown(world, refusal.message, now, clean)
    return world.working(f"delete IAM users and roles in {account_id}", clean)


def _shown(world: AccountWorld, message: str, now: datetime, *more: Action) -> Decision:
    return world.failing("AccountClientError", "AccountClientError", message, now, *more)


def _held_by_living_claim(world: AccountWorld) -> bool:
    """Whether the deletion waits for the claim. A pool's Account waits until the claim is released, a customer's
    only until the release begins. A claim that links to another Account is ignored: it would hold this one forever.
    """
    claim = world.claim
    if claim is None or not holds(claim, world.account):
        return False
    if claim.spec.account_link not in {"", world.account.metadata.name}:
        return False
    return not (world.account.customers and claim.metadata.deleting)


def _held(world: AccountWorld, now: datetime) -> Decision:
    namespace, name = (world.claim.metadata.namespace, world.claim.metadata.name) if world.claim else ("", "")
    message = f"Deletion waits until claim {name} (Namespace: {namespace}) is released"
    waits_for = f"AccountClaim/{namespace}/{name}"
    return world.waiting(message, waits_for, *world.noted("DeletionHeld", "Claimed", message, now))


def launches_to_end(world: AccountWorld) -> tuple[Action, ...]:
    """The actions that terminate our instances after an initialisation was interrupted, for example by a killed worker.

    If a region refuses three times (e.g. in a suspended account), it is skipped; the audit reports instances
    left in it. Instances without our tags stay: people add existing accounts, which may run other instances.
    """
    account, known = world.account, world.known
    reachable = bool(account.spec.aws_account_id) and (world.claim is not None or not account.customers)
    if is_protected(world, account.spec.aws_account_id) or not reachable or not _cut(world):
        return ()
    unended = (each for each in wanted_regions(world) if each not in known.outcomes and each not in known.cleaned)
    common = {**world.member, "access": access_to(world), "tags": ownership_tags(world, account)}
    ends = (EndLaunches(**common, region=region) for region in unended)
    return tuple(e for e in ends if e.slot not in world.refusals or world.refusals[e.slot].attempts < TRIES)


def _cut(world: AccountWorld) -> bool:
    began = entered_at(world.account, AccountState.INITIALIZING_REGIONS)
    ready = entered_at(world.account, AccountState.READY)
    return began is not None and (ready is None or began > ready)


def _in_customers_account(world: AccountWorld, now: datetime) -> Decision | None:
    account = world.account
    if why := release_reason(account, world.claim):
        failed = account.status.state == AccountState.FAILED
        return None if failed else _shown(world, f"release without a clean-up: {why}", now)
    if ends := launches_to_end(world):
        return world.working(LEFT_LAUNCHES, *ends)
    if account.spec.manual_sts_mode or world.known.identities_deleted or not account.spec.aws_account_id:
        return None
    refusal = world.refused(DeleteIdentities.activity)
    if refusal and refusal.type is not ErrorType.BUG and refusal.attempts >= TRIES:
        if refusal.type is ErrorType.DENIED and _never_entered(world):
            return None
        until = released_at(account.metadata)
        return None if until is None or now >= until else _shut_out(world, refusal, until, now)
    return world.working(f"delete IAM users and roles in {account.spec.aws_account_id}", _by_turns(world))


def _by_turns(world: AccountWorld) -> DeleteIdentities:
    refusal = world.refused(DeleteIdentities.activity)
    has_key = world.input_secret is not None and world.input_secret.complete
    by_key = has_key and (refusal is None or refusal.attempts % 2 == 0)
    return _identities(world, customers_key(world) if by_key else access_to(world))


def _never_entered(world: AccountWorld) -> bool:
    began = entered_at(world.account, AccountState.INITIALIZING_REGIONS) is not None
    return not (began or world.account.spec.iam_user_secret or world.known.support_role)


def _shut_out(world: AccountWorld, refusal: Refusal, until: datetime, now: datetime) -> Decision:
    again = _by_turns(world)
    if world.state != AccountState.FAILED:
        return _shown(world, refusal.message, now, again)
    why = f"AWS account {world.account.spec.aws_account_id} cannot be accessed any more: {refusal.message}"
    at = "it is released without a clean-up (to release it now: perdure abandon --skip-cleanup)"
    return world.waiting(why, "access to the account, or perdure abandon --skip-cleanup", again, deadline=until, at=at)
