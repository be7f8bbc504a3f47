"""Making an account in the organization: the request, the wait for its end, the tags that name its owner."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import ClassVar

from domain.accounts.worlds import AccountWorld
from domain.decision import Action, Facts, Queue
from domain.model import Model
from domain.refusal import ErrorType, Refusal

PERMIT_EXPIRED = "PermitExpired"
# The organization's own limit: waited for, never a failure of the account.
LIMIT_CODES = frozenset({"ConstraintViolationException", "ACCOUNT_LIMIT_EXCEEDED"})
# A request that ended so may be asked again at once.
TRANSIENT_REASONS = frozenset({"INTERNAL_FAILURE", "CONCURRENT_ACCOUNT_MODIFICATION"})


class CreateRequest(Facts):
    """The answer to CreateAccount, or the request (or account) of that name found instead."""

    request_id: str = ""  # never asked for twice
    created_account_id: str = ""


class CreateAccount(Action):
    """Ask the organization for an account named as the custom resource is. Not asked after `until`.

    Raises: Invalid (code = the AWS code, e.g. ConstraintViolationException), Denied; throttling, concurrent
    modification and outages are retried by the server, each time after a search by name and e-mail.
    """

    activity: ClassVar[str] = "aws.create_account"
    title: ClassVar[str] = "create AWS account {name}"
    learns: ClassVar[Mapping[str, object]] = {"failure": ""}
    queue: ClassVar[str] = Queue.AWS_ORGANIZATION
    result: ClassVar[type[Model] | None] = CreateRequest
    start_to_close: ClassVar[timedelta] = timedelta(minutes=2)
    awaited_when_cancelled: ClassVar[bool] = True

    name: str
    email: str
    until: datetime
    search: bool

    def refuse(self, world: AccountWorld, refusal: Refusal) -> AccountWorld:  # type: ignore[override]
        """A permit that came too late, or a limit reached, is asked for anew; the rest is remembered."""
        if refusal.code == PERMIT_EXPIRED:
            return world.learn(permit=None)
        if refusal.code in LIMIT_CODES:
            return world.learn(permit=None, failure=refusal.code, failed_at=refusal.at)
        return super().refuse(world, refusal)


class CreatedAccount(Facts):
    """An account that exists."""

    created_account_id: str


class AwaitAccount(Action):
    """Look at a create request until it has an end; a look every few seconds, by the server's retries.

    Raises Invalid with the FailureReason as its code when the request has failed, Absent for an unknown request.
    """

    activity: ClassVar[str] = "aws.await_account"
    title: ClassVar[str] = "wait until AWS has created it ({request_id})"
    queue: ClassVar[str] = Queue.AWS_ORGANIZATION
    result: ClassVar[type[Model] | None] = CreatedAccount
    start_to_close: ClassVar[timedelta] = timedelta(minutes=1)
    longest_retry: ClassVar[timedelta] = timedelta(seconds=15)

    name: str
    email: str
    request_id: str

    def refuse(self, world: AccountWorld, refusal: Refusal) -> AccountWorld:  # type: ignore[override]
        """The request has ended without an account: its reason decides whether to ask anew."""
        if refusal.type in (ErrorType.INVALID, ErrorType.CONFLICT):
            return world.learn(request_id="", permit=None, failure=refusal.code, failed_at=refusal.at)
        if refusal.type is ErrorType.ABSENT:  # AWS knows no such request: search before asking again
            return world.learn(request_id="", permit=None, inherited=True)
        return super().refuse(world, refusal)


class TagAccount(Action):
    """Tag the account in the organization: who owns it. Its failure never stops the lifecycle.

    Unless `fresh`, an account that says whose it is stays as it is: a validation's flag decides about it.
    """

    activity: ClassVar[str] = "aws.tag_account"
    title: ClassVar[str] = "tag {account_id} with its owner"
    learns: ClassVar[Mapping[str, object]] = {"tagged": True}
    queue: ClassVar[str] = Queue.AWS_ORGANIZATION

    account_id: str
    tags: dict[str, str]
    fresh: bool = False
