"""The area's observing actions, and the results of passes that are one activity.

`seen` has, by kind, the newest resourceVersion of the objects that woke the lifecycle. Pools and the organization read
many objects, so their whole pass is one activity. With `dry_run` a pass changes nothing.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar, Self

from domain.accounts.ccs_access import AccessRole, CcsAccess, ConfigState, comparison_due, with_problem
from domain.accounts.constants import CCS_ACCESS_KEY, CCS_ACCESS_ROLE
from domain.accounts.observed import AccountWorld, ClaimWorld
from domain.accounts.organization import OrganizationMemory
from domain.accounts.pool import FailedAccounts, Room
from domain.decision import Action, Decision, Queue
from domain.identity import Key
from domain.model import Model
from domain.passes import Observation, PassedWorld, passed


class Look(Action):
    start_to_close: ClassVar[timedelta] = timedelta(seconds=20)

    key: Key
    seen: dict[str, str] = {}


class ObserveAccount(Look):
    activity: ClassVar[str] = "accounts.observe_account"
    result: ClassVar[type[Model] | None] = AccountWorld
    title: ClassVar[str] = "observe the Account, its claim and the ConfigMap"


class ObserveClaim(Look):
    """With `dry_run`, the action also reads every Account, to find out why the claim waits for one."""

    activity: ClassVar[str] = "accounts.observe_claim"
    result: ClassVar[type[Model] | None] = ClaimWorld
    title: ClassVar[str] = "observe the claim, its account and the ConfigMap"

    dry_run: bool = False


class PoolMemory(Model):
    unborn: tuple[str, ...] = ()  # members without an AWS account in the last pass
    died: tuple[str, ...] = ()  # members that have been reported as failed since the last pass
    deaths: FailedAccounts = FailedAccounts()
    refused: tuple[str, ...] = ()  # uids of waiting claims whose last binding was refused, longest ago first
    bonds_seen: bool = False  # a pass has read all claims and completed unfinished bindings


class PoolWorld(PassedWorld):
    known: PoolMemory = PoolMemory()
    heard: tuple[str, ...] = ()  # failed members that the pass has handled

    def recall(self, before: Self) -> Self:
        died = tuple(name for name in before.known.died if name not in self.heard)
        known = self.known.model_copy(update={"died": died})
        return self.model_copy(update={"refusals": before.refusals, "known": known})


class PassPool(Observation):
    activity: ClassVar[str] = "accounts.pass_pool"
    result: ClassVar[type[Model] | None] = PoolWorld
    start_to_close: ClassVar[timedelta] = timedelta(minutes=2)
    heartbeat: ClassVar[timedelta] = timedelta(seconds=10)

    memory: PoolMemory
    seen: dict[str, str] = {}

    @property
    def summary(self) -> str:
        return "plan the pool" if self.dry_run else "count its accounts, create missing ones, bind claims"


class OrganizationWorld(PassedWorld):
    known: OrganizationMemory = OrganizationMemory()

    def recall(self, before: Self) -> Self:
        """The pass's result, but with the lifecycle's `units` and `ccs_access` (in `before`), because updates and
        actions may have changed these during the pass.
        """
        was = before.known
        known = self.known.model_copy(update={"units": was.units, "ccs_access": was.ccs_access})
        return self.model_copy(update={"refusals": before.refusals, "known": known})


class PassOrganization(Observation):
    activity: ClassVar[str] = "accounts.pass_organization"
    title: ClassVar[str] = "count the organization's accounts, grant permits, check support cases"
    queue: ClassVar[str] = Queue.AWS
    result: ClassVar[type[Model] | None] = OrganizationWorld
    start_to_close: ClassVar[timedelta] = timedelta(minutes=5)
    heartbeat: ClassVar[timedelta] = timedelta(seconds=30)

    memory: OrganizationMemory
    seen: dict[str, str] = {}
    woken: bool = True  # False if only the deadline has passed


class TellPools(Action):
    """Wake the pools. This happens after the pass, because only then does the pools' query return the new `room`."""

    activity: ClassVar[str] = "accounts.tell_pools"
    title: ClassVar[str] = "send the pools the number of accounts that may still be created"

    room: Room | None

    def fold(self, world: OrganizationWorld, result: Model | None) -> OrganizationWorld:  # type: ignore[override]
        return world.learn(room_unreported=False, news=False) if world.known.room == self.room else world


class RecordAccessRole(Action):
    """Write the ARN of the payer's role into the ConfigMap, if the key differs.

    A missing role or a refused request is a result, not an error: the action is not repeated before the ConfigMap
    changes.
    """

    activity: ClassVar[str] = "accounts.record_access_role"
    title: ClassVar[str] = f"compare the ConfigMap's key {CCS_ACCESS_KEY} with the payer's role {CCS_ACCESS_ROLE}"
    queue: ClassVar[str] = Queue.AWS
    result: ClassVar[type[Model] | None] = AccessRole

    config: ConfigState

    def fold(self, world: OrganizationWorld, result: Model | None) -> OrganizationWorld:  # type: ignore[override]
        assert isinstance(result, AccessRole)  # noqa: S101 - the activity's type
        state = self.config.model_copy(update={"arn": result.arn}) if result.arn else self.config
        # A pass may have observed a newer ConfigMap meanwhile, which is compared next.
        observed = state if world.known.config == self.config else world.known.config
        return world.learn(config=observed, ccs_access=CcsAccess(compared=state, problem=result.problem))


def decide(world: OrganizationWorld, now: datetime) -> Decision:
    known, decision, actions = world.known, passed(world, now), list[Action]()
    if known.news:
        actions.append(TellPools(room=known.room))
    if known.config and comparison_due(known.config, known.ccs_access):
        actions.append(RecordAccessRole(config=known.config))
    why = with_problem(decision.why, known.ccs_access)
    return decision.model_copy(update={"actions": tuple(actions), "why": why})


class UnitRefused(Model):
    message: str
    code: str = ""


class Units(Model):
    """OU ids by legal entity id. A refused OU does not affect other OUs."""

    ids: dict[str, str]
    refused: dict[str, UnitRefused] = {}


class EnsureUnits(Action):
    activity: ClassVar[str] = "accounts.ensure_units"
    queue: ClassVar[str] = Queue.AWS_ORGANIZATION
    result: ClassVar[type[Model] | None] = Units
    start_to_close: ClassVar[timedelta] = timedelta(minutes=2)

    base: str
    names: tuple[str, ...]

    @property
    def summary(self) -> str:
        return f"create the OUs of {', '.join(self.names)}"


class UnitRequest(Model):
    base: str
    legal_entity: str


class UnitsRequest(Model):
    """`gone` is an OU that AWS has reported as missing."""

    base: str
    legal_entities: tuple[str, ...]
    gone: str = ""


class CaseResolved(Model):
    case_id: str


class OptInPermit(Model):
    until: datetime
