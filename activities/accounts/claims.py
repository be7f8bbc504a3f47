"""Handing an account over to its claim, and taking it back.

Both are safe to repeat. A hand-over copies a key only when the Account itself names the claim as its holder, read anew
in the moment of copying. A release removes the claim's copy of the key first, then the Account's links, then writes its
status: a process that dies in between leaves an Account that nobody can claim, and that its own workflow completes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from temporalio import activity
from temporalio.client import Client, WithStartWorkflowOperation, WorkflowUpdateFailedError
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import ApplicationError

from activities.accounts.reading import Reader
from activities.aws.organization import move_account
from activities.aws.session import Sessions
from domain.accounts import ACCOUNT, ACCOUNT_CLAIM
from domain.accounts.actions import Fulfil, Fulfilled, ReleaseAccount
from domain.accounts.claim import NOT_MOVED
from domain.accounts.constants import OPERATOR_NAMESPACE
from domain.accounts.observations import UnitRequest
from domain.accounts.resources import Account
from domain.accounts.status import release_failed, released
from domain.carry import Carry
from domain.identity import Key
from engine.clock import now
from engine.errors import Absent, Conflict, Denied, Invalid
from engine.kube import SECRET
from engine.kube.json import mapping
from engine.temporal import identity_attributes, wake

KEY_FIELDS = ("aws_access_key_id", "aws_secret_access_key")
UNIT_ANSWER = timedelta(seconds=60)


class ClaimActivities:
    """Hand over and take back."""

    def __init__(self, reader: Reader, sessions: Sessions, client: Client) -> None:
        self._read = reader
        self._kube = reader.kube
        self._sessions = sessions
        self._client = client

    def all(self) -> Sequence[Callable[..., object]]:
        """Every activity, for the worker."""
        return (self.fulfil, self.release)

    # --- hand over ---

    @activity.defn(name=Fulfil.activity)
    async def fulfil(self, action: Fulfil) -> Fulfilled:
        """Move the account to its OU while its key is copied; then record both in the claim's spec."""
        account = await self._read.account(OPERATOR_NAMESPACE, action.account)
        _confirm_holder(account, action)
        unit, _ = await asyncio.gather(self._place(action), self._copy_key(action))
        if not action.placed:
            spec = {"accountOU": unit, "supportRoleARN": action.support_role_arn}
            claim = action.claim
            await self._kube.patch(
                ACCOUNT_CLAIM, claim.namespace, claim.name, {"metadata": {"uid": claim.uid}, "spec": spec}
            )
        return Fulfilled(account_ou=unit, support_role_arn=action.support_role_arn)

    async def _place(self, action: Fulfil) -> str:
        if action.placed:
            claim = await self._read.claim(action.claim.namespace, action.claim.name)
            if claim is not None and claim.spec.account_ou not in NOT_MOVED:
                return claim.spec.account_ou
        unit = await self._unit(UnitRequest(base=action.base, legal_entity=action.legal_entity.id))
        await asyncio.to_thread(move_account, self._sessions, action.account_id, action.root, action.base, unit)
        return unit

    async def _unit(self, request: UnitRequest) -> str:
        """The OU, from the organization's workflow: it alone makes new ones."""
        organization = self._read.organization
        start: WithStartWorkflowOperation[object, object] = WithStartWorkflowOperation(
            organization.kind,
            Carry(key=organization),
            id=organization.workflow_id,
            task_queue="accounts",
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            static_summary=organization.path,
            search_attributes=identity_attributes(organization),
        )
        try:
            unit: str = await self._client.execute_update_with_start_workflow(
                "unit", request, start_workflow_operation=start, rpc_timeout=UNIT_ANSWER
            )
        except WorkflowUpdateFailedError as error:
            cause = error.cause
            message = cause.message if isinstance(cause, ApplicationError) else str(cause)
            code = str(cause.details[0]) if isinstance(cause, ApplicationError) and cause.details else ""
            raise Invalid(f"the OU of legal entity {request.legal_entity!r}: {message}", code=code) from error
        return unit

    async def _copy_key(self, action: Fulfil) -> None:
        """The claim's Secret with the account's key; one that holds another key is an earlier account's: replaced."""
        source = await self._kube.get(SECRET, OPERATOR_NAMESPACE, action.source_secret)
        key = {field: mapping(source, "data").get(field) for field in KEY_FIELDS}
        secret = {"metadata": {"name": action.secret_name}, "type": "Opaque", "data": key}
        try:
            await self._kube.create(SECRET, secret, action.secret_namespace)
        except Conflict:
            present = await self._kube.get(SECRET, action.secret_namespace, action.secret_name)
            if not _same_key(present, key):
                await self._kube.patch(SECRET, action.secret_namespace, action.secret_name, {"data": key})

    # --- take back ---

    @activity.defn(name=ReleaseAccount.activity)
    async def release(self, action: ReleaseAccount) -> None:
        """The Account's side of a release."""
        account = await self._read.account(OPERATOR_NAMESPACE, action.account)
        if account is None or not _names(account, action.claim):
            return
        if action.failed:
            status = release_failed(account.status, now()).model_dump(mode="json", exclude_none=True)
            await self._write(account, {"status": status}, subresource="status")
            return
        await self._remove_key(action, account)
        entity = account.spec.legal_entity if account.spec.legal_entity.id else action.legal_entity
        links = {"claimLink": "", "claimLinkNamespace": "", "legalEntity": entity.model_dump(mode="json")}
        account = await self._write(account, {"spec": links})
        status = released(account.status, now()).model_dump(mode="json", exclude_none=True)
        status["regionalServiceQuotas"] = None
        account = await self._write(account, {"status": status}, subresource="status")
        await wake(self._client, self._read.key(account))

    async def _write(self, account: Account, patch: Mapping[str, object], *, subresource: str = "") -> Account:
        meta = account.metadata
        answer = await self._kube.patch(
            ACCOUNT,
            meta.namespace,
            meta.name,
            patch,
            subresource=subresource,
            resource_version=meta.resource_version,
        )
        return Account.model_validate(answer)

    async def _remove_key(self, action: ReleaseAccount, account: Account) -> None:
        """Delete the claim's Secret, unless it holds something else than a key of this account's user.

        The key it holds has been rotated away by now, so it cannot be compared with the current one: a Secret of the
        claim's own naming that holds exactly the fields that a hand-over writes is the hand-over's.
        """
        try:
            present = await self._kube.get(SECRET, action.secret_namespace, action.secret_name)
        except Absent:
            return
        if set(mapping(present, "data")) != set(KEY_FIELDS):
            return
        try:
            await self._kube.delete(SECRET, action.secret_namespace, action.secret_name)
        except Absent:
            return


def _confirm_holder(account: Account | None, action: Fulfil) -> None:
    if account is None:
        raise Absent(f"Account {action.account} does not exist")
    if not _names(account, action.claim) or account.spec.aws_account_id != action.account_id:
        raise Denied(
            f"Account {action.account} does not name claim {action.claim.namespace}/{action.claim.name} as its holder: "
            "its key is not copied",
            code="NotTheHolder",
        )


def _names(account: Account, claim: Key) -> bool:
    return account.spec.claim_link == claim.name and account.spec.claim_link_namespace == claim.namespace


def _same_key(secret: Mapping[str, object], key: Mapping[str, object]) -> bool:
    data = mapping(secret, "data")
    return all(data.get(field) == value for field, value in key.items())
