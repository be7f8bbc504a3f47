from __future__ import annotations

from dataclasses import dataclass

from activities.claims.cache import ClaimCache
from activities.claims.handle_deletion import Releasing
from activities.claims.handle_reconciliation import Reconciliation
from activities.claims.object_writes import Writer
from domain.claims import RESOURCE_CLAIM
from domain.claims.json_objects import JsonObject, object_at
from domain.claims.periodic_evaluation import Cadence
from engine.pauses import held
from engine.settings import Settings


@dataclass(frozen=True)
class Tools:
    cache: ClaimCache
    writer: Writer
    reconciliation: Reconciliation
    releasing: Releasing
    settings: Settings

    def hold(self, obj: JsonObject) -> str:
        return held(RESOURCE_CLAIM.area, object_at(obj, "metadata", "annotations"), self.settings)

    @property
    def cadence(self) -> Cadence:
        settings = self.settings
        return Cadence(
            by_clock=settings.claims_handles_interval,
            refresh=settings.claims_refresh_interval,
            faulty=settings.claims_interval,
        )
