"""A world around one custom resource, and the writes of it: what the lifecycles of the area have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Self

from domain import object_world
from domain.decision import Action, Decision, Outcome
from domain.model import Model
from domain.notices import Notice
from domain.writes import JsonPatch, Patch

OBSERVE_AGAIN = "observe again"


class ObjectKnown(Model):
    """What a lifecycle remembers; losing it costs a request.

    Attributes:
        version: the resourceVersion that it left the object with: an older one is not read again.
    """

    version: str = ""


class ObjectWorld(object_world.ObjectWorld):
    """What a decision about one object sees.

    Attributes:
        left_to: why the kind is left to the replaced controller.
        again: when observing again can differ although nothing is written.
    """

    left_to: str = ""
    again: datetime | None = None
    known: ObjectKnown = ObjectKnown()

    def written(self, patch: dict[str, object], resource_version: str, *, gone: bool = False) -> Self:
        """This world after a write of the object."""
        world = super().written(patch, resource_version, gone=gone)
        return world if gone else world.learn(version=resource_version)


def writes(world: ObjectWorld, patch: JsonPatch, *, subresource: str = "") -> tuple[Patch, ...]:
    """The write of a patch, none if it is empty."""
    if not patch:
        return ()
    metadata = patch.get("metadata")
    what = subresource or (", ".join(metadata) if isinstance(metadata, dict) else "spec")
    return (world.write(patch, f"write its {what}", subresource),)


def adopt(world: ObjectWorld) -> JsonPatch:
    """The merge patch that adds our finalizer, empty if it is there."""
    finalizers, ours = world.resource.metadata.finalizers, world.resource.kind_of.finalizer
    return {} if ours in finalizers else {"metadata": {"finalizers": [*finalizers, ours]}}


class Moment(Model):
    """When to act again, and what happens then; after some patience where another lifecycle does it."""

    at: datetime
    then: str = OBSERVE_AGAIN
    patience: timedelta = timedelta(0)


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
    """What is to be done, and how the object stands: settled, working, or waiting for something."""
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
    """Nothing is left to look after."""
    return Decision(phase="Deleted", outcome=Outcome.GONE, why=why)


def held_by(world: ObjectWorld) -> Decision:
    """The replaced controller still leads: nothing is looked at until it does not."""
    return Decision(
        phase="Held",
        outcome=Outcome.WAITING,
        why=world.left_to,
        waits_for=("yawol giving up its leader lease",),
        deadline=world.again,
        at_deadline=OBSERVE_AGAIN,
        owner=world.resource.owner,
    )
