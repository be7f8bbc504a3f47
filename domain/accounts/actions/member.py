"""Where an effect is carried out: the base of every action inside a member account."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from domain.decision import Action, Queue

# After how long an action is tried again elsewhere when its worker was killed.
KILLED_NOTICED = timedelta(seconds=20)


class MemberAction(Action):
    """An effect inside a member account, under its OrganizationAccountAccessRole."""

    queue: ClassVar[Queue] = Queue.AWS
    start_to_close: ClassVar[timedelta] = timedelta(minutes=5)
    heartbeat: ClassVar[timedelta | None] = KILLED_NOTICED

    account_id: str
    partition: str = "aws"
