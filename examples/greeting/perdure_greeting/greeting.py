"""Decides what a Greeting needs, by a pure function of observation and time. No I/O, no Temporal, no clock."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Self

from domain.control_annotations import RETRIED, retry_wanted
from domain.decision import Action, Decision, Outcome, World
from domain.identity import Key
from domain.model import Model
from domain.writes import JsonPatch, Patch, patched
from perdure_greeting import AREA
from perdure_greeting.resources import Greeting


class GreetingWorld(World):
    """A Greeting, the text of its ConfigMap, and whether another owner's ConfigMap has its name (`taken`)."""

    greeting: Greeting = Greeting()
    shown: str | None = None
    taken: bool = False

    def written(self, patch: JsonPatch, resource_version: str, *, gone: bool = False) -> Self:
        """This world after a write of the Greeting."""
        return self.model_copy(
            update={"exists": False} if gone else {"greeting": patched(self.greeting, patch, resource_version)}
        )


class ObserveGreeting(Action):
    """Read the Greeting and its ConfigMap."""

    activity: ClassVar[str] = "greetings.observe"
    queue: ClassVar[str] = AREA
    result: ClassVar[type[Model] | None] = GreetingWorld

    key: Key


class ShowText(Action):
    """Create the ConfigMap, or change it; without a text, delete it. Another owner's ConfigMap is left alone."""

    activity: ClassVar[str] = "greetings.show"
    queue: ClassVar[str] = AREA
    observed_after: ClassVar[bool] = True

    key: Key
    text: str | None

    @property
    def summary(self) -> str:
        """For Temporal's timeline and for `perdure plan`."""
        verb = "delete" if self.text is None else "write"
        return f"{verb} ConfigMap {self.key.namespace}/{self.key.name}"


def decide(world: GreetingWorld, now: datetime) -> Decision:
    """New ─► Shown ─until─► Over; Waiting without a text, or while another owner's ConfigMap has the name."""
    spec, meta = world.greeting.spec, world.greeting.metadata
    if not world.exists or meta.deleting:
        return Decision(phase="Gone", outcome=Outcome.GONE, why="the Greeting is deleted; its ConfigMap goes with it")
    over = spec.until is not None and now >= spec.until
    wanted = None if over else spec.text or world.shown
    phase, why, waits_for = "Shown", "its text is shown", ""
    if world.taken:
        phase, why, waits_for = "Waiting", "its ConfigMap's name is taken", "the ConfigMap of its name"
    elif over:
        phase, why = "Over", "its time is over"
    elif not spec.text:
        phase, why, waits_for = "Waiting", "it has no text", "spec.text"
    actions: list[Action] = []
    if token := retry_wanted(meta):
        honoured: JsonPatch = {"metadata": {"annotations": {RETRIED: token}}}
        actions.append(_write(world, honoured, note="retry honoured"))
    elif not world.taken and world.shown != wanted:
        actions.append(ShowText(key=world.key, text=wanted))
    elif (world.greeting.status.phase, world.greeting.status.message) != (phase, why):
        shown: JsonPatch = {"status": {"phase": phase, "message": why}}
        actions.append(_write(world, shown, subresource="status", note=f"status {phase}"))
    return Decision(
        phase=phase,
        outcome=Outcome.WAITING if waits_for else Outcome.WORKING if actions else Outcome.SETTLED,
        why=why,
        actions=tuple(actions),
        waits_for=(waits_for,) if waits_for else (),
        deadline=None if over else spec.until,
        at_deadline="its ConfigMap is removed" if spec.until else "",
    )


def _write(world: GreetingWorld, patch: JsonPatch, *, note: str, subresource: str = "") -> Patch:
    version = world.greeting.metadata.resource_version
    return Patch(key=world.key, patch=patch, subresource=subresource, resource_version=version, note=note)
