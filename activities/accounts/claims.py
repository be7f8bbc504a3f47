"""Handing an account over to its claim (see `handover.py`), and taking it back.

A release is safe to repeat. It removes the claim's copy of the key first, then the Account's links, then writes its
status: a process that dies in between leaves an Account that nobody can claim, and that its own workflow completes.
"""

from __future__ import annotations

import contextlib

from temporalio import activity
from temporalio.client import Client

from activities.accounts.claim_secrets import delete_secret, key_ids_of
from activities.accounts.handover import HandOver
from activities.accounts.metrics import account_closed
from activities.accounts.reading import Reader
from activities.defined import Activities
from domain.accounts import ACCOUNT
from domain.accounts.actions.handover import Fulfil, Fulfilled, Release, ReleaseAccount
from domain.accounts.constants import CLAIM_UID_ANNOTATION
from domain.accounts.letting_go import LET_GO, UNCLEANED, told_to
from domain.accounts.resources import Account
from domain.accounts.status import release_failed, released
from engine.clock import now
from engine.errors import Absent, Conflict
from engine.temporal import wake


class ClaimActivities(Activities):
    """Hand over and take back."""

    def __init__(self, reader: Reader, hand_over: HandOver, client: Client) -> None:
        self._read = reader
        self._kube = reader.kube
        self._hand_over = hand_over
        self._client = client

    @activity.defn(name=Fulfil.activity)
    async def fulfil(self, action: Fulfil) -> Fulfilled:
        """See `HandOver.hand_over`."""
        return await self._hand_over.hand_over(action)

    # --- take back ---

    @activity.defn(name=ReleaseAccount.activity)
    async def release(self, action: ReleaseAccount) -> None:
        """The Account's side of a release."""
        account = await self._read.account(action.account)
        if account is None or not account.named_by(action.claim):
            return
        if action.how is Release.UNCLEANED:
            await self._forsake(action, account)
            return
        if action.how is Release.FAILED:
            status = release_failed(account.status, now()).model_dump(mode="json", exclude_none=True)
            await self._read.write(account, {"status": status}, subresource="status")
            return
        await self._remove_key(action, account)
        if action.how is Release.CLOSED:
            await self._delete(account)
            return
        entity = account.spec.legal_entity if account.spec.legal_entity.id else action.legal_entity
        links = {"claimLink": "", "claimLinkNamespace": "", "legalEntity": entity.model_dump(mode="json")}
        account = await self._read.write(
            account, {"metadata": {"annotations": {CLAIM_UID_ANNOTATION: None}}, "spec": links}
        )
        status = released(account.status, now()).model_dump(mode="json", exclude_none=True)
        status["regionalServiceQuotas"] = None
        account = await self._read.write(account, {"status": status}, subresource="status")
        await wake(self._client, self._read.key(account))

    async def _forsake(self, action: ReleaseAccount, account: Account) -> None:
        """Uncleaned and Failed first, then nobody's: at no moment could it be given to a claim.

        A person's word holds for this once: a deletion that is yet to come cleans again, one under way does not.
        """
        await self._remove_key(action, account)
        why = told_to(account) or "released without a clean-up"
        account = await self._read.write(account, {"metadata": {"annotations": {UNCLEANED: why}}})
        failed = release_failed(account.status, now()).model_copy(update={"claimed": False})
        account = await self._read.write(
            account, {"status": failed.model_dump(mode="json", exclude_none=True)}, subresource="status"
        )
        annotations: dict[str, object] = {CLAIM_UID_ANNOTATION: None}
        if not account.metadata.deleting:
            annotations[LET_GO] = None
        links = {"claimLink": "", "claimLinkNamespace": ""}
        account = await self._read.write(account, {"metadata": {"annotations": annotations}, "spec": links})
        await wake(self._client, self._read.key(account))

    async def _delete(self, account: Account) -> None:
        """The Account of a closed AWS account goes; its own lifecycle lets it go when the claim is gone."""
        meta = account.metadata
        if meta.deleting:
            return
        with contextlib.suppress(Absent, Conflict):
            await self._kube.delete(ACCOUNT, meta.namespace, meta.name, uid=meta.uid)
            account_closed()

    async def _remove_key(self, action: ReleaseAccount, account: Account) -> None:
        """Delete the claim's Secret; one without a mark only if it holds a key that this account has or had."""
        key_ids = await key_ids_of(self._kube, account)
        account_id = account.spec.aws_account_id
        await delete_secret(self._kube, action.claim, action.secret_name, key_ids, account_id)
