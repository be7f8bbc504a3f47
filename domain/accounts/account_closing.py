"""Closing a released account instead of reusing it, behind `feature.close_on_release`.

    clean --> dry run (the default): reported, and released
          --> recorded on the Account --> CloseAccount --> the Account is deleted --> the claim is deleted
                  +--AWS's limit--> postponed by 1 h, 2 h, ... 24 h; the claim keeps its finalizer
                  +--refused------> released

AWS's limits: https://docs.aws.amazon.com/organizations/latest/userguide/orgs_manage_accounts_close.html. The closing is
recorded before it is requested, so that a lifecycle that has lost its memory repeats the request. GovCloud accounts are
never closed.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from domain.accounts.actions.account_closing import CloseAccount, NoteClosing
from domain.accounts.actions.handover import Release, ReleaseAccount
from domain.accounts.constants import (
    CLOSE_BACKOFF_SECONDS,
    CLOSE_LIMITED_UNTIL,
    CLOSING_FOR,
    FIRST_CLOSE_BACKOFF,
    LONGEST_CLOSE_BACKOFF,
)
from domain.accounts.observed import ClaimWorld
from domain.accounts.resources import Account
from domain.decision import Decision
from domain.refusal import ErrorType
from domain.resource import parse_timestamp, reckonable, timestamp


def closing(world: ClaimWorld, account: Account, release: ReleaseAccount, now: datetime) -> Decision | None:
    """The next step to close a clean account; None if `release` must free the account instead."""
    claim, config, account_id = world.claim, world.config, account.spec.aws_account_id
    if not account_id or account.customers or world.stands_in(account):
        return None
    if world.known.closed == account_id:
        gone = release.model_copy(update={"how": Release.CLOSED})
        return world.working(f"AWS account {account_id} is closed", gone)
    begun = has_begun(world, account)
    if config.fedramp or not (config.features.close_on_release or begun):
        return None
    until = parse_timestamp(account.metadata.annotations.get(CLOSE_LIMITED_UNTIL))
    if until is not None and now < until:
        until = until if reckonable(until) else now + LONGEST_CLOSE_BACKOFF
        again = f"the next attempt to close account {account_id} is at {timestamp(until)}"
        why = f"AWS's limit on closing accounts is reached: {again}"
        return world.waiting(why, "CloseAccount", deadline=until, at="ask AWS again to close the account")
    if config.close_dry_run and not begun:
        return None
    if world.known.closing_limited:
        return world.working(world.known.closing_limited, _put_off(account, now))
    refusal = world.refused(CloseAccount.activity, ErrorType.DENIED, ErrorType.INVALID, ErrorType.ABSENT)
    if refusal and not refusal.ours:
        return None
    if not begun:
        note = NoteClosing.annotating(account, {CLOSING_FOR: claim.metadata.uid}, "closing begins")
        return world.working(f"AWS account {account_id} will be closed", note)
    return world.working(f"close AWS account {account_id}", CloseAccount(account_id=account_id))


def has_begun(world: ClaimWorld, account: Account) -> bool:
    """Whether the Account records that it is being closed for this claim. If so, nothing else may be done in the AWS
    account.
    """
    uid = world.claim.metadata.uid
    return bool(uid) and account.metadata.annotations.get(CLOSING_FOR) == uid


def why_freed(world: ClaimWorld) -> str:
    """Why the account is freed instead of closed, as the end of a message; empty if closing is off."""
    config = world.config
    if not config.features.close_on_release or config.fedramp:
        return ""
    if config.close_dry_run:
        return "; it would be closed, but close_account.dry_run is set"
    refusal = world.refused(CloseAccount.activity)
    return f"; it is not closed: {refusal.message}" if refusal else ""


def back_off(account: Account) -> timedelta:
    text = account.metadata.annotations.get(CLOSE_BACKOFF_SECONDS, "")
    before = timedelta(seconds=int(text)) if text.isdecimal() and len(text) < 9 else timedelta()
    return min(max(before * 2, FIRST_CLOSE_BACKOFF), LONGEST_CLOSE_BACKOFF)


def _put_off(account: Account, now: datetime) -> NoteClosing:
    delay = back_off(account)
    until, seconds = timestamp(now + delay), str(int(delay.total_seconds()))
    note = {CLOSE_LIMITED_UNTIL: until, CLOSE_BACKOFF_SECONDS: seconds, CLOSING_FOR: None}
    return NoteClosing.annotating(account, note, f"closing is postponed by {delay}")
