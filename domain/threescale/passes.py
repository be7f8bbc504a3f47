"""The pass of the area: one activity for an object of any kind, which observes, decides, acts and reports.

    object, referents, Secrets ─► work (`work_for_*`) ─► patch ─► effects ─► status ─► reads, or writes ─► idle
                                     ▲                                                  │
                                     └───── what is known of 3scale, refusals by slot ◄─┘

A pass hands its refusals to the next one, so that what 3scale refuses is tried again after growing pauses; a wake drops
them. Losing them costs a few calls. What is known of 3scale is not kept in the workflow: an object that is in step
remembers so by its digests (`digests.py`), which prove nothing while a change is half done.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar

from domain.decision import Action, Decision, Outcome, Queue
from domain.identity import Key
from domain.model import Model
from domain.passes import Pass, PassedWorld
from domain.threescale.work import Phase, Work

# A large product takes some hundred calls, each of which may take its whole time-out.
LONGEST_PASS = timedelta(minutes=10)
HEARTBEAT = timedelta(seconds=10)

# Phases in which `retry` has an effect at once. An object in step is compared with 3scale, which may have been changed
# by hand.
RETRYABLE = frozenset(each.value for each in (Phase.SYNCED, Phase.ORPHAN, Phase.INVALID, Phase.FAILED, Phase.DELETING))

_OUTCOMES = {
    Phase.SYNCED: Outcome.SETTLED,
    Phase.ORPHAN: Outcome.WAITING,
    Phase.INVALID: Outcome.WAITING,
    Phase.FAILED: Outcome.WAITING,
    Phase.GONE: Outcome.GONE,
}


class Memory(Model):
    """What a pass leaves for the next one, beside its refusals; of the sweep, when it is to come.

    `sweeps` counts those that were made: whose turn it is to be compared in full follows from it.

    `retried` is the person's retry for which refusals have been dropped, as long as it has not come to anything.
    `begun` says that something was written to 3scale, and that the object was not in step since.
    `compare_at` is when the object is compared with 3scale after a change that was written from memory.
    """

    retried: str = ""
    begun: bool = False
    next_sweep: datetime | None = None
    sweeps: int = 0
    compare_at: datetime | None = None


class ThreescaleWorld(PassedWorld):
    """What a pass came to."""

    known: Memory = Memory()


class PassObject(Pass):
    """Bring what an object has in 3scale to what its spec says."""

    activity: ClassVar[str] = "threescale.pass_object"
    queue: ClassVar[str] = Queue.THREESCALE
    result: ClassVar[type[Model] | None] = ThreescaleWorld
    start_to_close: ClassVar[timedelta] = LONGEST_PASS
    heartbeat: ClassVar[timedelta] = HEARTBEAT

    memory: Memory = Memory()

    @property
    def summary(self) -> str:
        """For the timeline."""
        return "reconcile the object with 3scale"


class SweepTenants(Action):
    """Read every tenant's lists once and what is below some objects, and wake those that differ."""

    activity: ClassVar[str] = "threescale.sweep_tenants"
    queue: ClassVar[str] = Queue.THREESCALE
    result: ClassVar[type[Model] | None] = ThreescaleWorld
    start_to_close: ClassVar[timedelta] = LONGEST_PASS
    heartbeat: ClassVar[timedelta] = HEARTBEAT

    key: Key
    memory: Memory = Memory()
    dry_run: bool = False

    @property
    def summary(self) -> str:
        """For the timeline."""
        return "compare all tenants with their objects, and wake the objects that differ"


GONE = Decision(phase=Phase.GONE.value, outcome=Outcome.GONE, why="it does not exist any more")


def decision_of(work: Work, owner: str = "", *, would_act: bool = False) -> Decision:
    """How the object stands, for people; with `would_act` what the work would do is listed."""
    outcome = _OUTCOMES.get(work.phase, Outcome.WAITING if work.idle else Outcome.WORKING)
    return Decision(
        phase=work.phase.value,
        outcome=outcome,
        why=work.why,
        waits_for=work.waits_for,
        deadline=work.deadline,
        at_deadline="observe again" if work.deadline else "",
        owner=owner,
        planned=planned(work) if would_act else (),
    )


def planned(work: Work) -> tuple[str, ...]:
    """What the work would do, a line each."""
    lines = ["write the object"] if work.patch else []
    lines += [each.summary for each in work.effects]
    lines += [each.summary for each in work.reads] + [each.summary for each in work.writes]
    lines += ["write the status"] if work.status else []
    lines += ["delete the object"] if work.delete else []
    return (*lines, *(["remove the finalizer"] if work.drop_finalizer else []))
