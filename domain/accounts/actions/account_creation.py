from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import ClassVar

from domain.accounts.observed import AccountWorld
from domain.decision import Action, Facts, Queue, WhenUnwanted
from domain.model import Model
from domain.refusal import ErrorType, Refusal

PERMIT_EXPIRED = "PermitExpired"
# AWS's own limit on the organization's accounts: the Account waits, and does not fail.
LIMIT_CODES = frozenset({"ConstraintViolationException", "ACCOUNT_LIMIT_EXCEEDED"})
# Failures after which another request may be sent at once.
TRANSIENT_REASONS = frozenset({"INTERNAL_FAILURE", "CONCURRENT_ACCOUNT_MODIFICATION"})


class CreateRequest(Facts):
    """The request to create the account. If an account of that name exists already, it is adopted instead."""

    request_id: str = ""  # while it is set, no second request is sent
    created_account_id: str = ""


class CreateAccount(Action):
    """Request the account, but not after `until`.

    Temporal retries after throttling, concurrent modification and outages. A retry first searches by name and e-mail.

    Raises:
        Invalid: with the AWS code, e.g. ConstraintViolationException.
        Denied: the payer's credentials do not allow the request.
    """

    activity: ClassVar[str] = "aws.create_account"
    title: ClassVar[str] = "create AWS account {name}"
    learns: ClassVar[Mapping[str, object]] = {"failure": ""}
    queue: ClassVar[str] = Queue.AWS_ORGANIZATION
    result: ClassVar[type[Model] | None] = CreateRequest
    start_to_close: ClassVar[timedelta] = timedelta(minutes=2)
    when_unwanted: ClassVar[WhenUnwanted] = WhenUnwanted.AWAITED

    name: str
    email: str
    until: datetime
    search: bool

    def cancelled(self, world: AccountWorld) -> AccountWorld:  # type: ignore[override]
        return world.learn(inherited=True)

    def refuse(self, world: AccountWorld, refusal: Refusal) -> AccountWorld:  # type: ignore[override]
        """Drop the permit if it has expired or a limit was reached, because a new permit is then needed."""
        if refusal.code == PERMIT_EXPIRED:
            return world.learn(permit=None)
        if refusal.code in LIMIT_CODES:
            return world.learn(permit=None, failure=refusal.code)
        after = super().refuse(world, refusal)
        return after.learn(inherited=True) if refusal.type in (ErrorType.UNAVAILABLE, ErrorType.BUG) else after


class CreatedAccount(Facts):
    created_account_id: str


class AwaitAccount(Action):
    """Wait until AWS has created the account: Temporal retries every few seconds.

    Raises:
        Invalid, Conflict: the request failed; the code is the FailureReason.
        Absent: AWS does not know the request.
    """

    activity: ClassVar[str] = "aws.await_account"
    title: ClassVar[str] = "wait until AWS has created the account ({request_id})"
    queue: ClassVar[str] = Queue.AWS
    result: ClassVar[type[Model] | None] = CreatedAccount
    start_to_close: ClassVar[timedelta] = timedelta(minutes=1)
    longest_retry: ClassVar[timedelta] = timedelta(seconds=15)

    name: str
    email: str
    request_id: str

    def refuse(self, world: AccountWorld, refusal: Refusal) -> AccountWorld:  # type: ignore[override]
        if refusal.type in (ErrorType.INVALID, ErrorType.CONFLICT):
            return world.learn(request_id="", permit=None, failure=refusal.code)
        if refusal.type is ErrorType.ABSENT:  # unknown to AWS: search before another request
            return world.learn(request_id="", permit=None, inherited=True)
        return super().refuse(world, refusal)


class TagAccount(Action):
    """If tagging fails, the lifecycle continues. With `fresh`, the present tags are not checked. Otherwise, an account
    whose tag names another owner is left to the validation.
    """

    activity: ClassVar[str] = "aws.tag_account"
    title: ClassVar[str] = "tag {account_id} with its owner"
    learns: ClassVar[Mapping[str, object]] = {"tagged": True}
    queue: ClassVar[str] = Queue.AWS_ORGANIZATION

    account_id: str
    tags: dict[str, str]
    fresh: bool = False
