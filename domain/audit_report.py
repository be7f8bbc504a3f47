"""The report of a scheduled audit, as it stands in the cluster: the ConfigMap `perdure-audit`, a key for each area.

Each area's audit writes its own key, so that areas may be audited by different jobs. A value is JSON; it holds the
first of what was found, and always how much there was. An audit that could not be made says why, and keeps
the time of the last one that could.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pydantic import ValidationError

from domain.model import Model

CONFIG_MAP_NAME = "perdure-audit"
# A ConfigMap holds a mebibyte.
MOST_KEPT = 200


class Found(Model):
    """Something that does not fit."""

    subject: str
    problem: str
    advice: str = ""


class AreaReport(Model):
    """One area's last audit.

    `at` is when it was last made; `found` the first of its findings, `total` how many there were; `trouble` says why it
    could not be made since.
    """

    at: datetime | None = None
    total: int = 0
    found: tuple[Found, ...] = ()
    trouble: str = ""

    def written(self) -> str:
        """As it stands in the ConfigMap."""
        return self.model_dump_json(indent=1)


def reported(at: datetime, found: tuple[Found, ...]) -> AreaReport:
    """An audit that was made."""
    return AreaReport(at=at, total=len(found), found=found[:MOST_KEPT])


def failed(before: AreaReport, trouble: str) -> AreaReport:
    """An audit that could not be made: what was known stays."""
    return before.model_copy(update={"trouble": trouble[:1000]})


def reports_in(config_map: Mapping[str, object] | None) -> dict[str, AreaReport]:
    """The areas' reports; one that cannot be read is as if there were none."""
    data = config_map.get("data") if config_map else None
    found = {str(area): _read(str(value)) for area, value in data.items()} if isinstance(data, Mapping) else {}
    return {area: report for area, report in found.items() if report is not None}


def _read(value: str) -> AreaReport | None:
    try:
        return AreaReport.model_validate_json(value)
    except ValidationError:
        return None
