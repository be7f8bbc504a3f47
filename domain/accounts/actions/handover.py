"""An account goes to its claim, and comes back from it."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import ClassVar

from domain.accounts.resources import LegalEntity
from domain.accounts.worlds import ClaimWorld
from domain.decision import Action, Facts, Queue
from domain.identity import Key
from domain.model import Model
from domain.writes import Patch, Written, patched


class PatchAccount(Patch):
    """A write of the Account by the claim that holds it."""

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        """The world with the Account as it was written."""
        written = result if isinstance(result, Written) else Written()
        if world.account is None or written.gone:
            return world.model_copy(update={"account": None})
        account = patched(world.account, self.patch, written.resource_version)
        return world.model_copy(update={"account": account})


class MadeAccount(Facts):
    """The Account that names the claim."""

    made: str  # its name, which the claim's spec is to have


class MakeCustomerAccount(Action):
    """The Account for a customer's AWS account: the one that names this claim already, else a new one.

    Its name is made of the claim's uid, so a repeated creation finds the first.
    """

    activity: ClassVar[str] = "accounts.make_customer_account"
    title: ClassVar[str] = "create an Account for the customer's {account_id}"
    result: ClassVar[type[Model] | None] = MadeAccount
    start_to_close: ClassVar[timedelta] = timedelta(seconds=30)

    claim: Key
    account_id: str
    legal_entity: LegalEntity
    manual_sts_mode: bool


class Fulfilled(Model):
    """What the claim got: the OU, the support role, the Secret's resourceVersion is of no interest."""

    account_ou: str
    support_role_arn: str


class Fulfil(Action):
    """Give a bound account to its claim: move it to the legal entity's OU, copy the key Secret. Quick, so one activity.

    Raises Denied when the Account does not name this claim as its holder.
    """

    activity: ClassVar[str] = "accounts.fulfil"
    title: ClassVar[str] = "move {account_id} to the OU of {legal_entity.id}, copy its Secret"
    queue: ClassVar[str] = Queue.AWS
    result: ClassVar[type[Model] | None] = Fulfilled

    claim: Key
    account: str
    account_id: str
    legal_entity: LegalEntity
    root: str
    base: str
    secret_name: str
    source_secret: str  # "" for a claim that gets no key
    support_role_arn: str
    placed: bool = False  # the claim names this account's OU and role already: only the Secret is missing

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        """OU and support role stand in the claim's spec now, the Secret is there."""
        assert isinstance(result, Fulfilled)  # noqa: S101
        return world.with_spec(**dict(result)).learn(fulfilled=self.account)


class Release(StrEnum):
    """What becomes of an Account when its claim ends."""

    FREE = "free"  # Ready for its legal entity
    FAILED = "mark Failed"  # while cleaning fails
    UNCLEANED = "release without a clean-up"  # a person lets it go as it is: it stays Failed, and is nobody's
    CLOSED = "delete"  # its AWS account is closed


class ReleaseAccount(Action):
    """Write the Account's side of a release.

    Also deletes the claim's Secret where it holds a key of this account. Only an Account that names this claim is
    written.
    """

    activity: ClassVar[str] = "accounts.release"
    title: ClassVar[str] = "{how} {account}"

    claim: Key
    account: str
    legal_entity: LegalEntity
    how: Release = Release.FREE
    secret_name: str = ""

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        """The Account as it was written."""
        if world.account is None:
            return world
        if self.how is not Release.FAILED:
            return world.model_copy(update={"account": None})
        status = world.account.status.model_copy(update={"state": "Failed"})
        return world.model_copy(update={"account": world.account.model_copy(update={"status": status})})
