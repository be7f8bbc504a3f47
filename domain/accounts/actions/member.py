"""Where an effect is carried out: the base of every action inside a member account."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from domain.decision import Action, Queue
from domain.model import Model


class Access(Model):
    """How an account is entered that the organization has not made: one of three ways.

    Attributes:
        support_role: this role of the account, which lets the payer in.
        namespace, secret: the customer's own key, in this Secret.
        jump_role, sts_role, external_id: the customer's role, assumed from the payer's jump role with this external id.
    """

    support_role: str = ""
    namespace: str = ""
    secret: str = ""
    jump_role: str = ""
    sts_role: str = ""
    external_id: str = ""


class MemberAction(Action):
    """An effect inside an account, under its OrganizationAccountAccessRole unless `access` says otherwise."""

    queue: ClassVar[str] = Queue.AWS
    start_to_close: ClassVar[timedelta] = timedelta(minutes=5)

    account_id: str
    partition: str = "aws"
    access: Access | None = None
