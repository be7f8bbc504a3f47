"""Closes AWS accounts. CloseAccount can be repeated: AWS answers with a conflict while it is closing the account, and
with another error once the account is closed.

AWS reports a reached limit as a ConstraintViolationException with a Reason
(https://docs.aws.amazon.com/organizations/latest/APIReference/API_CloseAccount.html).
"""

from __future__ import annotations

from datetime import timedelta

from botocore.exceptions import ClientError

from activities import attempt
from activities.aws.organization import is_closed
from activities.aws.session import Sessions
from domain.accounts.actions.account_closing import CloseAccount, Closing
from engine.errors import ApiError, Throttled

_ALREADY = frozenset({"AccountAlreadyClosedException", "ConflictException"})
_LIMITS = frozenset({"CLOSE_ACCOUNT_QUOTA_EXCEEDED", "CLOSE_ACCOUNT_REQUESTS_LIMIT_EXCEEDED"})


def close_account(sessions: Sessions, action: CloseAccount) -> Closing:
    sessions.refuse_protected(action.account_id)
    attempt.checkpoint()
    try:
        sessions.organizations().close_account(AccountId=action.account_id)
    except ApiError as error:
        if _reason(error) in _LIMITS:
            return Closing(limited=error.message)
        if error.code not in _ALREADY:
            raise
        if not is_closed(sessions, action.account_id):
            raise Throttled(error.message, code=error.code, delay=timedelta(seconds=10)) from error
    return Closing()


def _reason(error: ApiError) -> str:
    cause = error.__cause__
    return str(cause.response.get("Reason", "")) if isinstance(cause, ClientError) else ""
