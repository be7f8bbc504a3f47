"""The current pauses of areas, checked before each change; `engine/kube/pausing.py` keeps them up to date.

In a paused area a pass only shows what it would do (`held`). The clients check again (`refuse_if_paused`): a refused
change is retried a minute later.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from prometheus_client import Gauge
from temporalio import activity

from domain.control_annotations import held as held_itself
from domain.identity import all_areas, all_kinds
from domain.pauses import Pauses, why_paused
from domain.refusal import AREA_PAUSED
from engine.errors import Unavailable
from engine.settings import Settings

AGAIN = timedelta(minutes=1)

PAUSED_AREAS = Gauge("perdure_paused", "1 while the area is paused.", ["area"])

_now: dict[str, Pauses] = {"pauses": {}}


def set_pauses(pauses: Pauses) -> None:
    _now["pauses"] = pauses
    for area in all_areas():
        PAUSED_AREAS.labels(area).set(1 if why_paused(pauses, area) else 0)


def paused_area(area: str) -> str:
    """Why the area is paused; empty if it is not."""
    return why_paused(_now["pauses"], area)


def held(area: str, annotations: Mapping[str, object], settings: Settings) -> str:
    """Why the object may not be changed: observe mode, its own pause or its area's pause; empty if it may."""
    return held_itself(annotations, observing=settings.observing) or paused_area(area)


def refuse_if_paused(attempt: object) -> None:
    """Raises Unavailable if the area of the running activity's lifecycle is paused."""
    if not _now["pauses"] or not activity.in_activity():
        return
    kind = all_kinds().get(activity.info().workflow_type or "")
    if kind is not None and (why := paused_area(kind.area)):
        raise Unavailable(f"{attempt}: not sent, {why}", code=AREA_PAUSED, delay=AGAIN)
