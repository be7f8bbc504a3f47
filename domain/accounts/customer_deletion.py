"""The end of a customer's Account: what of ours is removed from an account that stays the customer's.

    deleted --> launches that were cut short are ended --> our IAM user and support role are deleted --> let go
                                                           (STS mode: there are none)

Nothing else is touched there: the customer's own instances, volumes and buckets are no business of ours. The account is
entered by the customer's key as long as the Secret has it, since a support role that deletes itself loses its rights on
the way, and by the support role where the key is gone or refused: they take turns. When neither opens it any more, the
deletion says so and is let go by a person, or after a day (`letting_go.py`); at once if nothing of ours can be there,
because the account was never entered.
"""

from __future__ import annotations

from datetime import datetime

from domain.accounts.access import access_to, customers_key
from domain.accounts.account_steps import ownership_tags, status_written, waiting, working
from domain.accounts.actions.identities import DeleteIdentities
from domain.accounts.actions.launches import EndLaunches
from domain.accounts.initialization import entered_at, wanted_regions
from domain.accounts.letting_go import patience_ends, told_to
from domain.accounts.resources import AccountState
from domain.accounts.status import with_failure
from domain.accounts.worlds import AccountWorld
from domain.decision import Action, Decision
from domain.refusal import ErrorType, Refusal
from domain.resource import condition_of

TRIES = 3  # refusals after which a deletion is shown as Failed, and a launch is not looked for any more


def in_the_way(world: AccountWorld, now: datetime) -> Decision | None:
    """What has to be done in the customer's account before it is let go; None if nothing (more)."""
    account = world.account
    if why := told_to(account, world.claim):
        return (
            None
            if account.status.state == AccountState.FAILED
            else _noted(world, f"release without a clean-up: {why}", now)
        )
    if ends := launches_to_end(world):
        return working(
            account, "terminate instances that an interrupted initialisation may have left", *ends, phase="Deleting"
        )
    if account.spec.manual_sts_mode or world.known.identities_deleted or not account.spec.aws_account_id:
        return None
    refusal = world.refused(DeleteIdentities.activity)
    if refusal and refusal.type is not ErrorType.BUG and refusal.attempts >= TRIES:
        if refusal.type is ErrorType.DENIED and _never_entered(world):
            return None
        until = patience_ends(account.metadata)
        if until is None or now >= until:
            return None
        return _shut_out(world, refusal, until, now)
    return working(
        account, f"delete IAM users and roles in {account.spec.aws_account_id}", _identities(world), phase="Deleting"
    )


def launches_to_end(world: AccountWorld) -> tuple[Action, ...]:
    """Regions whose initialisation was begun and never ended: an instance of ours may run there."""
    account, known = world.account, world.known
    if (account.customers and world.claim is None) or not cut(world):
        return ()
    ends = (
        EndLaunches(
            account_id=account.spec.aws_account_id,
            partition=world.config.partition,
            access=access_to(world),
            region=region,
            tags=ownership_tags(world),
        )
        for region in wanted_regions(world)
        if region not in known.outcomes and region not in known.cleaned
    )
    return tuple(e for e in ends if e.slot not in world.refusals or world.refusals[e.slot].attempts < TRIES)


def cut(world: AccountWorld) -> bool:
    """True for an initialisation that began and has not led to Ready, where each region has had its end."""
    began = entered_at(world.account, AccountState.INITIALIZING_REGIONS)
    ready = entered_at(world.account, AccountState.READY)
    return began is not None and (ready is None or began > ready)


def _identities(world: AccountWorld) -> DeleteIdentities:
    account, refusal = world.account, world.refused(DeleteIdentities.activity)
    has_key = world.input_secret is not None and world.input_secret.complete
    by_key = has_key and (refusal is None or refusal.attempts % 2 == 0)
    return DeleteIdentities(
        account_id=account.spec.aws_account_id,
        partition=world.config.partition,
        access=customers_key(world) if by_key else access_to(world),
        name=account.metadata.name,
        namespace=account.metadata.namespace,
    )


def _never_entered(world: AccountWorld) -> bool:
    account = world.account
    began = condition_of(account.status.conditions, AccountState.INITIALIZING_REGIONS) is not None
    return not (began or account.spec.iam_user_secret or world.known.support_role)


def _shut_out(world: AccountWorld, refusal: Refusal, until: datetime, now: datetime) -> Decision:
    account = world.account
    again = _identities(world)
    if account.status.state != AccountState.FAILED:
        return _noted(world, refusal.message, now, again)
    why = f"AWS account {account.spec.aws_account_id} cannot be accessed any more: {refusal.message}"
    at = "it is released with what is left in it (at once: perdure release)"
    decision = waiting(account, why, "access to the account, or perdure release", until, at, phase="Deleting")
    return decision.model_copy(update={"actions": (again,)})


def _noted(world: AccountWorld, message: str, now: datetime, *more: Action) -> Decision:
    account = world.account
    failed = with_failure(account.status, "AccountClientError", "AccountClientError", message, now)
    return working(account, message, status_written(world, failed), *more, phase="Deleting")
