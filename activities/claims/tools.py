"""What the passes over claims, handles and pools work with, and what they share."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from activities.claims.cache import ClaimCache
from activities.claims.handle_reconciliation import Reconciliation
from activities.claims.releasing import Releasing
from activities.claims.writing import Writer
from domain.claims import RESOURCE_CLAIM
from domain.claims.handle_reconciliation import HandleWorld
from domain.claims.objects import JsonObject, object_at
from domain.claims.passes import Cadence
from engine.pauses import held
from engine.settings import Settings


@dataclass(frozen=True)
class Tools:
    """What the passes of the area work with."""

    cache: ClaimCache
    writer: Writer
    reconciliation: Reconciliation
    releasing: Releasing
    settings: Settings

    def hold(self, obj: JsonObject) -> str:
        """Why nothing may be changed on behalf of this object now, empty if it may."""
        return held(RESOURCE_CLAIM.area, object_at(obj, "metadata", "annotations"), self.settings)

    @property
    def cadence(self) -> Cadence:
        """After how long objects are looked at again without being woken."""
        settings = self.settings
        return Cadence(
            by_clock=settings.claims_handles_interval,
            refresh=settings.claims_refresh_interval,
            faulty=settings.claims_interval,
        )

    def next_look(self, settled: HandleWorld, moment: datetime, *, faulty: bool = False) -> datetime:
        """When to look again without being woken; `faulty` says that something is at fault with the claim itself."""
        return self.cadence.next(moment, by_clock=settled.plan.by_clock, faulty=faulty or bool(settled.faults))
