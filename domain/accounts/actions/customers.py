"""What a claim on a customer's account brings about in Kubernetes: its Account, and the Secrets on both sides of it."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from domain.accounts.resources import LegalEntity
from domain.accounts.worlds import ClaimWorld
from domain.decision import Action, Queue
from domain.identity import Key
from domain.model import Model


class MadeAccount(Model):
    """The Account that names the claim."""

    name: str


class MakeCustomerAccount(Action):
    """The Account for a customer's AWS account: the one that names this claim already, else a new one.

    Its name is made of the claim's uid, so a repeated creation finds the first.
    """

    activity: ClassVar[str] = "accounts.make_customer_account"
    queue: ClassVar[str] = Queue.KUBE
    result: ClassVar[type[Model] | None] = MadeAccount
    start_to_close: ClassVar[timedelta] = timedelta(seconds=30)

    claim: Key
    account_id: str
    legal_entity: LegalEntity
    manual_sts_mode: bool

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"create an Account for the customer's {self.account_id}"

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        """Its name, which the claim's spec is to have."""
        assert isinstance(result, MadeAccount)  # noqa: S101 - the activity's type
        return world.learn(made=result.name)


class HoldInputSecret(Action):
    """Put our finalizer on the Secret with the customer's key, so that it is there as long as it may be needed."""

    activity: ClassVar[str] = "accounts.hold_input_secret"
    queue: ClassVar[str] = Queue.KUBE
    start_to_close: ClassVar[timedelta] = timedelta(seconds=20)

    claim: Key
    secret: str

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"protect Secret {self.secret} from deletion while the claim exists"

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        """It is kept, or is on its way out already and cannot be."""
        return world.learn(secret_held=True)


class DeliverCredentials(Action):
    """Copy the account's key into the claim's Secret, then write the support role into the claim's spec.

    A claim whose two Secrets are one keeps the customer's key in it. Raises Denied when the Account does not name this
    claim as its holder.
    """

    activity: ClassVar[str] = "accounts.deliver_credentials"
    queue: ClassVar[str] = Queue.KUBE
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
        """Both are there; the claim's resourceVersion is not known here, so the next write goes without."""
        spec = world.claim.spec.model_copy(update={"support_role_arn": self.support_role_arn})
        metadata = world.claim.metadata.model_copy(update={"resource_version": ""})
        claim = world.claim.model_copy(update={"spec": spec, "metadata": metadata})
        return world.model_copy(update={"claim": claim, "delivered": True})


class RemoveSecret(Action):
    """Delete the claim's Secret where it is our copy of the Account's key: by its mark, or by the key that it holds."""

    activity: ClassVar[str] = "accounts.remove_secret"
    queue: ClassVar[Queue] = Queue.KUBE
    start_to_close: ClassVar[timedelta] = timedelta(seconds=20)

    claim: Key
    account: str
    secret: str

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"delete Secret {self.secret}"

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        """Done."""
        return world.learn(secret_removed=True)


class LetSecretsGo(Action):
    """Take our finalizer off the customer's Secret, and delete the claim's Secret where it bears the claim's mark."""

    activity: ClassVar[str] = "accounts.let_secrets_go"
    queue: ClassVar[str] = Queue.KUBE
    start_to_close: ClassVar[timedelta] = timedelta(seconds=20)

    claim: Key
    input_secret: str
    secret: str

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"stop protecting Secret {self.input_secret}, delete Secret {self.secret}"

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        """Done."""
        return world.learn(secrets_let_go=True)
