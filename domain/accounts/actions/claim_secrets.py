"""The Secrets of claims: the customer's own is kept while it is needed, the claim's is filled and removed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import ClassVar

from domain.accounts.worlds import ClaimWorld
from domain.decision import Action
from domain.identity import Key
from domain.model import Model


class HoldInputSecret(Action):
    """Put our finalizer on the Secret with the customer's key, so that it is there as long as it may be needed."""

    activity: ClassVar[str] = "accounts.hold_input_secret"
    title: ClassVar[str] = "protect Secret {secret} from deletion while the claim exists"
    learns: ClassVar[Mapping[str, object]] = {"secret_held": True}
    start_to_close: ClassVar[timedelta] = timedelta(seconds=20)

    claim: Key
    secret: str


class DeliverCredentials(Action):
    """Copy the account's key into the claim's Secret, then write the support role into the claim's spec.

    A claim whose two Secrets are one keeps the customer's key in it. Raises Denied when the Account does not name this
    claim as its holder.
    """

    activity: ClassVar[str] = "accounts.deliver_credentials"
    start_to_close: ClassVar[timedelta] = timedelta(seconds=30)

    claim: Key
    account: str
    source_secret: str
    secret: str
    input_secret: str
    support_role_arn: str

    @property
    def summary(self) -> str:
        """For the timeline."""
        one = self.secret == self.input_secret
        return "record its support role" if one else f"copy the account's key into Secret {self.secret}"

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        """Both are there."""
        written = world.with_spec(support_role_arn=self.support_role_arn)
        return written.model_copy(update={"delivered": True})


class RemoveSecret(Action):
    """Delete the claim's Secret where it is our copy of the Account's key: by its mark, or by the key that it holds."""

    activity: ClassVar[str] = "accounts.remove_secret"
    title: ClassVar[str] = "delete Secret {secret}"
    learns: ClassVar[Mapping[str, object]] = {"secret_removed": True}
    start_to_close: ClassVar[timedelta] = timedelta(seconds=20)

    claim: Key
    account: str
    secret: str


class LetSecretsGo(Action):
    """Take our finalizer off the customer's Secret, and delete the claim's Secret where it bears the claim's mark."""

    activity: ClassVar[str] = "accounts.let_secrets_go"
    title: ClassVar[str] = "stop protecting Secret {input_secret}, delete Secret {secret}"
    learns: ClassVar[Mapping[str, object]] = {"secrets_let_go": True}
    start_to_close: ClassVar[timedelta] = timedelta(seconds=20)

    claim: Key
    input_secret: str
    secret: str


class DeliverRole(Action):
    """The role's ARN into the claim's Secret; the Account's key Secret, whose user is gone, is deleted and forgotten.

    Raises Denied when the Account does not name this claim as its holder.
    """

    activity: ClassVar[str] = "accounts.deliver_role"
    title: ClassVar[str] = "write the role's ARN into Secret {secret}"
    learns: ClassVar[Mapping[str, object]] = {"role_delivered": True}
    start_to_close: ClassVar[timedelta] = timedelta(seconds=30)

    claim: Key
    account: str
    secret: str
    role_arn: str


class FakeSecret(Action):
    """Put dummy keys into a Secret of the claim's namespace, or delete that Secret.

    One that exists is kept as it is, and one that holds anything but the dummy keys is never deleted.
    """

    activity: ClassVar[str] = "accounts.fake_secret"
    start_to_close: ClassVar[timedelta] = timedelta(seconds=20)

    claim: Key
    secret: str
    wanted: bool

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"{'write dummy keys into' if self.wanted else 'delete'} Secret {self.secret}"

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        """It is there, or is gone."""
        return world.learn(fake_secret=self.wanted)
