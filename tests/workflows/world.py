"""One Account, one claim and what surrounds them: a Kubernetes API and an AWS of a single object each, in memory.

It replaces the clients of the activities. Workflows, decisions, the worker's edge and the errors are the real ones.
Writes keep the rules that decisions rest on: a resourceVersion that is not the present one is a conflict, a deleted
object goes with its last finalizer. Every call is written down with its (virtual) time.

`answers` replaces what an effect does: a function of the action that returns, raises one of `engine.errors`, or waits.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any

from temporalio import activity

from domain.accounts.actions.account_cleanup import Cleaned, CleanGlobal, CleanRegion
from domain.accounts.actions.account_closing import CloseAccount, Closing
from domain.accounts.actions.account_creation import (
    AwaitAccount,
    CreateAccount,
    CreatedAccount,
    CreateRequest,
    TagAccount,
)
from domain.accounts.actions.handover import Fulfil, Fulfilled, Release, ReleaseAccount
from domain.accounts.actions.iam_identities import (
    AdminSecret,
    DeleteIdentities,
    EnsureAdminUser,
    EnsureSupportRole,
    RotateKeys,
)
from domain.accounts.actions.opt_in_regions import AskToOptIn, EnableRegions, RegionStatuses
from domain.accounts.actions.region_initialization import EndLaunches, InitializeRegion, ListRegions, Regions
from domain.accounts.actions.service_quotas import QuotaStatuses, RaiseQuotas
from domain.accounts.actions.support_cases import OpenSupportCase, ResolveSupportCase, SupportCase
from domain.accounts.config import OperatorConfig, parse_config
from domain.accounts.constants import CLAIM_UID_ANNOTATION, FINALIZER, OPERATOR_NAMESPACE
from domain.accounts.observed import AccountWorld, ClaimWorld, RegionOutcome
from domain.accounts.passes import ObserveAccount, ObserveClaim
from domain.accounts.resources import Account, AccountClaim, AccountStatus
from domain.accounts.state_conditions import release_failed, released
from domain.decision import Action, Queue
from domain.identity import Key
from domain.model import Model
from domain.resource import CustomResource, condition_of, timestamp
from domain.writes import Delete, Patch, Written, patched
from engine import clock
from engine.errors import Conflict, Denied

AWS_ID = "123456789012"
CONFIG = parse_config(
    {
        "account-limit": "100",
        "root": "r-root",
        "base": "ou-base",
        "ami-owner": "309956199498",
        "support-jump-role": "arn:aws:iam::999999999999:role/jump",
        "accountpool": "pool: {default: true}",
    }
)
SEVENTEEN_REGIONS = tuple(f"region-{number:02}" for number in range(17))

Answer = Callable[[Any], Awaitable[Model | None]]


class World:
    """The outside of one test."""

    def __init__(self, name: str, born: datetime) -> None:
        self.account: Account | None = new_account(name, born)
        self.claim: AccountClaim | None = None
        self.key: Key = self.account.key
        self.config: OperatorConfig = CONFIG
        self.bound: Key | None = None  # the claim's key, also when it is gone
        self.hold = ""
        self.regions: tuple[str, ...] = ("eu-west-1", "us-east-1")
        self.answers: dict[str, Answer] = {}
        self.calls: list[tuple[str, datetime, Action]] = []
        self.runs: list[str] = []  # beside each call: the run of the workflow that asked
        self.cancelled: list[str] = []
        self.writes: list[str] = []

    # --- what tests look at ---

    def made(self, *names: str) -> int:
        """How many calls of these effects (attempts, retried ones too) there were."""
        return sum(name in names for name, _, _ in self.calls)

    def times(self, name: str) -> list[datetime]:
        return [moment for called, moment, _ in self.calls if called == name]

    @property
    def effects(self) -> Counter[str]:
        """Calls by name, observations apart."""
        return Counter(name for name, _, _ in self.calls if ".observe" not in name)

    @property
    def state(self) -> str:
        return self.account.status.state if self.account else "gone"

    @property
    def present(self) -> Account:
        assert self.account is not None, "the Account is gone"
        return self.account

    def condition(self, type_: str) -> dict[str, Any]:
        found = condition_of(self.present.status.conditions, type_)
        return found.model_dump(mode="json") if found else {}

    # --- what people do ---

    def edit(self, patch: dict[str, Any]) -> None:
        """A write of another client."""
        self.account = self._next(self.present, patch)

    def edit_claim(self, patch: dict[str, Any]) -> None:
        assert self.claim is not None
        self.claim = self._next(self.claim, patch)

    def delete(self) -> None:
        self.edit({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})

    def _next(self, of: Any, patch: dict[str, Any]) -> Any:
        return patched(of, patch, str(int(of.metadata.resource_version) + 1))

    # --- the activities ---

    def activities(self) -> dict[Queue, Sequence[Callable[..., Any]]]:
        """Every activity by queue, under the names that actions give."""
        kinds: list[tuple[type[Action], Callable[[Any], Awaitable[Any]]]] = [
            (ObserveAccount, self._observe_account),
            (ObserveClaim, self._observe_claim),
            (Patch, self._patch),
            (Delete, self._delete),
            (CreateAccount, _answering(CreateRequest(request_id="car-1"))),
            (AwaitAccount, _answering(CreatedAccount(created_account_id=AWS_ID))),
            (TagAccount, _answering(None)),
            (EnsureSupportRole, _answering(None)),
            (EnsureAdminUser, self._admin_user),
            (ListRegions, self._list_regions),
            (InitializeRegion, self._region),
            (AskToOptIn, _answering(None)),
            (EnableRegions, self._enable_regions),
            (RaiseQuotas, self._raise_quotas),
            (CloseAccount, _answering(Closing())),
            (OpenSupportCase, _answering(SupportCase(case_id="case-1"))),
            (ResolveSupportCase, _answering(None)),
            (DeleteIdentities, _answering(None)),
            (RotateKeys, _answering(None)),
            (EndLaunches, _answering(None)),
            (CleanRegion, _answering(Cleaned(report="clean"))),
            (CleanGlobal, _answering(Cleaned(report="clean"))),
            (Fulfil, self._fulfil),
            (ReleaseAccount, self._release),
        ]
        queues: dict[Queue, list[Callable[..., Any]]] = {queue: [] for queue in Queue}
        for kind, answer in kinds:
            queues[kind.queue].append(self._activity(kind, answer))
        return {queue: tuple(found) for queue, found in queues.items() if found}

    def _activity(self, kind: type[Action], usual: Callable[[Any], Awaitable[Any]]) -> Callable[..., Any]:
        name = kind.activity

        async def act(action: Any) -> Any:
            self.calls.append((name, clock.now(), action))
            self.runs.append(activity.info().workflow_run_id or "")
            try:
                return await self.answers.get(name, usual)(action)
            except asyncio.CancelledError:
                self.cancelled.append(name)
                raise

        act.__annotations__ = {"action": kind, "return": Any}
        return activity.defn(name=name)(act)

    async def _observe_account(self, look: ObserveAccount) -> AccountWorld:
        if self.account is None:
            return AccountWorld(key=look.key, exists=False)
        linked = self.claim if self.account.spec.claim_link and self.claim else None
        return AccountWorld(
            key=look.key,
            hold=self.hold or _paused(self.account),
            account=self.account,
            config=self.config,
            claim=linked,
            email_domain="redhat.com",
        )

    async def _observe_claim(self, look: ObserveClaim) -> ClaimWorld:
        if self.claim is None:
            return ClaimWorld(key=look.key, exists=False)
        hold = self.hold or _paused(self.claim)
        return ClaimWorld(key=look.key, hold=hold, claim=self.claim, account=self.account, config=self.config)

    async def _patch(self, write: Patch) -> Written:
        of: Any = self.account if write.key.kind == "Account" else self.claim
        if of is None:
            return Written(gone=True)
        if write.resource_version and write.resource_version != of.metadata.resource_version:
            raise Conflict(f"{write.key.path}: the object has been modified")
        self.writes.append(write.note)
        after = self._next(of, write.patch)
        gone = after.metadata.deleting and not after.metadata.finalizers
        self._put(write.key, None if gone else after)
        return Written(resource_version=after.metadata.resource_version)

    async def _delete(self, deletion: Delete) -> None:
        if self.account is not None:
            self.delete()
            if not self.present.metadata.finalizers:
                self.account = None

    def _put(self, key: Key, after: Any) -> None:
        if key.kind == "Account":
            self.account = after
        else:
            self.claim = after

    async def _admin_user(self, action: EnsureAdminUser) -> AdminSecret:
        return AdminSecret(admin_secret=action.secret)

    async def _list_regions(self, action: ListRegions) -> Regions:
        return Regions(regions=self.regions)

    async def _enable_regions(self, action: EnableRegions) -> RegionStatuses:
        return RegionStatuses(statuses=dict.fromkeys(action.seen, "ENABLED"))

    async def _raise_quotas(self, action: RaiseQuotas) -> QuotaStatuses:
        return QuotaStatuses(statuses=dict.fromkeys(action.quotas, "COMPLETED"))

    async def _region(self, action: InitializeRegion) -> RegionOutcome:
        return RegionOutcome(region=action.region, ok=True)

    async def _fulfil(self, action: Fulfil) -> Fulfilled:
        if self.present.spec.claim_link != action.claim.name:
            raise Denied("the Account does not name the claim", code="NotTheHolder")
        self.edit_claim({"spec": {"accountOU": "ou-1", "supportRoleARN": action.support_role_arn}})
        return Fulfilled(account_ou="ou-1", support_role_arn=action.support_role_arn)

    async def _release(self, action: ReleaseAccount) -> None:
        failed = action.how is Release.FAILED
        after: AccountStatus = (release_failed if failed else released)(self.present.status, clock.now())
        uid = {"metadata": {"annotations": {CLAIM_UID_ANNOTATION: action.claim.uid if failed else None}}}
        links = {"spec": {"claimLink": "", "claimLinkNamespace": ""}}
        self.edit({**uid, **links, "status": after.model_dump(mode="json", exclude_none=True)})


def _answering(answer: Model | None) -> Callable[[Any], Awaitable[Model | None]]:
    async def usual(action: Any) -> Model | None:
        return answer

    return usual


def _paused(of: CustomResource) -> str:
    return "paused" if of.metadata.annotations.get("perdure.dev/paused") == "true" else ""


def new_account(name: str, born: datetime) -> Account:
    """As its pool makes it."""
    meta = {
        "name": name,
        "namespace": OPERATOR_NAMESPACE,
        "uid": f"uid-{name}",
        "resourceVersion": "1",
        "creationTimestamp": timestamp(born),
        "labels": {"iamUserId": name.rsplit("-", 1)[-1]},
        "finalizers": [FINALIZER],
        "ownerReferences": [{"kind": "AccountPool", "name": "pool", "controller": True}],
    }
    return Account.model_validate({"metadata": meta, "spec": {"accountPool": "pool"}})


def held_claim(name: str, account: Account) -> AccountClaim:
    """A claim that the pool has just given this account."""
    meta = {
        "name": name,
        "namespace": "tenant",
        "uid": f"uid-{name}",
        "resourceVersion": "1",
        "finalizers": [FINALIZER],
    }
    spec = {
        "legalEntity": {"id": "entity-1", "name": "Entity"},
        "awsCredentialSecret": {"name": "aws", "namespace": "tenant"},
        "aws": {"regions": [{"name": "us-east-1"}]},
        "accountLink": account.metadata.name,
    }
    return AccountClaim.model_validate({"metadata": meta, "spec": spec})
