from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import ClassVar, Self

from domain.accounts.constants import CLAIM_UID_ANNOTATION, OPERATOR_NAMESPACE
from domain.accounts.observed import ClaimWorld
from domain.accounts.resources import Account, AccountSpec, LegalEntity
from domain.decision import Action, Facts, Queue, WhenUnwanted
from domain.identity import Key
from domain.model import Model
from domain.resource import ObjectMeta
from domain.writes import JsonPatch, Patch, Written, patched


class PatchAccount(Patch):
    @classmethod
    def annotating(cls, account: Account, annotations: Mapping[str, str | None], note: str) -> Self:
        patch: JsonPatch = {"metadata": {"annotations": dict(annotations)}}
        version = account.metadata.resource_version
        return cls(key=account.key, patch=patch, resource_version=version, note=note)

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        written = result if isinstance(result, Written) else Written()
        if world.account is None or written.gone:
            return world.model_copy(update={"account": None})
        account = patched(world.account, self.patch, written.resource_version)
        return world.model_copy(update={"account": account})


class MadeAccount(Facts):
    made: str  # the Account's name, for the claim's spec


class MakeCustomerAccount(Action):
    """A repetition finds the same Account, because its name derives from the claim's uid."""

    activity: ClassVar[str] = "accounts.make_customer_account"
    title: ClassVar[str] = "create an Account for the customer's {account_id}"
    result: ClassVar[type[Model] | None] = MadeAccount
    start_to_close: ClassVar[timedelta] = timedelta(seconds=30)
    when_unwanted: ClassVar[WhenUnwanted] = WhenUnwanted.FINISHED

    claim: Key
    account_id: str
    legal_entity: LegalEntity
    manual_sts_mode: bool

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        made = super().fold(world, result)
        if not world.claim.metadata.deleting:
            return made
        # The last observation has no Account. Unless the new Account is added here, the claim would end, and nothing
        # would delete the Account.
        meta = ObjectMeta(
            name=made.known.made,
            namespace=OPERATOR_NAMESPACE,
            annotations={CLAIM_UID_ANNOTATION: self.claim.uid},
        )
        spec = AccountSpec(byoc=True, claim_link=self.claim.name, claim_link_namespace=self.claim.namespace)
        return made.model_copy(update={"account": Account(metadata=meta, spec=spec)})


class BindWithoutPool(Action):
    """Bind a free Account of `pool`, which has no AccountPool, to the claim. Raises Invalid if none is free."""

    activity: ClassVar[str] = "accounts.bind_without_pool"
    title: ClassVar[str] = "search for a free Account of pool {pool}, which has no AccountPool"
    when_unwanted: ClassVar[WhenUnwanted] = WhenUnwanted.FINISHED
    observed_after: ClassVar[bool] = True

    claim: Key
    pool: str


class Fulfilled(Model):
    account_ou: str
    support_role_arn: str


class Fulfil(Action):
    """Move the account to the legal entity's OU, and copy its key into the claim's Secret. Raises Denied if the Account
    names another holder.
    """

    activity: ClassVar[str] = "accounts.fulfil"
    title: ClassVar[str] = "move {account_id} to the OU of {legal_entity.id}, copy its key to the claim"
    queue: ClassVar[str] = Queue.AWS
    result: ClassVar[type[Model] | None] = Fulfilled

    claim: Key
    account: str
    account_id: str
    legal_entity: LegalEntity
    root: str
    base: str
    secret_name: str
    source_secret: str  # the Secret with the account's key; empty if the claim gets no key
    support_role_arn: str
    placed: bool = False  # the claim already has this account's OU and role: only the Secret is missing

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        assert isinstance(result, Fulfilled)  # noqa: S101
        return world.with_spec(**dict(result)).learn(fulfilled=self.account)


class Release(StrEnum):
    FREE = "free"  # the Account becomes Ready for claims of its legal entity
    FAILED = "mark Failed"  # the clean-up failed: the link to the claim is removed, and the clean-up is repeated
    UNCLEANED = "release without a clean-up"  # a person forced this: the Account stays Failed, and no claim gets it
    CLOSED = "delete"  # the AWS account is closed, so the Account is deleted


class ReleaseAccount(Action):
    """Release the account, and delete the Secret that was written for the claim. Nothing is done unless the Account
    names this claim.
    """

    activity: ClassVar[str] = "accounts.release"
    title: ClassVar[str] = "{how} {account}"

    claim: Key
    account: str
    legal_entity: LegalEntity
    how: Release = Release.FREE
    secret_name: str = ""

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        if world.account is None:
            return world
        if self.how is not Release.FAILED:
            return world.model_copy(update={"account": None})
        account = world.account
        annotations = {**account.metadata.annotations, CLAIM_UID_ANNOTATION: self.claim.uid}
        parts = {
            "metadata": account.metadata.model_copy(update={"annotations": annotations}),
            "spec": account.spec.model_copy(update={"claim_link": "", "claim_link_namespace": ""}),
            "status": account.status.model_copy(update={"state": "Failed", "claimed": False, "reused": True}),
        }
        return world.model_copy(update={"account": account.model_copy(update=parts)})
