"""What a lifecycle observed of one custom resource, and its writes: common parts of the area's lifecycles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import ClassVar, Self

from domain import object_world
from domain.decision import Action, Decision, Outcome, Queue
from domain.model import Model
from domain.notices import Notice, warning
from domain.refusal import ErrorType
from domain.writes import JsonPatch, Patch, Write

OBSERVE_AGAIN = "observe again"


class ObjectMemory(Model):
    """`version` is the resourceVersion of the lifecycle's last write; earlier versions in the cache are not used.
    `balancer_generation` is used for Services only: their LoadBalancer's generation when the last pass ended, 0 without
    a LoadBalancer.
    """

    version: str = ""
    balancer_generation: int = 0


class ObjectWorld(object_world.ObjectWorld):
    left_to: str = ""  # why the replaced controller still owns the kind; empty if it does not
    again: datetime | None = None  # when to observe again even if nothing changes; None if not needed
    known: ObjectMemory = ObjectMemory()

    def written(self, patch: dict[str, object], resource_version: str, *, gone: bool = False) -> Self:
        world = super().written(patch, resource_version, gone=gone)
        return world if gone else world.learn(version=resource_version)


class KubeAction(Action):
    queue: ClassVar[str] = Queue.LOAD_BALANCERS
    start_to_close: ClassVar[timedelta] = timedelta(minutes=2)
    heartbeat: ClassVar[timedelta] = timedelta(seconds=10)


def writes(world: ObjectWorld, patch: JsonPatch, *, subresource: str = "") -> tuple[Patch, ...]:
    if not patch:
        return ()
    metadata = patch.get("metadata")
    what = subresource or (", ".join(metadata) if isinstance(metadata, dict) else "spec")
    return (world.write(patch, f"write its {what}", subresource),)


def adopt(world: ObjectWorld) -> JsonPatch:
    finalizers, ours = world.resource.metadata.finalizers, world.resource.kind_of.finalizer
    return {} if ours in finalizers else {"metadata": {"finalizers": [*finalizers, ours]}}


class Moment(Model):
    at: datetime
    then: str = OBSERVE_AGAIN
    patience: timedelta = timedelta(0)


def refused_write(world: ObjectWorld, actions: Iterable[Action]) -> str:
    written = (
        world.refused(each.slot, ErrorType.DENIED, ErrorType.INVALID) for each in actions if isinstance(each, Write)
    )
    return next((each.message for each in written if each and not each.ours), "")


def decided(
    world: ObjectWorld,
    phase: str,
    why: str,
    actions: Sequence[Action] = (),
    moments: Iterable[Moment] = (),
    *,
    settled: bool = False,
    working: bool = False,
    waits_for: str = "",
    notices: tuple[Notice, ...] = (),
) -> Decision:
    refused = refused_write(world, actions)
    if refused and refused != why:
        phase = phase if phase == "Deleting" else "Waiting"
        why, waits_for, settled, working = refused, refused, False, False
        notices = (*notices, warning("Failed", refused))
    soonest = min(moments, key=lambda each: each.at + each.patience, default=None)
    deadline = {"deadline": soonest.at, "at_deadline": soonest.then, "patience": soonest.patience} if soonest else {}
    return Decision(
        phase=str(phase),
        outcome=Outcome.SETTLED if settled else Outcome.WORKING if working else Outcome.WAITING,
        why=why,
        actions=tuple(actions),
        waits_for=() if settled or working else (waits_for or why,),
        owner=world.resource.owner,
        notices=notices,
        **deadline,
    )


def gone(why: str = "it does not exist any more") -> Decision:
    return Decision(phase="Deleted", outcome=Outcome.GONE, why=why)


def held_by(world: ObjectWorld) -> Decision:
    again = [Moment(at=world.again)] if world.again else []
    return decided(world, "Held", world.left_to, moments=again, waits_for="yawol giving up its leader lease")
