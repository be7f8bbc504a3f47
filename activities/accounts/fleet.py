"""The Secret of a fleet manager's claim, which holds a role instead of a key."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from contextlib import suppress

from temporalio import activity

from activities.accounts.claim_secrets import KEY_FIELDS, ROLE_FIELD, key_ids_of, put_secret
from activities.accounts.reading import Reader
from activities.aws import keys
from domain.accounts import ACCOUNT
from domain.accounts.actions.fleet import DeliverRole
from domain.accounts.constants import ADMIN_USER_PREFIX, OPERATOR_NAMESPACE
from domain.accounts.naming import secret_of
from domain.accounts.resources import Account
from engine.errors import Absent, Conflict, Denied
from engine.kube import SECRET


class FleetActivities:
    """What fleet managers' claims get in Kubernetes."""

    def __init__(self, reader: Reader) -> None:
        self._read = reader
        self._kube = reader.kube

    def all(self) -> Sequence[Callable[..., object]]:
        """Every activity, for the worker."""
        return (self.deliver_role,)

    @activity.defn(name=DeliverRole.activity)
    async def deliver_role(self, action: DeliverRole) -> None:
        """The Secret first; then the Account forgets a key whose user is gone."""
        account = await self._read.account(OPERATOR_NAMESPACE, action.account)
        if account is None or not account.named_by(action.claim):
            raise Denied(f"Account {action.account} does not name this claim in spec.claimLink", code="NotTheHolder")
        data = {ROLE_FIELD: base64.b64encode(action.role_arn.encode()).decode()}
        # A key in it is an earlier account's, and dead by now.
        content = {**dict.fromkeys(KEY_FIELDS), **data}
        await put_secret(self._kube, action.claim, action.secret, content, await key_ids_of(self._kube, account))
        await self._delete_key(account)
        if account.spec.iam_user_secret:
            meta = account.metadata
            await self._kube.patch(
                ACCOUNT,
                meta.namespace,
                meta.name,
                {"spec": {"iamUserSecret": ""}},
                resource_version=meta.resource_version,
            )

    async def _delete_key(self, account: Account) -> None:
        """Delete the Account's own Secret; one that is not the Account's stays, whatever the Account's spec names."""
        name = account.spec.iam_user_secret or secret_of(account.metadata.name)
        with suppress(Absent, Conflict):
            found = keys.known(await self._kube.get(SECRET, OPERATOR_NAMESPACE, name))
            if not found.foreign_to(account.key, f"{ADMIN_USER_PREFIX}{account.iam_user_id}"):
                await self._kube.delete(SECRET, OPERATOR_NAMESPACE, name, resource_version=found.resource_version)
