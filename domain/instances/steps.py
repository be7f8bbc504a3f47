"""What can be done for an instance, as steps that the lifecycle asks for; each is idempotent."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from domain.instances.verification import Question
from domain.model import Model


class AskAws(Model):
    """Ask AWS how the instance stands."""

    step: Literal["ask"] = "ask"
    questions: tuple[Question, ...]


class DeleteMachine(Model):
    """Delete the Machine, with its uid as precondition; `taken` if AWS takes its instance right now."""

    step: Literal["delete-machine"] = "delete-machine"
    cause: str
    namespace: str
    name: str
    uid: str
    taken: bool = False


class DrainNode(Model):
    """Cordon and drain the Node in its workload cluster; evictions end at `until`; `taken` as above."""

    step: Literal["drain"] = "drain"
    cause: str
    node: str
    until: datetime | None = None
    taken: bool = False


class UncordonNode(Model):
    """Let the Node be used again."""

    step: Literal["uncordon"] = "uncordon"
    node: str


class SendHeartbeat(Model):
    """RecordLifecycleActionHeartbeat."""

    step: Literal["heartbeat"] = "heartbeat"
    group: str
    hook: str
    token: str


class CompleteHook(Model):
    """CompleteLifecycleAction; `ValidationError` (no active lifecycle action) is as good as done."""

    step: Literal["complete"] = "complete"
    group: str
    hook: str
    token: str
    result: Literal["CONTINUE", "ABANDON"]


class Refute(Model):
    """Remember, count and tell that AWS does not bear out a claim."""

    step: Literal["refute"] = "refute"
    cause: str


Step = AskAws | DeleteMachine | DrainNode | UncordonNode | SendHeartbeat | CompleteHook | Refute
