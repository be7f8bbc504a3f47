"""The pass over an AccountPool. It may be interrupted at any point, and then be repeated."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Iterable, Mapping
from datetime import timedelta
from typing import NamedTuple

from temporalio import activity
from temporalio.client import Client, WorkflowQueryFailedError, WorkflowQueryRejectedError
from temporalio.common import QueryRejectCondition
from temporalio.service import RPCError

from activities.accounts.cache import Reader
from activities.accounts.handover import HandOver
from activities.activity_class import Activities
from activities.aws.admin_key_secret import owner_reference
from domain.accounts import ACCOUNT, ACCOUNT_POOL
from domain.accounts.actions.handover import BindWithoutPool
from domain.accounts.constants import CLAIM_UID_ANNOTATION, FINALIZER, IAM_USER_ID_LABEL, OPERATOR_NAMESPACE
from domain.accounts.creation_permits import BUDGET_SINCE
from domain.accounts.observed import ClaimWorld
from domain.accounts.passes import PassPool, PoolMemory, PoolWorld
from domain.accounts.pool import (
    Binding,
    NewAccount,
    PoolDecision,
    PoolView,
    Room,
    belongs,
    bind,
    count_failures,
    decide,
    has_bound,
    has_free,
    moving,
    rest_after,
    shows,
    waits,
)
from domain.accounts.resources import Account, AccountClaim, AccountPool
from domain.control_annotations import RETRIED, retry_wanted
from domain.decision import Decision, Outcome, earliest
from domain.refusal import without_request
from domain.resource import ObjectMeta, timestamp
from domain.writes import JsonPatch
from engine.clock import now
from engine.errors import Absent, ApiError, Conflict, Denied, Invalid
from engine.temporal import wake

ASKED_FOR_ROOM = timedelta(seconds=5)
# The pause before the organization's workflow is asked again. It wakes the pools only when its count changes.
ASK_AGAIN = timedelta(seconds=10)
AFTER_CONFLICT = timedelta(seconds=1)
AFTER_REFUSAL = timedelta(minutes=1)
# How long changes gather: Accounts that were created together change together. A claim waits no longer than this.
MOVING_TOGETHER = timedelta(milliseconds=700)
# Claims that arrive within this time are bound together.
BURST_SECONDS = 0.05
# The longest time that a hand-over may delay the pool. After that the claim's own lifecycle continues the hand-over.
HAND_OVER_SECONDS = 5.0

# The errors of a write when another client has changed or deleted the object.
BY_OTHERS = (Conflict, Absent)

log = logging.getLogger(__name__)


class Unfinished(NamedTuple):
    conflicts: int = 0  # writes that failed because another client had changed or deleted the object
    refused: Mapping[str, str] = {}  # by a claim's uid, why its binding was refused


class PoolActivities(Activities):
    def __init__(self, reader: Reader, hand_over: HandOver, client: Client) -> None:
        self._read = reader
        self._kube = reader.kube
        self._hand_over = hand_over
        self._client = client

    @activity.defn(name=PassPool.activity)
    async def pass_pool(self, look: PassPool) -> PoolWorld:
        key = look.key
        pool = await self._read.pool(key, look.seen)
        if pool is None:
            return PoolWorld(key=key, exists=False, decision=_gone())
        if key.namespace != OPERATOR_NAMESPACE:
            return PoolWorld(key=key, decision=_elsewhere())
        hold = await self._read.hold(pool.metadata)
        acting = not hold and not look.dry_run
        known = look.memory
        if acting and retry_wanted(pool.metadata):
            pool, known = await self._honour_retry(pool), PoolMemory(unborn=known.unborn, died=known.died)
        view = await self._view(pool, known, look)
        decision = decide(view, now())
        unfinished = await self._act(view, decision) if acting else Unfinished()
        unborn = (a.metadata.name for a in view.accounts if belongs(a, pool, view.config) and not a.spec.aws_account_id)
        created = (new.name for new in decision.create) if acting else ()
        return PoolWorld(
            key=key,
            hold=hold,
            known=PoolMemory(
                unborn=tuple(sorted({*unborn, *created})),
                deaths=view.deaths,
                bonds_seen=acting and unfinished == Unfinished(),
                refused=(*_not_tried(view, decision), *unfinished.refused),
            ),
            heard=known.died,
            decision=_summary(view, decision, unfinished, () if acting else _planned(view, decision)),
            rest=rest_after(view, decision),
            gather=MOVING_TOGETHER if moving(view, decision) else timedelta(0),
        )

    @activity.defn(name=BindWithoutPool.activity)
    async def bind_without_pool(self, action: BindWithoutPool) -> None:
        """Raises Conflict if another claim has taken the chosen Account; the workflow then repeats the action."""
        claim, config = await asyncio.gather(self._read.same(AccountClaim, action.claim), self._read.config())
        pool = AccountPool(metadata=ObjectMeta(name=action.pool, namespace=OPERATOR_NAMESPACE))
        if claim is None or not waits(claim, pool, config):
            return
        view = PoolView(
            pool=pool,
            accounts=_lasting(await self._read.accounts({}, OPERATOR_NAMESPACE), pool),
            claims=(claim,),
            config=config,
            protected=self._read.settings.accounts_protected,
            room=None,
        )
        if bind(view)[0]:  # the cache may be behind; an unsuccessful search should cost no request
            accounts = _lasting(await self._read.all(Account, OPERATOR_NAMESPACE), pool)
            view = view.model_copy(update={"accounts": accounts})
        bindings, unserved = bind(view)
        for why in unserved.values():
            raise Invalid(f"can't find a suitable account to claim: {why}", code="NoSuitableAccount")
        if error := await self._bind(bindings[0], view):
            raise error

    async def _view(self, pool: AccountPool, known: PoolMemory, look: PassPool) -> PoolView:
        began, info = time.monotonic(), activity.info()
        # A previous attempt or run may have died between the two writes of a binding.
        thorough = info.attempt > 1 or not known.bonds_seen
        seen, version = None if thorough else look.seen, self._read.accounts_version
        accounts, config, room = await asyncio.gather(
            self._read.accounts(seen, OPERATOR_NAMESPACE, having=known.unborn),
            self._read.config(look.seen),
            self._room(look.dry_run),
        )
        view = PoolView(
            pool=pool,
            accounts=accounts,
            claims=(),
            config=config,
            protected=self._read.settings.accounts_protected,
            room=room,
            refused=known.refused,
            token=f"{info.workflow_run_id}/{info.activity_id}",
        )
        if look.dry_run or has_free(view) or has_bound(view, thorough=thorough):  # otherwise no claim can be bound
            await asyncio.sleep(max(0.0, began + BURST_SECONDS - time.monotonic()))
            claims = tuple(claim for claim in await self._read.all(AccountClaim) if waits(claim, pool, config))
            if claims and not thorough and self._read.accounts_version != version:
                # An account of a claim's legal entity may have become free since the Accounts were read.
                accounts = await self._read.accounts(seen, OPERATOR_NAMESPACE, having=known.unborn)
            view = view.model_copy(update={"claims": claims, "accounts": accounts})
        deaths = count_failures(known.deaths, accounts, frozenset(known.unborn), frozenset(known.died), now())
        return view.model_copy(update={"deaths": deaths})

    async def _room(self, dry_run: bool) -> Room | None:
        """The organization's last count. None before the first count, or if its workflow does not answer: the workflow
        is then woken, and wakes the pool later.
        """
        organization = self._client.get_workflow_handle(self._read.organization.workflow_id)
        try:
            # A query of a closed workflow would be answered from its last state, and no new run would start.
            room: object = await organization.query(
                "room", reject_condition=QueryRejectCondition.NOT_OPEN, rpc_timeout=ASKED_FOR_ROOM
            )
        except (RPCError, WorkflowQueryFailedError, WorkflowQueryRejectedError):
            if not dry_run:
                await wake(self._client, self._read.organization)
            return None
        return Room.model_validate(room) if room is not None else None

    async def _honour_retry(self, pool: AccountPool) -> AccountPool:
        annotations = {RETRIED: retry_wanted(pool.metadata), BUDGET_SINCE: timestamp(now())}
        answer = await self._read.write_to(ACCOUNT_POOL, pool.key, {"metadata": {"annotations": annotations}})
        await wake(self._client, self._read.organization)
        return AccountPool.model_validate(answer)

    async def _act(self, view: PoolView, decision: PoolDecision) -> Unfinished:
        if decision.bind and view.config.base:
            self._hand_over.prepare(view.config.base, (each.claim.spec.legal_entity.id for each in decision.bind))
        effects: list[Awaitable[ApiError | None]] = [self._bind(binding, view) for binding in decision.bind]
        effects += [self._create(view.pool, new) for new in decision.create]
        if not shows(view.pool, decision.status):
            effects.append(self._write_status(view.pool, decision))
        errors = await asyncio.gather(*effects)
        refused = {
            binding.claim.metadata.uid: without_request(error.message)
            for binding, error in zip(decision.bind, errors, strict=False)
            if error is not None and not isinstance(error, BY_OTHERS)
        }
        return Unfinished(sum(isinstance(error, BY_OTHERS) for error in errors), refused)

    async def _create(self, pool: AccountPool, new: NewAccount) -> None:
        try:
            self._read.wrote(ACCOUNT, await self._kube.create(ACCOUNT, _manifest(pool, new), OPERATOR_NAMESPACE))
        except Conflict:
            log.info("Account %s exists already: an earlier attempt of this pass created it", new.name)

    async def _bind(self, binding: Binding, view: PoolView) -> ApiError | None:
        """Link the account, then the claim; free the account if the claim is gone or has another one. Returns the error
        if the binding is incomplete.
        """
        account, claim = binding.account, binding.claim
        try:
            held = await self._hold_claim(claim)
            linked = await self._linked(binding)
            bound = await self._link_claim(held, account.metadata.name)
        except (*BY_OTHERS, Denied, Invalid) as error:
            log.info("Account %s was not bound to claim %s: %s", account.metadata.name, claim.key.path, error)
            if isinstance(error, BY_OTHERS):
                await self._unbind_if_alone(binding)
            return error
        await self._hand_over_now(bound, linked, view)
        return None

    async def _linked(self, binding: Binding) -> Account:
        account, claim = binding.account, binding.claim
        if binding.complete:
            meta = account.metadata
            return Account.model_validate(await self._kube.get(ACCOUNT, meta.namespace, meta.name))
        holder = {"claimLink": claim.metadata.name, "claimLinkNamespace": claim.metadata.namespace}
        spec = {**holder, "legalEntity": claim.spec.legal_entity.model_dump(mode="json")}
        uid = {"annotations": {CLAIM_UID_ANNOTATION: claim.metadata.uid}}
        return await self._read.write(account, {"metadata": uid, "spec": spec})

    async def _hand_over_now(self, claim: AccountClaim, account: Account, view: PoolView) -> None:
        """If the hand-over fails, wake the workflows of claim and Account, which the watcher would wake later."""
        world = ClaimWorld(
            key=self._read.key(claim),
            claim=claim,
            account=account,
            config=view.config,
            protected=self._read.settings.accounts_protected,
            by_pool=True,
        )
        try:
            async with asyncio.timeout(HAND_OVER_SECONDS):
                await self._hand_over.carry_on(world)
        except (ApiError, TimeoutError) as error:
            log.info("claim %s is left to its own lifecycle: %s", world.key.path, error or "no answer in time")
            await asyncio.gather(wake(self._client, world.key), wake(self._client, self._read.key(account)))

    async def _hold_claim(self, claim: AccountClaim) -> AccountClaim:
        """Add our finalizer to the claim: a claim deleted without it would keep its account for ever."""
        meta = claim.metadata
        if FINALIZER in meta.finalizers:
            return claim
        metadata = {"uid": meta.uid, "finalizers": [*meta.finalizers, FINALIZER]}
        return await self._read.write(claim, {"metadata": metadata, "spec": claim.always_written})

    async def _link_claim(self, claim: AccountClaim, account: str) -> AccountClaim:
        """Link the claim, unless another attempt of this pass has given it another account meanwhile."""
        link: JsonPatch = {"spec": {"accountLink": account}}
        try:
            return await self._read.write(claim, link)
        except Conflict:  # mostly because the claim's own lifecycle has just written its status
            current = await self._read.same(AccountClaim, claim.key)
            if current is None or current.spec.account_link:
                raise
            return await self._read.write(current, link)

    async def _unbind_if_alone(self, binding: Binding) -> None:
        claim, before = binding.claim, binding.account
        present = await self._read.same(AccountClaim, claim.key)
        if present is not None and present.spec.account_link in {"", before.metadata.name}:
            return
        account = await self._read.one(Account, before.metadata.namespace, before.metadata.name)
        if account is None or account.spec.claim_link != claim.metadata.name or account.status.claimed:
            return
        free = {
            "claimLink": "",
            "claimLinkNamespace": "",
            "legalEntity": before.spec.legal_entity.model_dump(mode="json"),
        }
        await self._read.write(account, {"metadata": {"annotations": {CLAIM_UID_ANNOTATION: None}}, "spec": free})

    async def _write_status(self, pool: AccountPool, decision: PoolDecision) -> ApiError | None:
        status = decision.status.model_dump(mode="json", exclude_none=True)
        if not status["conditions"] and not (pool.status and pool.status.conditions):
            del status["conditions"]  # Perdure's addition to the status, which is not written while it is empty
        try:
            await self._read.write_to(ACCOUNT_POOL, pool.key, {"status": status}, subresource="status")
        except BY_OTHERS as error:
            return error
        return None


def _lasting(accounts: Iterable[Account], pool: AccountPool) -> tuple[Account, ...]:
    """The Accounts without those that Kubernetes is about to delete, because they belong to a pool that is gone."""
    return tuple(each for each in accounts if each.spec.claim_link or not _owned(each, pool))


def _owned(account: Account, pool: AccountPool) -> bool:
    owners = account.metadata.owner_references
    return any((each.kind, each.name) == (ACCOUNT_POOL.name, pool.metadata.name) for each in owners)


def _manifest(pool: AccountPool, new: NewAccount) -> dict[str, object]:
    quotas = new.model_dump(mode="json", include={"regional_service_quotas", "global_service_quotas"})
    return {
        "metadata": {
            "name": new.name,
            "namespace": OPERATOR_NAMESPACE,
            "labels": {IAM_USER_ID_LABEL: new.iam_user_id},
            "finalizers": [FINALIZER],
            "ownerReferences": [owner_reference(pool.key)],
        },
        "spec": {
            "awsAccountID": "",
            "iamUserSecret": "",
            "claimLink": "",
            "legalEntity": {"id": "", "name": ""},
            "accountPool": pool.metadata.name,
            **{name: value for name, value in quotas.items() if value},
        },
    }


def _planned(view: PoolView, decision: PoolDecision) -> tuple[str, ...]:
    creations = [f"create Account {new.name}" for new in decision.create]
    bindings = [
        f"bind {each.account.metadata.name} to claim {each.claim.metadata.namespace}/{each.claim.metadata.name}"
        for each in decision.bind
    ]
    return (*creations, *bindings, *([] if shows(view.pool, decision.status) else ["write the pool's status"]))


def _not_tried(view: PoolView, decision: PoolDecision) -> tuple[str, ...]:
    """The uids of waiting claims that were refused earlier, and not tried in this pass."""
    turns = {binding.claim.metadata.uid for binding in decision.bind}
    waiting = {claim.metadata.uid for claim in view.claims} - turns
    return tuple(uid for uid in view.refused if uid in waiting)


def _summary(view: PoolView, decision: PoolDecision, unfinished: Unfinished, planned: tuple[str, ...]) -> Decision:
    counts = decision.status
    numbers = (
        f"pool size {counts.pool_size}: {counts.available_accounts} available, {counts.accounts_progressing} "
        f"progressing, {counts.accounts_pending} pending; {counts.claimed_accounts} claimed"
    )
    unserved = "".join(f"; claim {name}: {why}" for name, why in sorted(decision.unserved.items())[:10])
    refused = unfinished.refused
    unbound = "".join(f"; {message}" for message in sorted(refused.values())[:10])
    outcome = Outcome.WAITING if refused and decision.outcome is Outcome.SETTLED else decision.outcome
    # A claim that was refused for the first time comes last in the next pass: another claim may then get the account.
    passed_on = bool(decision.unserved) and not refused.keys() <= {*view.refused}
    pauses = (
        AFTER_CONFLICT if unfinished.conflicts or passed_on else None,
        AFTER_REFUSAL if refused else None,
        ASK_AGAIN if view.room is None else None,
    )
    again = earliest([now() + pause for pause in pauses if pause])
    return Decision(
        phase={Outcome.SETTLED: "Full", Outcome.WORKING: "Filling"}.get(outcome, "Waiting"),
        outcome=outcome,
        why=f"{decision.why} ({numbers}){unserved}{unbound}",
        waits_for=decision.waits_for,
        deadline=earliest([decision.deadline, again]),
        at_deadline=decision.at_deadline or ("observe again" if again else ""),
        planned=planned,
    )


def _elsewhere() -> Decision:
    """The decision for a pool outside the operator's namespace; owner references to it would cross namespaces."""
    why = f"AccountPools work in namespace {OPERATOR_NAMESPACE} only: nothing is counted or created for this pool"
    return Decision(phase="Waiting", outcome=Outcome.WAITING, why=why, waits_for=("its removal",))


def _gone() -> Decision:
    return Decision(phase="Gone", outcome=Outcome.GONE, why="the AccountPool does not exist any more")
