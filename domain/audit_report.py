"""The report of a scheduled audit: the ConfigMap `perdure-audit`, with one key for each area.

Each area's audit writes only its own key, so that areas may be audited by different jobs. A value is JSON; it holds the
first findings and always their total number. A failed audit records its reason and keeps the results of the last
successful one.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pydantic import ValidationError

from domain.model import Model

CONFIG_MAP_NAME = "perdure-audit"
# A ConfigMap holds at most one mebibyte.
MOST_KEPT = 200


class Found(Model):
    """One inconsistency."""

    subject: str
    problem: str
    advice: str = ""


class AreaReport(Model):
    """One area's last successful audit.

    `found` holds the first of `total` findings. `trouble` is the reason why a later audit failed.
    """

    at: datetime | None = None
    total: int = 0
    found: tuple[Found, ...] = ()
    trouble: str = ""

    def written(self) -> str:
        """The value for the ConfigMap, as JSON."""
        return self.model_dump_json(indent=1)


def reported(at: datetime, found: tuple[Found, ...]) -> AreaReport:
    """The report of a successful audit."""
    return AreaReport(at=at, total=len(found), found=found[:MOST_KEPT])


def failed(before: AreaReport, trouble: str) -> AreaReport:
    """The report of a failed audit: the previous findings stay."""
    return before.model_copy(update={"trouble": trouble[:1000]})


def reports_in(config_map: Mapping[str, object] | None) -> dict[str, AreaReport]:
    """The areas' reports; unreadable ones are left out."""
    data = config_map.get("data") if config_map else None
    found = {str(area): _read(str(value)) for area, value in data.items()} if isinstance(data, Mapping) else {}
    return {area: report for area, report in found.items() if report is not None}


def _read(value: str) -> AreaReport | None:
    try:
        return AreaReport.model_validate_json(value)
    except ValidationError:
        return None
