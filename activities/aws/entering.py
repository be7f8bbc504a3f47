"""Who calls AWS in an account that a customer has brought: by its support role, by the customer's key, or in STS mode.

The organization did not make these accounts, so its own role is not there. The customer's key is read from the claim's
Secret, again after a minute and at once when AWS refuses it; it never leaves this process. Before it is used AWS is
asked whose key it is: a key of another account, the payer's own for one, is refused whatever it would open. In STS mode
the payer assumes its jump role, and from that session the customer's role with the customer's external id, so that the
customer's trust policy can name one role of the payer's and nobody else can be made to act there.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from botocore.credentials import ReadOnlyCredentials

from activities.aws.customers import customer
from activities.aws.errors import UNAUTHENTICATED
from activities.aws.session import SESSION_SECONDS, Assumed, Member, Remembered, Sessions
from domain.accounts.actions.member import Access, MemberAction
from domain.accounts.constants import ROLE_SESSION_NAME, STS_SESSION_NAME
from domain.resource import SecretReference
from engine.errors import Denied

if TYPE_CHECKING:
    from mypy_boto3_sts.type_defs import AssumeRoleRequestTypeDef


def entered(sessions: Sessions, action: MemberAction, *, settle: timedelta = timedelta()) -> Member:
    """The account of an action, entered as the action says. Raises as `Sessions.member`.

    What a customer has given us is not new: its refusals are told at once. A role of our own may be.
    """
    access, account_id, partition = action.access, action.account_id, action.partition
    if access is None:
        return sessions.member(account_id, partition, settle=settle)
    young = settle if access.support_role else timedelta()
    return sessions.enter(account_id, (partition, access), lambda: _caller(sessions, action, access), settle=young)


def _caller(sessions: Sessions, action: MemberAction, access: Access) -> Member:
    account_id, partition = action.account_id, action.partition
    if access.support_role:
        supported = sessions.make(SupportedAccount, account_id, partition)
        supported.support_role = access.support_role
        return supported
    if access.sts_role:
        by_role = sessions.make(RoleOfCustomer, account_id, partition)
        by_role.jump = JumpRole(sessions, access.jump_role)
        by_role.access = access
        return by_role
    by_key = sessions.make(KeyOfCustomer, account_id, partition)
    by_key.where = secret_of(access)
    secret = SecretReference(name=access.secret, namespace=access.namespace)
    by_key.keys = Remembered(by_key.where, lambda: customer(sessions, secret, partition).credential())
    return by_key


class SupportedAccount(Member):
    """A customer's account under its support role, which lets the payer in."""

    support_role: str

    @property
    def role_arn(self) -> str:
        """The role that is assumed."""
        return f"arn:{self.partition}:iam::{self.account_id}:role/{self.support_role}"


class JumpRole(Assumed):
    """The payer's role that customers' trust policies name."""

    def __init__(self, sessions: Sessions, arn: str) -> None:
        payer = sessions.payer()
        super().__init__(sessions.clients, f"jump role {arn}", observing=False)  # it does nothing but assume roles
        self.partition = payer.partition
        self._payer = payer
        self._arn = arn

    def assume(self) -> ReadOnlyCredentials:
        """A session of the jump role."""
        answer = self._payer.sts().assume_role(
            RoleArn=self._arn, RoleSessionName=ROLE_SESSION_NAME, DurationSeconds=SESSION_SECONDS
        )
        keys = answer["Credentials"]
        return ReadOnlyCredentials(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"])


class RoleOfCustomer(Member):
    """A customer's account under the role that its claim names. Sessions from sessions last an hour at the most."""

    jump: JumpRole
    access: Access

    @property
    def role_arn(self) -> str:
        """The role that is assumed."""
        return self.access.sts_role

    def assume(self) -> ReadOnlyCredentials:
        """A session in the customer's account, and in no other."""
        request: AssumeRoleRequestTypeDef = {
            "RoleArn": self.role_arn,
            "RoleSessionName": STS_SESSION_NAME,
            "DurationSeconds": SESSION_SECONDS,
        }
        if self.access.external_id:
            request["ExternalId"] = self.access.external_id
        answer = self.jump.sts().assume_role(**request)
        self._check(answer["AssumedRoleUser"]["Arn"])
        keys = answer["Credentials"]
        return ReadOnlyCredentials(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"])


class KeyOfCustomer(Member):
    """A customer's account by the customer's own key."""

    keys: Remembered[ReadOnlyCredentials]
    where: str

    @property
    def role_arn(self) -> str:
        """What lets us in, for messages."""
        return self.where

    def credential(self) -> ReadOnlyCredentials:
        """The Secret's key."""
        return self.keys.value()

    def refused(self, credential: ReadOnlyCredentials, error: Denied) -> bool:
        """Read the Secret again; worth repeating if it holds another key now."""
        if error.code not in UNAUTHENTICATED:
            return False
        self.keys.forget(credential)
        return self.keys.value() != credential

    def enter(self) -> None:
        """Know whose key it is before anything is done with it."""
        self.confirm()

    def confirm(self) -> None:
        """Ask AWS, once per key, that it is of this account."""
        credential = self.credential()
        if self._confirmed == credential:
            return
        self._check(self.ask_identity().arn)
        self._confirmed = self.credential()


def secret_of(access: Access) -> str:
    """Where the customer's key is, in words."""
    return f"Secret {access.namespace}/{access.secret}"
