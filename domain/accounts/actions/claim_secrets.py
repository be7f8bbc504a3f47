from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import ClassVar

from domain.accounts.observed import ClaimWorld
from domain.decision import Action, WhenUnwanted
from domain.identity import Key
from domain.model import Model


class SecretAction(Action):
    start_to_close: ClassVar[timedelta] = timedelta(seconds=30)

    claim: Key
    secret: str


class HoldInputSecret(SecretAction):
    activity: ClassVar[str] = "accounts.hold_input_secret"
    title: ClassVar[str] = "protect Secret {secret} from deletion while the claim exists"
    when_unwanted: ClassVar[WhenUnwanted] = WhenUnwanted.FINISHED

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        return world.learn(held_secret=self.secret, secrets_let_go=False)


class DeliverCredentials(SecretAction):
    """Copy the account's key into the claim's Secret, then write the support role into the claim's spec.

    If the claim's Secret is the customer's own Secret, it is not changed. Raises Denied if the Account does not name
    this claim.
    """

    activity: ClassVar[str] = "accounts.deliver_credentials"

    account: str
    source_secret: str
    input_secret: str
    support_role_arn: str

    @property
    def summary(self) -> str:
        one = self.secret == self.input_secret
        return "record its support role" if one else f"copy the account's key into Secret {self.secret}"

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        written = world.with_spec(support_role_arn=self.support_role_arn)
        return written.model_copy(update={"delivered": True})


class RemoveSecret(SecretAction):
    """Delete the Secret only if its annotation or key shows that it is our copy of the Account's key."""

    activity: ClassVar[str] = "accounts.remove_secret"
    title: ClassVar[str] = "delete Secret {secret}"
    learns: ClassVar[Mapping[str, object]] = {"secret_removed": True}

    account: str


class LetSecretsGo(SecretAction):
    """Remove our finalizer from the customer's Secret. Delete the claim's Secret if its annotation names the claim."""

    activity: ClassVar[str] = "accounts.let_secrets_go"
    title: ClassVar[str] = "stop protecting Secret {input_secret}, delete Secret {secret}"
    learns: ClassVar[Mapping[str, object]] = {"secrets_let_go": True}

    input_secret: str


class LetFormerSecretGo(LetSecretsGo):
    title: ClassVar[str] = "stop protecting Secret {input_secret}, which the claim does not name any more"
    learns: ClassVar[Mapping[str, object]] = {"held_secret": ""}


class DeliverRole(SecretAction):
    """Write the role's ARN into the claim's Secret, then delete the Account's Secret, whose IAM user no longer exists.
    Raises Denied if the Account does not name this claim.
    """

    activity: ClassVar[str] = "accounts.deliver_role"
    title: ClassVar[str] = "write the role's ARN into Secret {secret}"
    learns: ClassVar[Mapping[str, object]] = {"role_delivered": True}

    account: str
    role_arn: str


class FakeSecret(SecretAction):
    """A Secret of another owner is neither changed nor deleted."""

    activity: ClassVar[str] = "accounts.fake_secret"

    wanted: bool

    @property
    def summary(self) -> str:
        return f"{'write dummy keys into' if self.wanted else 'delete'} Secret {self.secret}"

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        return world.learn(fake_secret=self.wanted)
