"""Hands an account over to its claim, and releases the account. Both operations can be repeated."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial

from temporalio import activity
from temporalio.client import Client, RPCTimeoutOrCancelledError, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from activities.accounts.cache import Reader
from activities.accounts.claim_secrets import copy_key, delete_secret, key_ids_of
from activities.accounts.metrics import account_closed
from activities.activity_class import Activities
from activities.aws.account_moves import move_account
from activities.aws.session import Sessions
from activities.inline_driver import Inline
from activities.kube import KubeActivities
from domain.accounts import ACCOUNT, ACCOUNT_CLAIM
from domain.accounts.actions.handover import Fulfil, Fulfilled, Release, ReleaseAccount
from domain.accounts.claim_holder import links_back, may_release, unclean
from domain.accounts.claim_lifecycle import NOT_MOVED, decide
from domain.accounts.constants import CLAIM_UID_ANNOTATION, UNCLEANED
from domain.accounts.force_release import FORCE_RELEASE, release_reason
from domain.accounts.observed import ClaimWorld
from domain.accounts.passes import UnitRequest, Units, UnitsRequest
from domain.accounts.resources import Account, AccountClaim
from domain.accounts.state_conditions import release_failed, released
from domain.runner import State
from domain.writes import JsonPatch, Patch
from engine.clock import now
from engine.errors import Absent, ApiError, Conflict, Denied, Invalid, Unavailable
from engine.temporal import start_of, wake

UNIT_GONE = "DestinationParentNotFoundException"
UNIT_ANSWER = timedelta(seconds=60)

log = logging.getLogger(__name__)


class HandOver(Activities):
    """Claims that need the same OU share one request."""

    def __init__(self, reader: Reader, sessions: Sessions, client: Client) -> None:
        self._read = reader
        self._kube = reader.kube
        self._writes = KubeActivities(reader.kube, client)
        self._sessions = sessions
        self._client = client
        self._units: dict[UnitRequest, asyncio.Future[str]] = {}

    async def carry_on(self, world: ClaimWorld) -> None:
        """Hand the account over to a claim that was just bound. Raises an ApiError if the claim's own workflow must
        continue the hand-over.
        """
        hand_over = partial(self._hand_over, just_read=world.account)
        inline = Inline(decide, {Patch.activity: self._writes.patch, Fulfil.activity: hand_over})
        (await inline.go_on(State(world, dirty=False))).confirm()

    @activity.defn(name=Fulfil.activity)
    async def hand_over(self, action: Fulfil) -> Fulfilled:
        return await self._hand_over(action, await self._read.account(action.account))

    async def _hand_over(self, action: Fulfil, just_read: Account | None) -> Fulfilled:
        _confirm_holder(just_read, action)
        if action.source_secret:
            copied = copy_key(self._kube, action.claim, action.secret_name, action.source_secret)
            unit, _ = await asyncio.gather(self._place(action), copied)
        else:
            unit = await self._place(action)
        if not action.placed:
            spec: JsonPatch = {"spec": {"accountOU": unit, "supportRoleARN": action.support_role_arn}}
            await self._read.write_to(ACCOUNT_CLAIM, action.claim, spec)
        return Fulfilled(account_ou=unit, support_role_arn=action.support_role_arn)

    async def _place(self, action: Fulfil) -> str:
        if action.placed:
            claim = await self._read.one(AccountClaim, action.claim.namespace, action.claim.name)
            if claim is not None and claim.spec.account_ou not in NOT_MOVED:
                return claim.spec.account_ou
        request = UnitRequest(base=action.base, legal_entity=action.legal_entity.id)
        move = partial(move_account, self._sessions, action.account_id, action.root, action.base)
        return await self.moved(request, await self.unit_of(request), move)

    def prepare(self, base: str, legal_entities: Iterable[str], gone: str = "") -> None:
        """Request the OUs in one call, in the background. If `gone` names a deleted OU, all OUs are requested;
        otherwise only OUs not requested yet.
        """
        requests = {UnitRequest(base=base, legal_entity=each) for each in legal_entities}
        if not gone:
            requests -= self._units.keys()
        if not requests:
            return
        names = tuple(sorted(request.legal_entity for request in requests))
        answer = asyncio.ensure_future(self._ask_units(UnitsRequest(base=base, legal_entities=names, gone=gone)))
        for request in requests:
            future = self._units[request] = asyncio.ensure_future(_unit_in(answer, request))
            future.add_done_callback(partial(self._forget_failed, request))

    def _forget_failed(self, request: UnitRequest, answer: asyncio.Future[str]) -> None:
        if (answer.cancelled() or answer.exception()) and self._units.get(request) is answer:
            del self._units[request]

    async def units(self, base: str, legal_entities: Iterable[str]) -> dict[str, str | ApiError]:
        wanted = sorted(set(legal_entities))
        self.prepare(base, wanted)
        requests = (self.unit_of(UnitRequest(base=base, legal_entity=each)) for each in wanted)
        found = await asyncio.gather(*requests, return_exceptions=True)
        units: dict[str, str | ApiError] = {}
        for each, unit in zip(wanted, found, strict=True):
            if not isinstance(unit, str | ApiError):
                raise unit
            units[each] = unit
        return units

    async def unit_of(self, request: UnitRequest) -> str:
        self.prepare(request.base, [request.legal_entity])
        return await asyncio.shield(self._units[request])

    async def moved(self, request: UnitRequest, unit: str, move: Callable[[str], None]) -> str:
        """Move an account into the OU `unit` or, if that OU was deleted, into a new one. Returns the OU's id."""
        try:
            await asyncio.to_thread(move, unit)
        except Absent as error:
            if error.code != UNIT_GONE:
                raise
            # The organization's workflow still remembers the deleted OU's id.
            self.prepare(request.base, [request.legal_entity], unit)
            unit = await self.unit_of(request)
            await asyncio.to_thread(move, unit)
        return unit

    async def _ask_units(self, request: UnitsRequest) -> Units:
        organization = self._read.organization
        whose = f"the OU of legal entity {', '.join(map(repr, request.legal_entities))}"
        try:
            units: Units = await self._client.execute_update_with_start_workflow(
                "units",
                request,
                start_workflow_operation=start_of(organization),
                result_type=Units,
                rpc_timeout=UNIT_ANSWER,
            )
        except WorkflowUpdateFailedError as error:
            cause = error.cause
            message = cause.message if isinstance(cause, ApplicationError) else str(cause)
            code = str(cause.details[0]) if isinstance(cause, ApplicationError) and cause.details else ""
            raise Invalid(f"{whose}: {message}", code=code) from error
        except (RPCError, RPCTimeoutOrCancelledError) as error:
            raise Unavailable(f"{whose}: the organization's workflow gave no answer: {error}") from error
        return units

    # --- release ---

    @activity.defn(name=ReleaseAccount.activity)
    async def release(self, action: ReleaseAccount) -> None:
        account = await self._read.account(action.account)
        if account is None or not may_release(action.claim, account):
            return
        if action.how is Release.UNCLEANED:
            await self._forsake(action, account)
            return
        if action.how is Release.FAILED:
            await self._set_aside(action, account)
            return
        await self._remove_key(action, account)
        if action.how is Release.CLOSED:
            await self._delete(account)
            return
        unlink: JsonPatch = {
            "metadata": {"annotations": {CLAIM_UID_ANNOTATION: None}},
            "spec": _unlinked(action, account),
        }
        # Only the uid leads a repeated release to an unclean account, so the uid is removed last from such an account.
        left = unclean(account)
        if not left:
            account = await self._read.write(account, unlink)
        account = await self._read.write_status(account, released(account.status, now()), regionalServiceQuotas=None)
        if left:
            account = await self._read.write(account, unlink)
        await wake(self._client, self._read.key(account))

    async def _set_aside(self, action: ReleaseAccount, account: Account) -> None:
        """Set the Account's state to Failed before its link is removed, so no other claim can get it."""
        await self._remove_key(action, account)
        failed = release_failed(account.status, now())
        account = await self._read.write_status(account, failed, regionalServiceQuotas=None)
        uid = {"annotations": {CLAIM_UID_ANNOTATION: action.claim.uid}}
        await self._read.write(account, {"metadata": uid, "spec": _unlinked(action, account)})

    async def _forsake(self, action: ReleaseAccount, account: Account) -> None:
        """Set the Account's state to Failed. Then record that it was not cleaned, and remove its link, in one write."""
        await self._remove_key(action, account)
        why = release_reason(account) or "released without a clean-up"
        account = await self._read.write_status(account, release_failed(account.status, now()))
        annotations: dict[str, object] = {UNCLEANED: why, CLAIM_UID_ANNOTATION: None}
        if not account.metadata.deleting:
            annotations[FORCE_RELEASE] = None
        links = {"claimLink": "", "claimLinkNamespace": ""}
        account = await self._read.write(account, {"metadata": {"annotations": annotations}, "spec": links})
        await wake(self._client, self._read.key(account))

    async def _delete(self, account: Account) -> None:
        meta = account.metadata
        if meta.deleting:
            return
        with contextlib.suppress(Absent, Conflict):
            await self._kube.delete(ACCOUNT, meta.namespace, meta.name, uid=meta.uid)
            account_closed()

    async def _remove_key(self, action: ReleaseAccount, account: Account) -> None:
        key_ids = await key_ids_of(self._kube, account)
        account_id = account.spec.aws_account_id
        await delete_secret(self._kube, action.claim, action.secret_name, key_ids, account_id)


def _unlinked(action: ReleaseAccount, account: Account) -> JsonPatch:
    entity = account.spec.legal_entity if account.spec.legal_entity.id else action.legal_entity
    return {"claimLink": "", "claimLinkNamespace": "", "legalEntity": entity.model_dump(mode="json")}


async def _unit_in(answer: asyncio.Future[Units], request: UnitRequest) -> str:
    units = await answer
    if refused := units.refused.get(request.legal_entity):
        raise Invalid(f"the OU of legal entity {request.legal_entity!r}: {refused.message}", code=refused.code)
    return units.ids[request.legal_entity]


def _confirm_holder(account: Account | None, action: Fulfil) -> None:
    if account is None:
        raise Absent(f"Account {action.account} does not exist")
    if not links_back(account, action.claim) or account.spec.aws_account_id != action.account_id:
        raise Denied(
            f"Account {action.account} does not name claim {action.claim.namespace}/{action.claim.name} as its holder: "
            "its key is not copied",
            code="NotTheHolder",
        )
