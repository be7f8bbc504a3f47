"""Passes of the claims area: each is one activity that reads, evaluates, writes, and returns its result."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import ClassVar, Self

from domain.carried_memory import newest
from domain.claims.lifespan_end import RequestedEnd
from domain.claims.phases import BINDING
from domain.claims.write_backoff import RevertedWrites
from domain.decision import Queue, World
from domain.identity import Key
from domain.model import Model
from domain.passes import Observation, Pass, PassedWorld

# A pass makes tens of requests at most; missed heartbeats reveal a dead worker much earlier.
LONGEST_PASS = timedelta(minutes=2)
# The most claims in one signal to the binder or in one batch's input: 50 KB.
MOST_ASKED = 200


class _Memory(Model):
    """`wrote` has, by kind, the resourceVersion that the pass wrote. The next pass, maybe on another worker, waits
    until the cache has reached it.
    """

    wrote: dict[str, str] = {}

    def having_written(self, versions: Mapping[str, str]) -> Self:
        return self.model_copy(update={"wrote": dict(versions)})


class ObjectMemory(_Memory):
    """If this memory is lost, one more pass is made."""

    honoured: RequestedEnd | None = None  # the requested end that was applied last
    struggle: RevertedWrites = RevertedWrites()  # how often in a row the same change was made: others may revert it


class ObjectWorld(PassedWorld):
    """A claim or handle after a pass that began at `at`.

    During binding, the binder and the claim's own workflow both report results. The newer result counts, with one
    exception: a workflow that waits for the binder's answer adopts even an older answer.
    """

    known: ObjectMemory = ObjectMemory()
    at: datetime | None = None

    def recall(self, before: World) -> ObjectWorld:
        """This result, or `before` if the object exists and the pass of `before` began later."""
        if self.exists and isinstance(before, ObjectWorld) and self.at and before.at and before.at > self.at:
            return before
        return self

    def updated_by(self, reported: ObjectWorld) -> ObjectWorld:
        stale = self.at is not None and reported.at is not None and reported.at < self.at
        return (
            self if stale and self.decision.phase != BINDING else reported.recall(self.model_copy(update={"at": None}))
        )


class PoolMemory(_Memory):
    """When unhealthy handles were last deleted. If this is lost, replacements may be deleted too early."""

    gave_up: datetime | None = None


class PoolWorld(PassedWorld):
    known: PoolMemory = PoolMemory()


class BinderMemory(Model):
    """Claims that have asked for a handle and were not answered yet."""

    asked: tuple[Key, ...] = ()


class BinderWorld(PassedWorld):
    """The result of a batch. `more` is true if the batch stopped before all claims were handled."""

    known: BinderMemory = BinderMemory()
    more: bool = False

    def recall(self, before: World) -> BinderWorld:
        """This result with the memory of `before`, which includes the requests that arrived during the batch."""
        return self.model_copy(update={"known": before.known})


class _Pass(Pass):
    queue: ClassVar[str] = Queue.CLAIMS
    start_to_close: ClassVar[timedelta] = LONGEST_PASS

    memory: _Memory = _Memory()

    @property
    def versions(self) -> dict[str, str]:
        return newest(self.seen, self.memory.wrote)


class _ObjectPass(_Pass):
    result: ClassVar[type[Model] | None] = ObjectWorld

    memory: ObjectMemory = ObjectMemory()


class PassClaim(_ObjectPass):
    activity: ClassVar[str] = "claims.pass_claim"
    title: ClassVar[str] = "reconcile the claim, its handle and their resources"


class PassHandle(_ObjectPass):
    activity: ClassVar[str] = "claims.pass_handle"
    title: ClassVar[str] = "reconcile the handle and its resources"


class PassPool(_Pass):
    activity: ClassVar[str] = "claims.pass_pool"
    title: ClassVar[str] = "count the pool's handles, create missing and delete unhealthy ones, write the status"
    result: ClassVar[type[Model] | None] = PoolWorld

    memory: PoolMemory = PoolMemory()


class Asked(Model):
    claims: tuple[Key, ...]


class Serve(Observation):
    """One batch of the binder. Claims in `asked` (at most `MOST_ASKED`) get their answer even if it is unchanged."""

    activity: ClassVar[str] = "claims.serve"
    title: ClassVar[str] = "bind or create handles for claims without one, delete claims that have expired"
    queue: ClassVar[str] = Queue.CLAIMS
    result: ClassVar[type[Model] | None] = BinderWorld
    start_to_close: ClassVar[timedelta] = LONGEST_PASS

    asked: tuple[Key, ...] = ()
    seen: dict[str, str] = {}
