"""Creates accounts. CreateAccount has no idempotency token: a later attempt first searches by the account's name
(`existing_accounts.py`).

AWS's lists lag by seconds, but e-mail addresses are unique: a second request fails with EMAIL_ALREADY_EXISTS, and the
existing account is adopted if it may be ours.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from activities import attempt
from activities.aws.existing_accounts import account_of, existing, owner_of
from activities.aws.organization import FAILED, IN_PROGRESS, set_tags
from activities.aws.session import Sessions
from domain.accounts.actions.account_creation import (
    PERMIT_EXPIRED,
    TRANSIENT_REASONS,
    AwaitAccount,
    CreateAccount,
    CreatedAccount,
    CreateRequest,
    TagAccount,
)
from domain.accounts.constants import OWNER_TAG
from engine.errors import Absent, ApiError, Conflict, Invalid, Pending, Throttled, Unavailable

log = logging.getLogger(__name__)

UNTAGGED = "AWS account %s stays untagged until feature.validation_tag_account corrects it: %s"
EMAIL_ALREADY_EXISTS = "EMAIL_ALREADY_EXISTS"

# The request is checked after 6, 10, 15, 22, 30, 40 s, then every 15 s.
_LOOKS = (6, 4, 5, 7, 8, 10, 15)
_LOST = (2, 3, 5, 8, 15, 30)
_LISTED_AFTER_SECONDS = 1
_UNKNOWN_REQUEST_LOOKS = 4
_TAGGING_ATTEMPTS = 5


def create_account(sessions: Sessions, action: CreateAccount) -> CreateRequest:
    if action.search or attempt.repeated():
        found = existing(sessions, action.name, action.email)
        if found is not None:
            return found
    _refuse_expired(action)
    organizations = sessions.organizations()
    try:
        answer = organizations.create_account(Email=action.email, AccountName=action.name)
    except Unavailable as error:
        # The request may have reached AWS. Check now, because no attempt follows if the Account is deleted meanwhile.
        # If nothing is found, the next attempt checks again, because AWS's list may lag.
        attempt.pause_regardless(_LISTED_AFTER_SECONDS)
        found = existing(sessions, action.name, action.email)
        if found is not None:
            return found
        error.delay = error.delay or attempt.growing(_LOST)
        raise
    except Throttled as error:
        error.delay = max(error.delay or timedelta(), attempt.growing(_LOST))
        raise
    status = answer["CreateAccountStatus"]
    return CreateRequest(request_id=status["Id"])


def await_account(sessions: Sessions, action: AwaitAccount) -> CreatedAccount:
    """Raises Pending while AWS creates the account, and always in the first attempt."""
    if not attempt.repeated():
        raise _under_way(action, "requested just now")
    organizations = sessions.organizations()
    try:
        answer = organizations.describe_create_account_status(CreateAccountRequestId=action.request_id)
    except Absent as error:
        if attempt.number() < _UNKNOWN_REQUEST_LOOKS:
            raise Pending(error.message, code=error.code, delay=attempt.growing(_LOOKS)) from error
        raise
    status = answer["CreateAccountStatus"]
    if status["State"] == FAILED:
        return _failed(sessions, action, status.get("FailureReason", "UNKNOWN"))
    account_id = status.get("AccountId", "")
    if status["State"] == IN_PROGRESS or not account_id:
        raise _under_way(action, status["State"])
    return CreatedAccount(created_account_id=account_id)


def _under_way(action: AwaitAccount, state: str) -> Pending:
    message = f"request {action.request_id} for account {action.name} is {state}"
    return Pending(message, code=IN_PROGRESS, delay=attempt.growing(_LOOKS))


def tag_account(sessions: Sessions, action: TagAccount) -> None:
    """A refusal, or a fifth failure, is only logged."""
    sessions.refuse_protected(action.account_id)
    try:
        wanted = action.tags if action.fresh else _left_to_tag(sessions, action)
        if wanted:
            set_tags(sessions, action.account_id, wanted)
    except ApiError as error:
        passing = isinstance(error, (Throttled, Unavailable)) and attempt.number() < _TAGGING_ATTEMPTS
        if passing or error.ours:
            raise
        log.warning(UNTAGGED, action.account_id, error.message)


def _left_to_tag(sessions: Sessions, action: TagAccount) -> dict[str, str]:
    owner = owner_of(sessions, action.account_id)
    if owner not in {None, action.tags.get(OWNER_TAG)}:
        log.warning("AWS account %s is not tagged: its tags name another owner, %r", action.account_id, owner)
        return {}
    return {name: value for name, value in action.tags.items() if value or name != OWNER_TAG}


def _refuse_expired(action: CreateAccount) -> None:
    """Raise Invalid for an expired permit, because it no longer counts towards the organization's limits."""
    if attempt.started_at() >= action.until:
        raise Invalid(
            f"the permit to create account {action.name} was valid until {action.until:%H:%M:%S} UTC: no "
            "account was requested from AWS, and a new permit is needed",
            code=PERMIT_EXPIRED,
        )


def _failed(sessions: Sessions, action: AwaitAccount, reason: str) -> CreatedAccount:
    what = f"request {action.request_id} for account {action.name} ({action.email}) failed: {reason}"
    if reason == EMAIL_ALREADY_EXISTS:
        account_id = account_of(sessions, action.name, action.email)
        if account_id:
            return CreatedAccount(created_account_id=account_id)
        raise Invalid(
            f"{what}: this address belongs to an account that is closed, is not Perdure's, or is recorded by another "
            "Account",
            code=reason,
        )
    if reason in TRANSIENT_REASONS:
        raise Conflict(f"{what}; it can be requested again", code=reason)
    raise Invalid(f"{what}. See the FailureReason in the DescribeCreateAccountStatus reference.", code=reason)
