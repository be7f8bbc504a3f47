"""The Secret of a fake claim."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from domain.accounts.worlds import ClaimWorld
from domain.decision import Action, Queue
from domain.identity import Key
from domain.model import Model


class FakeSecret(Action):
    """Put dummy keys into a Secret of the claim's namespace, or delete that Secret.

    One that exists is kept as it is, and one that holds anything but the dummy keys is never deleted.
    """

    activity: ClassVar[str] = "accounts.fake_secret"
    queue: ClassVar[str] = Queue.KUBE
    start_to_close: ClassVar[timedelta] = timedelta(seconds=20)

    claim: Key
    secret: str
    wanted: bool

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"{'write dummy keys into' if self.wanted else 'delete'} Secret {self.secret}"

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        """It is there, or is gone."""
        return world.learn(fake_secret=self.wanted)
