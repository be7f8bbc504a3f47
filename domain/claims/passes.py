"""The passes of the area: each is one activity that reads, evaluates, writes, and hands back what it came to."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar

from domain.claims.lifespan import Wish
from domain.claims.standing import BINDING
from domain.claims.write_backoff import Struggle
from domain.decision import Action, Decision, Outcome, Queue, World
from domain.identity import Key
from domain.model import Model
from domain.passes import Pass, PassedWorld

# A pass makes some tens of requests at most; a killed worker is noticed by its heartbeats, long before.
LONGEST_PASS = timedelta(minutes=2)
# Claims named in one message to the binder or in one batch's input: 50 KB.
MOST_ASKED = 200


class Cadence(Model):
    """After how long an object is looked at again without being woken.

    Attributes:
        by_clock: where templates depend on the clock.
        refresh: for what no event tells of.
        faulty: where something is at fault.
    """

    by_clock: timedelta = timedelta(0)
    refresh: timedelta = timedelta(0)
    faulty: timedelta = timedelta(0)

    def next(self, now: datetime, *, by_clock: bool, faulty: bool) -> datetime:
        """When to look again."""
        interval = self.by_clock if by_clock else self.refresh
        return now + (min(interval, self.faulty) if faulty else interval)


class ObjectKnown(Model):
    """What a claim's or handle's workflow carries: the end asked for that was settled last, and whether somebody takes
    back what it changes. Losing it costs a look.
    """

    honoured: Wish | None = None
    struggle: Struggle = Struggle()


class ObjectWorld(PassedWorld):
    """What a pass over a claim or handle came to; `at` is when it began.

    The binder and the object's own workflow both look at a claim while it gets its handle, and what they say may cross:
    the newer counts. A claim that has asked the binder takes any answer, since it knows nothing itself.
    """

    known: ObjectKnown = ObjectKnown()
    at: datetime | None = None

    def recall(self, before: World) -> ObjectWorld:
        """The pass knew what was known before, unless something newer was said meanwhile."""
        if self.exists and isinstance(before, ObjectWorld) and self.at and before.at and before.at > self.at:
            return before
        return self

    def heard(self, told: ObjectWorld) -> ObjectWorld:
        """The world after another workflow has told how the object stands."""
        stale = self.at is not None and told.at is not None and told.at < self.at
        return self if stale and self.decision.phase != BINDING else told.recall(self.model_copy(update={"at": None}))


class PoolKnown(Model):
    """What a pool's workflow carries: when unhealthy handles were given up last. Losing it costs a handle."""

    gave_up: datetime | None = None


class PoolWorld(PassedWorld):
    """What a pass over a pool came to."""

    known: PoolKnown = PoolKnown()


class BinderKnown(Model):
    """What the binder's workflow carries: the claims that have asked and that no batch has answered yet."""

    asked: tuple[Key, ...] = ()


class BinderWorld(PassedWorld):
    """What a batch came to; `more` when it has stopped before everything was served."""

    known: BinderKnown = BinderKnown()
    more: bool = False

    def recall(self, before: World) -> BinderWorld:
        """Who has asked is heard by the workflow, also while a batch runs: what it knows counts."""
        return self.model_copy(update={"known": before.known})


class _Pass(Pass):
    """A pass over one object; one that was woken reads everything from the API server."""

    queue: ClassVar[str] = Queue.CLAIMS
    start_to_close: ClassVar[timedelta] = LONGEST_PASS


class _ObjectPass(_Pass):
    result: ClassVar[type[Model] | None] = ObjectWorld

    memory: ObjectKnown = ObjectKnown()


class PassClaim(_ObjectPass):
    """Bring a claim, its handle and their resources to what they have to be; ask the binder while there is none."""

    activity: ClassVar[str] = "claims.pass_claim"
    title: ClassVar[str] = "reconcile the claim, its handle and their resources"


class PassHandle(_ObjectPass):
    """Bring a handle that no claim looks after and its resources to what they have to be."""

    activity: ClassVar[str] = "claims.pass_handle"
    title: ClassVar[str] = "reconcile the handle and its resources"


class PassPool(_Pass):
    """Count the pool's handles, make those that lack, give up those that are unhealthy, write the status."""

    activity: ClassVar[str] = "claims.pass_pool"
    title: ClassVar[str] = "count the pool's handles, create missing and delete surplus ones, write the status"
    result: ClassVar[type[Model] | None] = PoolWorld

    memory: PoolKnown = PoolKnown()


class Asked(Model):
    """Claims without a handle that want to be served, at most `MOST_ASKED`."""

    claims: tuple[Key, ...]


class Serve(Action):
    """Serve the claims that have no handle, as they come, for some seconds, and end those whose time has come.

    `asked` are to be looked at in any case, at most `MOST_ASKED`.
    """

    activity: ClassVar[str] = "claims.serve"
    title: ClassVar[str] = "bind or create handles for claims without one, delete claims that have expired"
    queue: ClassVar[str] = Queue.CLAIMS
    result: ClassVar[type[Model] | None] = BinderWorld
    start_to_close: ClassVar[timedelta] = LONGEST_PASS

    key: Key
    asked: tuple[Key, ...] = ()
    dry_run: bool = False


def idle(
    why: str,
    *,
    phase: str = "Idle",
    waits_for: tuple[str, ...] = (),
    deadline: datetime | None = None,
    at_deadline: str = "",
) -> Decision:
    """Nothing to do until a wake, or until then."""
    return Decision(
        phase=phase,
        outcome=Outcome.SETTLED,
        why=why,
        waits_for=waits_for,
        deadline=deadline,
        at_deadline=at_deadline,
    )
