"""An account goes to its claim, and comes back from it."""

from __future__ import annotations

from typing import ClassVar

from domain.accounts.resources import LegalEntity
from domain.accounts.worlds import ClaimWorld
from domain.decision import Action, Queue
from domain.identity import Key
from domain.model import Model
from domain.writes import Patch, Written, patched


class RecordHolder(Patch):
    """Write the claim's uid onto the Account that names it, which the replaced operator and a restore leave out."""

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        """The world with the Account as it was written."""
        written = result if isinstance(result, Written) else Written()
        if world.account is None or written.gone:
            return world.model_copy(update={"account": None})
        account = patched(world.account, self.patch, written.resource_version)
        return world.model_copy(update={"account": account})


class Fulfilled(Model):
    """What the claim got: the OU, the support role, the Secret's resourceVersion is of no interest."""

    account_ou: str
    support_role_arn: str


class Fulfil(Action):
    """Give a bound account to its claim: move it to the legal entity's OU, copy the key Secret. Quick, so one activity.

    Raises Denied when the Account does not name this claim as its holder.
    """

    activity: ClassVar[str] = "accounts.fulfil"
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

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"move {self.account_id} to the OU of {self.legal_entity.id}, copy its Secret"

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        """OU and support role stand in the claim's spec now, the Secret is there."""
        assert isinstance(result, Fulfilled)  # noqa: S101
        spec = world.claim.spec.model_copy(
            update={"account_ou": result.account_ou, "support_role_arn": result.support_role_arn}
        )
        # The activity has written the claim, so its resourceVersion is not known here: the next write goes without.
        metadata = world.claim.metadata.model_copy(update={"resource_version": ""})
        claim = world.claim.model_copy(update={"spec": spec, "metadata": metadata})
        return world.model_copy(update={"claim": claim}).learn(fulfilled=self.account)


class ReleaseAccount(Action):
    """Write the Account's side of a release: free and Ready for its legal entity, or Failed while cleaning fails.

    Also deletes the claim's Secret where it holds a key of this account. Only an Account that names this claim is
    written.
    """

    activity: ClassVar[str] = "accounts.release"
    queue: ClassVar[str] = Queue.KUBE

    claim: Key
    account: str
    legal_entity: LegalEntity
    failed: bool = False
    uncleaned: bool = False  # a person lets it go as it is: it stays Failed, and is nobody's
    closed: bool = False  # its AWS account is closed: the Account is deleted instead of freed
    secret_name: str = ""

    @property
    def summary(self) -> str:
        """For the timeline."""
        ways = (
            (self.uncleaned, "release without a clean-up"),
            (self.failed, "mark Failed"),
            (self.closed, "delete"),
            (True, "free"),
        )
        return f"{next(way for holds, way in ways if holds)} {self.account}"

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        """The Account as it was written."""
        if world.account is None:
            return world
        if self.uncleaned or not self.failed:
            return world.model_copy(update={"account": None})
        status = world.account.status.model_copy(update={"state": "Failed"})
        return world.model_copy(update={"account": world.account.model_copy(update={"status": status})})
