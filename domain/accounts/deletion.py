"""The end of an Account: what of ours is removed before its finalizer is dropped.

    deleted --held by a living claim--> waits for its release --> CreateAccount under way? --> its answer
            --> a case that AWS Support has not answered is resolved --> launches that were cut short are ended
            --> our IAM users and roles are deleted --> finalizer dropped

The AWS account itself is not closed: nothing but its identities and what an initialisation may have left is removed. A
refusal is tried again until a person has the Account let go (`letting_go.py`); after a few it is shown as Failed, and
the Account goes on being deleted. Payer and protected accounts are let go untouched. A customer's account ends as
`customer_deletion.py` says.
"""

from __future__ import annotations

from datetime import datetime

from domain.accounts.account_steps import ownership_tags, protected, status_written, waiting, working
from domain.accounts.actions.cleaning import CleanRegion
from domain.accounts.actions.creation import AwaitAccount
from domain.accounts.actions.identities import DeleteIdentities
from domain.accounts.constants import NO_ACCOUNT_ID, PROTECTED
from domain.accounts.customer_deletion import cut, in_the_way, launches_to_end
from domain.accounts.finalizers import dropped, given_up
from domain.accounts.letting_go import told_to
from domain.accounts.naming import email_of
from domain.accounts.resources import AccountState
from domain.accounts.status import with_condition, with_failure
from domain.accounts.verification import case_to_resolve
from domain.accounts.worlds import AccountWorld
from domain.decision import Action, Decision, Outcome
from domain.resource import condition_of

DELETION_TRIES = 3  # refusals after which a deletion is shown as Failed (it goes on being tried)


def deleting(world: AccountWorld, now: datetime) -> Decision:
    """What an Account that somebody deleted needs now."""
    account, known = world.account, world.known
    if over := given_up(account.metadata, "cleaned up"):
        return waiting(account, *over, phase="Deleting")
    if _held_by_living_claim(world):
        return _held(world, now)
    if not account.spec.aws_account_id and known.request_id and not known.created_account_id:
        email = email_of(account.metadata.name, world.email_domain)
        wait = AwaitAccount(name=account.metadata.name, email=email, request_id=known.request_id)
        return working(account, "AWS is still creating the account", wait, phase="Deleting")
    if account.customers and not protected(world):
        why = "nothing that Perdure created is left or reachable"
        return in_the_way(world, now) or working(account, why, dropped(account), phase="Deleting")
    if why := told_to(account):
        return working(account, f"release without a clean-up: {why}", dropped(account), phase="Deleting")
    if case := None if protected(world) else case_to_resolve(world):
        return working(account, "its support case is not needed any more", case, phase="Deleting")
    if sweep := region_sweeps(world):
        return working(
            account, "terminate instances that an interrupted initialisation may have left", *sweep, phase="Deleting"
        )
    account_id = account.spec.aws_account_id or known.created_account_id
    if account_id and not known.identities_deleted and not account.customers and not protected(world):
        return _clean_identities(world, account_id, now)
    return working(account, "nothing that Perdure created is left", dropped(account), phase="Deleting")


def _clean_identities(world: AccountWorld, account_id: str, now: datetime) -> Decision:
    account = world.account
    clean = DeleteIdentities(
        account_id=account_id,
        partition=world.config.partition,
        name=account.metadata.name,
        namespace=account.metadata.namespace,
    )
    refusal = world.refused(DeleteIdentities.activity)
    if refusal and refusal.code in {PROTECTED, NO_ACCOUNT_ID}:
        return working(account, f"there is nothing to delete: {refusal.message}", dropped(account), phase="Deleting")
    if refusal and refusal.attempts >= DELETION_TRIES and account.status.state != AccountState.FAILED:
        failed = with_failure(account.status, "AccountClientError", "AccountClientError", refusal.message, now)
        return working(account, refusal.message, status_written(world, failed), clean, phase="Deleting")
    return working(account, f"delete IAM users and roles in {account_id}", clean, phase="Deleting")


def _held_by_living_claim(world: AccountWorld) -> bool:
    """A customer's Account goes when its claim is being released, any other when that has ended.

    A claim that is linked to another Account releases that one, and would hold this one for ever.
    """
    claim = world.claim
    if not world.account.spec.claim_link or claim is None:
        return False
    if claim.spec.account_link not in {"", world.account.metadata.name}:
        return False
    return not (world.account.customers and claim.metadata.deleting)


def _held(world: AccountWorld, now: datetime) -> Decision:
    account = world.account
    message = (
        f"Deletion waits until claim {account.spec.claim_link} "
        f"(Namespace: {account.spec.claim_link_namespace}) is released"
    )
    actions: tuple[Action, ...] = ()
    if condition_of(account.status.conditions, "DeletionHeld") is None:
        conditions = with_condition(account.status.conditions, "DeletionHeld", "Claimed", message, now)
        actions = (status_written(world, account.status.model_copy(update={"conditions": conditions})),)
    return Decision(
        phase="Deleting",
        outcome=Outcome.WAITING,
        why=message,
        actions=actions,
        waits_for=(f"AccountClaim/{account.spec.claim_link_namespace}/{account.spec.claim_link}",),
    )


def region_sweeps(world: AccountWorld) -> tuple[Action, ...]:
    """End our launches in the regions whose initialisation was begun and never ended, and nothing else there.

    A worker that was killed in such a region may have left its instance, and nobody looks for it there again. A region
    that keeps refusing (the account is suspended, say) holds nothing up: the audit tells what is left. An account need
    not be new: people bring in old ones by their id, with what runs there, and set the state of those that are held.
    """
    account, known = world.account, world.known
    if protected(world) or not account.spec.aws_account_id:
        return ()
    if account.customers or account.spec.claim_link or account.status.claimed:
        return launches_to_end(world)
    if not cut(world):
        return ()
    member = {"account_id": account.spec.aws_account_id, "partition": world.config.partition}
    marks = ownership_tags(world)
    unended = (region for region in known.regions or () if region not in known.outcomes and region not in known.cleaned)
    sweeps = (CleanRegion(**member, region=region, marks=marks) for region in unended)
    refusals = world.refusals
    return tuple(s for s in sweeps if s.slot not in refusals or refusals[s.slot].attempts < DELETION_TRIES)
