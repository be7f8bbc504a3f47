from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from domain.decision import Action, Queue, W, WhenUnwanted
from domain.model import Model
from domain.refusal import Refusal


class Access(Model):
    """One of three ways into an account that the organization has not created."""

    support_role: str = ""  # a role in the account that the payer assumes
    # `namespace`, `secret`: the Secret with the customer's own key.
    namespace: str = ""
    secret: str = ""
    # `jump_role`, `sts_role`, `external_id`: the customer's role, assumed from the payer's jump role.
    jump_role: str = ""
    sts_role: str = ""
    external_id: str = ""


class MemberAction(Action):
    """An action within an account, which is entered through OrganizationAccountAccessRole unless `access` is set."""

    queue: ClassVar[str] = Queue.AWS
    start_to_close: ClassVar[timedelta] = timedelta(minutes=5)

    account_id: str
    partition: str = "aws"
    access: Access | None = None


class MakingAction(Action):
    when_unwanted: ClassVar[WhenUnwanted] = WhenUnwanted.AWAITED
    # The memory's field that says that a deletion is done. This action sets it to False: a deletion that was done
    # before this action ended is repeated.
    undone: ClassVar[str]

    def fold(self, world: W, result: Model | None) -> W:
        return self.cancelled(super().fold(world, result))

    def cancelled(self, world: W) -> W:
        return world.learn(**{self.undone: False})

    def refuse(self, world: W, refusal: Refusal) -> W:
        return super().refuse(world.learn(**{self.undone: False}), refusal)
