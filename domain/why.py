"""What `perdure why` and `perdure plan` show of an object: its phase, what it waits for, and what blocks it."""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar

from domain.decision import Decision, Outcome, World
from domain.identity import Key
from domain.model import Model
from domain.runner import State, blocked_by

W = TypeVar("W", bound=World)


class Blocker(Model):
    action: str
    type: str
    message: str
    attempts: int
    retry_at: datetime


class Why(Model):
    """The answer of `why` and `plan`. `running` and `planned` are lines for people; `hold` is as in `World`."""

    object: str
    phase: str
    outcome: str
    why: str
    waits_for: tuple[str, ...] = ()
    deadline: datetime | None = None
    at_deadline: str = ""
    hold: str = ""
    running: tuple[str, ...] = ()
    planned: tuple[str, ...] = ()
    hindrances: tuple[Blocker, ...] = ()
    owner: str = ""


def explain(key: Key, state: State[W], decision: Decision | None) -> Why:
    if decision is None:
        return Why(object=key.path, phase="Unknown", outcome=Outcome.WORKING.value, why="not observed yet")
    return Why(
        object=key.path,
        phase=decision.phase,
        outcome=decision.outcome.value,
        why=decision.why,
        waits_for=decision.waits_for,
        deadline=decision.deadline,
        at_deadline=decision.at_deadline,
        hold=state.world.hold,
        running=tuple(action.summary for action in state.running.values()),
        planned=decision.summaries,
        hindrances=tuple(
            Blocker(
                action=slot,
                type=refusal.type.value,
                message=refusal.message,
                attempts=refusal.attempts,
                retry_at=refusal.retry_at,
            )
            for slot, refusal in blocked_by(state.world, decision).items()
        ),
        owner=decision.owner,
    )


def details(why: Why) -> str:
    lines = [f"**{why.phase}**: {why.why}"]
    if why.hold:
        lines.append(f"Held: {why.hold}. Would do: {', '.join(why.planned) or 'nothing'}.")
    if why.waits_for:
        until = f" until {why.deadline:%Y-%m-%d %H:%M:%S} UTC" if why.deadline else ""
        lines.append(f"Waits for {', '.join(why.waits_for)}{until}.")
        if not why.deadline and why.outcome == Outcome.WAITING.value:
            lines.append("There is no deadline.")
    elif why.deadline:
        lines.append(f"Deadline {why.deadline:%Y-%m-%d %H:%M:%S} UTC.")
    if why.deadline and why.at_deadline:
        lines.append(f"Then: {why.at_deadline}.")
    lines += [f"- running: {summary}" for summary in why.running]
    lines += [
        f"- refused ({h.type}, attempt {h.attempts}): {h.message}; next try {h.retry_at:%H:%M:%S} UTC"
        for h in why.hindrances
    ]
    return "\n\n".join(lines[:30])
