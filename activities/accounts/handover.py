"""Handing an account over to the claim that it is bound to.

Safe to repeat. A key is copied only when the Account itself names the claim as its holder, read anew in the moment of
copying (the pool has the answer to its own binding for that). The pool's pass hands over right after binding, carrying
out the claim's own decisions, so that a claim is served within one activity; the claim's workflow, opened behind it,
finds the work done, or finishes what was cut short.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Container, Iterable, Mapping
from datetime import timedelta
from functools import partial

from temporalio.client import Client, RPCTimeoutOrCancelledError, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from activities.accounts.reading import Reader
from activities.aws.keys import ACCESS_KEY_ID, known_ids
from activities.aws.organization import move_account
from activities.aws.session import Sessions, secret_content
from activities.inline import carry_out
from activities.kube import KubeActivities
from domain.accounts import ACCOUNT, ACCOUNT_CLAIM
from domain.accounts.actions.handover import Fulfil, Fulfilled
from domain.accounts.claim import NOT_MOVED, decide
from domain.accounts.claim_steps import named_by
from domain.accounts.constants import (
    HOLDER_ANNOTATION,
    OPERATOR_NAMESPACE,
    PAYER_SECRET,
    SECRET_NOT_OURS,
    SECRET_OF_THE_OPERATOR,
)
from domain.accounts.naming import secret_of
from domain.accounts.observations import UnitRequest, Units, UnitsRequest
from domain.accounts.resources import Account
from domain.accounts.worlds import ClaimWorld
from domain.identity import Key
from domain.writes import Patch
from engine.errors import Absent, ApiError, Conflict, Denied, Invalid, Unavailable
from engine.kube import SECRET, JsonObject, KubeApi
from engine.kube.json import mapping, text
from engine.temporal import start_of

KEY_FIELDS = ("aws_access_key_id", "aws_secret_access_key")
ROLE_FIELD = "role_arn"  # of a fleet manager's claim
UNIT_GONE = "DestinationParentNotFoundException"
UNIT_ANSWER = timedelta(seconds=60)

log = logging.getLogger(__name__)


class HandOver:
    """Gives accounts to claims. One per process."""

    def __init__(self, reader: Reader, sessions: Sessions, client: Client) -> None:
        self._read = reader
        self._kube = reader.kube
        self._writes = KubeActivities(reader.kube, client)
        self._sessions = sessions
        self._client = client
        self._units: dict[UnitRequest, asyncio.Future[str]] = {}

    async def carry_on(self, world: ClaimWorld) -> None:
        """Carry out what the claim's decisions ask for right after the pool has bound `world.account` to it.

        Raises:
            ApiError: the claim's own workflow has to see to it.
        """
        hand_over = partial(self.hand_over, just_read=world.account)
        await carry_out(world, decide, {Patch.activity: self._writes.patch, Fulfil.activity: hand_over})

    async def hand_over(self, action: Fulfil, just_read: Account | None = None) -> Fulfilled:
        """Move the account to its OU while its key is copied; then record both in the claim's spec."""
        account = just_read or await self._read.account(OPERATOR_NAMESPACE, action.account)
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
        request = UnitRequest(base=action.base, legal_entity=action.legal_entity.id)
        move = partial(move_account, self._sessions, action.account_id, action.root, action.base)
        return await self.moved(request, await self._unit(request), move)

    def prepare(self, base: str, legal_entities: Iterable[str]) -> None:
        """Ask for the OUs of several claims in one question while they are still being bound; nobody waits for it."""
        requests = {UnitRequest(base=base, legal_entity=each) for each in legal_entities} - self._units.keys()
        if not requests:
            return
        self._prepare(base, requests)

    def _prepare(self, base: str, requests: Iterable[UnitRequest], gone: str = "") -> None:
        names = tuple(sorted(request.legal_entity for request in requests))
        answer = asyncio.ensure_future(self._ask_units(UnitsRequest(base=base, legal_entities=names, gone=gone)))
        for request in requests:
            future = self._units[request] = asyncio.ensure_future(_unit_in(answer, request))
            future.add_done_callback(partial(self._forget_failed, request))

    def _forget_failed(self, request: UnitRequest, answer: asyncio.Future[str]) -> None:
        """What was not answered is asked for again by the next who needs it."""
        if (answer.cancelled() or answer.exception()) and self._units.get(request) is answer:
            del self._units[request]

    async def units(self, base: str, legal_entities: Iterable[str]) -> dict[str, str | ApiError]:
        """The OUs of legal entities by their ids, or why there is none."""
        wanted = sorted(set(legal_entities))
        self.prepare(base, wanted)
        asked = (self._unit(UnitRequest(base=base, legal_entity=each)) for each in wanted)
        found = await asyncio.gather(*asked, return_exceptions=True)
        units: dict[str, str | ApiError] = {}
        for each, unit in zip(wanted, found, strict=True):
            if not isinstance(unit, str | ApiError):
                raise unit
            units[each] = unit
        return units

    async def _unit(self, request: UnitRequest) -> str:
        """The OU, asked for once however many claims of one legal entity come together."""
        self.prepare(request.base, [request.legal_entity])
        return await asyncio.shield(self._units[request])

    async def moved(self, request: UnitRequest, unit: str, move: Callable[[str], None]) -> str:
        """Move an account into this OU; in place of one that somebody has deleted, into a new one. Answers which."""
        try:
            await asyncio.to_thread(move, unit)
        except Absent as error:
            if error.code != UNIT_GONE:
                raise
            self._prepare(request.base, [request], unit)  # the organization remembers it, too
            unit = await self._unit(request)
            await asyncio.to_thread(move, unit)
        return unit

    async def _ask_units(self, request: UnitsRequest) -> Units:
        """The OUs, from the organization's workflow: it alone makes new ones."""
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

    async def _copy_key(self, action: Fulfil) -> None:
        """The claim's Secret with the account's key; another key in it is an earlier account's."""
        if not action.source_secret:
            return
        source = await self._kube.get(SECRET, OPERATOR_NAMESPACE, action.source_secret)
        await put_secret(self._kube, action.claim, action.secret_name, account_key(source), known_ids(source))


async def put_secret(
    kube: KubeApi, claim: Key, name: str, content: Mapping[str, object], key_ids: Container[str] = ()
) -> None:
    """The claim's Secret with these entries and whose it is, written only if it differs; an entry that is None goes.

    Raises:
        Denied: it is the payer's, an Account's own, or not a claim's.
    """
    if whose := await operators_own(kube, claim.namespace, name):
        message = f"Secret {claim.namespace}/{name} is {whose}: it is not overwritten. Name another one in the claim."
        raise Denied(message, code=SECRET_OF_THE_OPERATOR)
    metadata: JsonObject = {"name": name, "annotations": {HOLDER_ANNOTATION: claim.uid}}
    new = {field: value for field, value in content.items() if value is not None}
    try:
        await kube.create(SECRET, {"metadata": metadata, "type": "Opaque", "data": new}, claim.namespace)
    except Conflict:
        present = await kube.get(SECRET, claim.namespace, name)
        if not await _may_write(kube, claim, present, new, key_ids):
            message = (
                f"Secret {claim.namespace}/{name} exists, and this claim did not create it: it is neither changed nor "
                "deleted. Name another Secret in the claim, or delete this one."
            )
            raise Denied(message, code=SECRET_NOT_OURS) from None
        data = mapping(present, "data")
        if _holder_of(present) != claim.uid or any(data.get(field) != value for field, value in content.items()):
            version = text(present, "metadata", "resourceVersion")
            patch: JsonObject = {"metadata": metadata, "data": dict(content)}
            await kube.patch(SECRET, claim.namespace, name, patch, resource_version=version)


async def _may_write(
    kube: KubeApi, claim: Key, present: JsonObject, new: Mapping[str, object], key_ids: Container[str]
) -> bool:
    """Whether a Secret is this claim's: by its mark, as one of a claim that is gone, or by what it holds.

    The replaced operator marked nothing. Its Secrets hold just what a hand-over writes, or a key of the same account.
    """
    holder = _holder_of(present)
    if not holder:
        return mapping(present, "data") == new or holds_key(present, key_ids)
    if holder == claim.uid:
        return True
    claims = (await kube.list(ACCOUNT_CLAIM, claim.namespace)).items
    return holder not in {text(each, "metadata", "uid") for each in claims}


def holds_key(secret: JsonObject, key_ids: Container[str]) -> bool:
    """Whether a Secret holds one of these keys, as the replaced operator's claims' Secrets do, and nothing else."""
    data = mapping(secret, "data")
    return set(data) == set(KEY_FIELDS) and secret_content(secret).get(ACCESS_KEY_ID, "") in key_ids


async def operators_own(kube: KubeApi, namespace: str, name: str) -> str:
    """Whose a Secret of the operator's namespace is that no claim may write or delete; empty if one may."""
    if namespace != OPERATOR_NAMESPACE:
        return ""
    if name == PAYER_SECRET:
        return "the payer's"
    for each in (await kube.list(ACCOUNT, OPERATOR_NAMESPACE)).items:
        account = text(each, "metadata", "name")
        if name in {secret_of(account), text(each, "spec", "iamUserSecret")}:
            return f"Account {account}'s own"
    return ""


def _holder_of(secret: JsonObject) -> str:
    """The claim (its uid) that a Secret was written for last; empty where that is not said, as on those of before."""
    return text(secret, "metadata", "annotations", HOLDER_ANNOTATION)


async def delete_secret(
    kube: KubeApi, claim: Key, namespace: str, name: str, key_ids: Container[str] = (), account_id: str = ""
) -> None:
    """Delete the claim's Secret if it is there and this claim's: by its mark, or by what it holds.

    That is one of these keys, or a role in the account with that id.

    Never one of the operator's own, and none that somebody has put other entries into.

    Raises:
        Conflict: somebody has written it since it was read; it has to be looked at anew.
    """
    with contextlib.suppress(Absent):
        present = await kube.get(SECRET, namespace, name)
        marked = _holder_of(present) == claim.uid and set(mapping(present, "data")) in (set(KEY_FIELDS), {ROLE_FIELD})
        held = holds_key(present, key_ids) or _holds_role(present, account_id)
        unmarked = not _holder_of(present) and held
        if not (marked or unmarked) or await operators_own(kube, namespace, name):
            return
        meta = mapping(present, "metadata")
        uid, version = text(meta, "uid"), text(meta, "resourceVersion")
        await kube.delete(SECRET, namespace, name, uid=uid, resource_version=version)


def _holds_role(secret: JsonObject, account_id: str) -> bool:
    there = set(mapping(secret, "data")) == {ROLE_FIELD}
    return bool(account_id) and there and f"::{account_id}:" in secret_content(secret).get(ROLE_FIELD, "")


async def key_ids_of(kube: KubeApi, account: Account) -> frozenset[str]:
    """The ids of the keys that an account's Secret has had lately; empty where it is gone."""
    with contextlib.suppress(Absent):
        name = account.spec.iam_user_secret or secret_of(account.metadata.name)
        return known_ids(await kube.get(SECRET, OPERATOR_NAMESPACE, name))
    return frozenset()


def account_key(secret: JsonObject) -> dict[str, object]:
    """The two entries of an account's Secret that its claim gets, as they stand there.

    Raises:
        Invalid: one is missing or empty. Copied, it would take a working key out of a Secret that the claim has.
    """
    key = {field: mapping(secret, "data").get(field) for field in KEY_FIELDS}
    if not all(key.values()):
        where = f"Secret {text(secret, 'metadata', 'namespace')}/{text(secret, 'metadata', 'name')}"
        raise Invalid(f"{where} needs {' and '.join(KEY_FIELDS)}: no key is handed over", code="KeyIncomplete")
    return key


async def _unit_in(answer: asyncio.Future[Units], request: UnitRequest) -> str:
    """One legal entity's part of an answer."""
    units = await answer
    if refused := units.refused.get(request.legal_entity):
        raise Invalid(f"the OU of legal entity {request.legal_entity!r}: {refused.message}", code=refused.code)
    return units.ids[request.legal_entity]


def _confirm_holder(account: Account | None, action: Fulfil) -> None:
    if account is None:
        raise Absent(f"Account {action.account} does not exist")
    if not named_by(account, action.claim) or account.spec.aws_account_id != action.account_id:
        raise Denied(
            f"Account {action.account} does not name claim {action.claim.namespace}/{action.claim.name} as its holder: "
            "its key is not copied",
            code="NotTheHolder",
        )
