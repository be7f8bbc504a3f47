"""Access to an account that a customer has brought: by its support role, by the customer's key, or in STS mode.

The organization did not create such an account, so it has no OrganizationAccountAccessRole.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from botocore.credentials import ReadOnlyCredentials

from activities.aws.customer_credentials import customers_keys
from activities.aws.session import Assumed, KeyHolder, Member, Remembered, Sessions
from domain.accounts.actions.account_access import Access, MemberAction
from domain.accounts.constants import ROLE_SESSION_NAME, STS_SESSION_NAME


def entered(sessions: Sessions, action: MemberAction, *, settle: timedelta = timedelta()) -> Member:
    return entered_by(sessions, action.access, action.account_id, action.partition, settle=settle)


def entered_by(
    sessions: Sessions, access: Access | None, account_id: str, partition: str, *, settle: timedelta = timedelta()
) -> Member:
    """A session in the account, entered by `access`. `settle` and errors are as in `Sessions.member`, but `settle` is
    ignored with the customer's key or STS role.
    """
    if access is None:
        return sessions.member(account_id, partition, settle=settle)
    young = settle if access.support_role else timedelta()
    caller = partial(_caller, sessions, access, account_id, partition)
    return sessions.enter(account_id, (partition, access), caller, settle=young)


def _caller(sessions: Sessions, access: Access, account_id: str, partition: str) -> Member:
    if access.support_role:
        supported = sessions.make(Member, account_id, partition)
        supported.role = access.support_role
        return supported
    if access.sts_role:
        by_role = sessions.make(RoleOfCustomer, account_id, partition)
        by_role.jump = JumpRole(sessions, access.jump_role)
        by_role.access = access
        return by_role
    by_key = sessions.make(KeyOfCustomer, account_id, partition)
    by_key.where = f"Secret {access.namespace}/{access.secret}"
    by_key.keys = Remembered(by_key.where, lambda: customers_keys(sessions, access.namespace, access.secret))
    return by_key


class JumpRole(Assumed):
    def __init__(self, sessions: Sessions, arn: str) -> None:
        payer = sessions.payer()
        # The jump role only assumes other roles, which observe mode allows.
        super().__init__(sessions.clients, f"jump role {arn}", partition=payer.partition, observing=False)
        self._payer = payer
        self._arn = arn

    def assume(self) -> ReadOnlyCredentials:
        return self._payer.assume_role(self._arn, ROLE_SESSION_NAME)[1]


class RoleOfCustomer(Member):
    """STS mode: the claim's role, assumed with its external id from the payer's jump role."""

    jump: JumpRole
    access: Access

    @property
    def role_arn(self) -> str:
        return self.access.sts_role

    def assume(self) -> ReadOnlyCredentials:
        arn, credential = self.jump.assume_role(self.role_arn, STS_SESSION_NAME, self.access.external_id)
        self._check(arn)
        return credential


class KeyOfCustomer(KeyHolder, Member):
    """The customer's key. AWS is asked first which account the key opens, because that might be the payer's."""

    where: str

    @property
    def role_arn(self) -> str:
        return self.where

    def enter(self) -> None:
        self.confirm()

    def confirm(self) -> None:
        credential = self.credential()
        if self._confirmed == credential:
            return
        self._check(self.ask_identity().arn)
        self._confirmed = self.credential()
