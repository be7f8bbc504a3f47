from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from domain.decision import Decision
from domain.threescale.conditions import FAILED
from domain.threescale.deletion import Leaving, deprovision
from domain.threescale.observed import Observed, Phase, acts, failed
from domain.threescale.provider_account import NoAccount
from domain.threescale.relations import is_settled


class DeniedObservation(Observed):
    """An object that names a Secret which the worker may not read."""

    learnt: ClassVar[tuple[str, ...]] = ()

    provider: NoAccount

    def decide(self, now: datetime) -> Decision:
        if leaves := deprovision(self, lambda _: Leaving(), now):
            return leaves
        until = self.observe_again_at(FAILED, now)
        if is_settled(self.resource):  # a completed promotion must stay completed
            return acts(Phase.FAILED, self.provider.why, deadline=until)
        return self.blocked(failed(self.provider.why), now, until=until)
