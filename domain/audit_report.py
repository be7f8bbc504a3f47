"""The report of a scheduled audit: the ConfigMap `perdure-audit`, with one key for each area.

Each area's audit writes only its own key, so that separate jobs can audit different areas. A failed audit keeps the
results of the last successful audit.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pydantic import ValidationError

from domain.model import Model

CONFIG_MAP_NAME = "perdure-audit"
# How many findings of an area are stored: a ConfigMap holds at most one mebibyte.
MOST_KEPT = 200


class Found(Model):
    subject: str
    problem: str
    advice: str = ""


class AreaReport(Model):
    at: datetime | None = None
    total: int = 0
    found: tuple[Found, ...] = ()
    trouble: str = ""

    def written(self) -> str:
        return self.model_dump_json(indent=1)


def reported(at: datetime, found: tuple[Found, ...]) -> AreaReport:
    return AreaReport(at=at, total=len(found), found=found[:MOST_KEPT])


def failed(before: AreaReport, trouble: str) -> AreaReport:
    return before.model_copy(update={"trouble": trouble[:1000]})


def reports_in(config_map: Mapping[str, object] | None) -> dict[str, AreaReport]:
    data = config_map.get("data") if config_map else None
    found = {str(area): _read(str(value)) for area, value in data.items()} if isinstance(data, Mapping) else {}
    return {area: report for area, report in found.items() if report is not None}


def _read(value: str) -> AreaReport | None:
    try:
        return AreaReport.model_validate_json(value)
    except ValidationError:
        return None
