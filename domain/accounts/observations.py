"""How the lifecycles of the area look at the world: the actions that observe, and the worlds of one-activity passes.

`seen` are the versions, by kind, of what has woken the lifecycle.

Accounts and claims observe, and decide in their workflow. Pools and the organization see many objects at once, so their
whole pass is one activity that observes, decides and acts; it returns what the pass came to. With `dry_run` it does not
act.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar

from domain.accounts.organization import OrganizationKnown
from domain.accounts.pool import Deaths, Room
from domain.accounts.worlds import AccountWorld, ClaimWorld
from domain.decision import Action, Decision, Queue, World
from domain.identity import Key
from domain.model import Model
from domain.passes import PassedWorld, passed


class Look(Action):
    """One observation; its answer is the world that is decided upon."""

    start_to_close: ClassVar[timedelta] = timedelta(seconds=20)
    looked_at: ClassVar[str]

    key: Key
    seen: dict[str, str] = {}

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"observe {self.looked_at}"


class ObserveAccount(Look):
    """Read the Account, the ConfigMap, and the claim that holds it."""

    activity: ClassVar[str] = "accounts.observe_account"
    result: ClassVar[type[Model] | None] = AccountWorld
    looked_at: ClassVar[str] = "the Account, its claim and the ConfigMap"


class ObserveClaim(Look):
    """Read the AccountClaim, the ConfigMap, and the Account it is linked to.

    A plan also finds out why a waiting claim gets none, which reads every Account: not in the moment of binding.
    """

    activity: ClassVar[str] = "accounts.observe_claim"
    result: ClassVar[type[Model] | None] = ClaimWorld
    looked_at: ClassVar[str] = "the claim, its account and the ConfigMap"

    dry_run: bool = False


class PoolKnown(Model):
    """What an AccountPool's workflow carries: the members without an AWS account seen last, and those that died so.

    `died` are the names that it has been told of and that no pass has seen yet. `bonds_seen` is whether a pass has
    completed whatever binding was left half made: not again at each pass, which would read all claims for it.
    """

    unborn: tuple[str, ...] = ()
    died: tuple[str, ...] = ()
    deaths: Deaths = Deaths()
    bonds_seen: bool = False


class PoolWorld(PassedWorld):
    """What a pass over an AccountPool came to."""

    known: PoolKnown = PoolKnown()
    heard: tuple[str, ...] = ()  # of those that had died when the pass began

    def recall(self, before: World) -> PoolWorld:
        """The pass has kept what is known; who died meanwhile is kept as well."""
        told = before.known.died if isinstance(before.known, PoolKnown) else ()
        died = tuple(name for name in told if name not in self.heard)
        known = self.known.model_copy(update={"died": died})
        return self.model_copy(update={"refusals": before.refusals, "known": known})


class PassPool(Action):
    """Count, fill, bind, and write the pool's status."""

    activity: ClassVar[str] = "accounts.pass_pool"
    result: ClassVar[type[Model] | None] = PoolWorld
    start_to_close: ClassVar[timedelta] = timedelta(minutes=2)
    heartbeat: ClassVar[timedelta] = timedelta(seconds=10)

    key: Key
    memory: PoolKnown
    seen: dict[str, str] = {}
    dry_run: bool = False

    @property
    def summary(self) -> str:
        """For the timeline."""
        return "plan the pool" if self.dry_run else "count its accounts, create missing ones, bind claims"


class OrganizationWorld(PassedWorld):
    """What a pass over the organization came to."""

    known: OrganizationKnown = OrganizationKnown()

    def recall(self, before: World) -> OrganizationWorld:
        """The pass has kept what is known; the units are as updates have learnt and forgotten them meanwhile."""
        units = before.known.units if isinstance(before.known, OrganizationKnown) else {}
        known = self.known.model_copy(update={"units": units})
        return self.model_copy(update={"refusals": before.refusals, "known": known})


class PassOrganization(Action):
    """Count the organization, give permits, look at support cases."""

    activity: ClassVar[str] = "accounts.pass_organization"
    title: ClassVar[str] = "count the organization's accounts, grant permits, check support cases"
    queue: ClassVar[str] = Queue.AWS_ORGANIZATION
    result: ClassVar[type[Model] | None] = OrganizationWorld
    start_to_close: ClassVar[timedelta] = timedelta(minutes=5)
    heartbeat: ClassVar[timedelta] = timedelta(seconds=30)

    key: Key
    memory: OrganizationKnown
    seen: dict[str, str] = {}
    woken: bool = True  # False: only a moment has come, nothing is known to have changed
    dry_run: bool = False


class TellPools(Action):
    """Wake the pools now that the organization's workflow can tell them its room.

    An action of its own, because a pool woken by the pass would ask before that has ended, and hear the room of before.
    """

    activity: ClassVar[str] = "accounts.tell_pools"
    title: ClassVar[str] = "send the pools the number of accounts that may still be created"

    room: Room | None

    def fold(self, world: OrganizationWorld, result: Model | None) -> OrganizationWorld:  # type: ignore[override]
        """They know; unless a pass has measured another room meanwhile, of which they are told next."""
        return world.learn(untold=False, news=False) if world.known.room == self.room else world


def decide(world: OrganizationWorld, now: datetime) -> Decision:
    """What the pass has decided; and the news for the pools, when it is folded."""
    actions = (TellPools(room=world.known.room),) if world.known.news else ()
    return passed(world, now).model_copy(update={"actions": actions})


class UnitRefused(Model):
    """Why a legal entity gets no OU: AWS's words and code."""

    message: str
    code: str = ""


class Units(Model):
    """OU ids by legal entity id, and those that AWS refuses to make: one of these never holds up the others."""

    ids: dict[str, str]
    refused: dict[str, UnitRefused] = {}


class EnsureUnits(Action):
    """The OUs of these legal entities under `base`, found or created."""

    activity: ClassVar[str] = "accounts.ensure_units"
    queue: ClassVar[str] = Queue.AWS_ORGANIZATION
    result: ClassVar[type[Model] | None] = Units
    start_to_close: ClassVar[timedelta] = timedelta(minutes=2)

    base: str
    names: tuple[str, ...]

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"create the OUs of {', '.join(self.names)}"


class UnitRequest(Model):
    """One legal entity's OU."""

    base: str
    legal_entity: str


class UnitsRequest(Model):
    """The question of claims for their OUs; `gone` is one that AWS has just said not to exist (any more)."""

    base: str
    legal_entities: tuple[str, ...]
    gone: str = ""


class CaseResolved(Model):
    """What the organization tells an Account whose support case is resolved."""

    case_id: str


class OptInPermit(Model):
    """What the organization tells an Account whose turn it is to opt in to regions: it may begin until then."""

    until: datetime
