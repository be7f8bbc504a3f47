"""What is paused now, for every place of a process that is about to change something.

`engine/kube/pausing.py` keeps it true while a process runs. It is asked for twice: by a pass, which then shows what it
would do and does nothing (`held`), and where requests leave the process, which sends none that would change something
(`refuse_if_paused`). The second matters for what was under way when the pause began: an action that is tried again for
hours, or a pass in its middle. It is refused as unavailable, and tried again a minute later.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from prometheus_client import Gauge
from temporalio import activity

from domain.identity import all_areas, all_kinds
from domain.levers import held as held_itself
from domain.pauses import Pauses, why_paused
from domain.refusal import AREA_PAUSED
from engine.errors import Unavailable
from engine.settings import Settings

AGAIN = timedelta(minutes=1)

PAUSED_AREAS = Gauge("perdure_paused", "1 while the area is paused.", ["area"])

_now: dict[str, Pauses] = {"pauses": {}}


def set_pauses(pauses: Pauses) -> None:
    """This is paused from now on, and nothing else."""
    _now["pauses"] = pauses
    for area in all_areas():
        PAUSED_AREAS.labels(area).set(1 if why_paused(pauses, area) else 0)


def paused_area(area: str) -> str:
    """Why nothing may be changed for the area now, empty if it may."""
    return why_paused(_now["pauses"], area)


def held(area: str, annotations: Mapping[str, object], settings: Settings) -> str:
    """Why nothing may be changed on behalf of the object with these annotations now, empty if it may."""
    return held_itself(annotations, observing=settings.observing) or paused_area(area)


def refuse_if_paused(attempt: object) -> None:
    """Where a change is about to be sent: refuse it if the area of the lifecycle that asks is paused.

    Raises:
        Unavailable: nothing is sent.
    """
    if not _now["pauses"] or not activity.in_activity():
        return
    kind = all_kinds().get(activity.info().workflow_type or "")
    if kind is not None and (why := paused_area(kind.area)):
        raise Unavailable(f"{attempt}: not sent, {why}", code=AREA_PAUSED, delay=AGAIN)
