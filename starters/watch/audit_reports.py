"""Exports the findings of scheduled audits from a ConfigMap (`domain/audit_report.py`) as metrics.

`perdure_audit_timestamp_seconds` is 0 until an area's first audit succeeds, so an alert on the age of audits fires.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from domain.audit_report import CONFIG_MAP_NAME, AreaReport, reports_in
from engine.kube import CONFIG_MAP
from engine.kube.json import JsonObject
from engine.kube.reflector import Followed
from engine.settings import Settings
from starters.watch.projection import View
from starters.watch.projection_index import Index
from starters.watch.watched_kinds import Watched

AREA = ""  # reports cover all areas

NAME = "audit reports"


def watched_for(settings: Settings) -> tuple[Watched, ...]:
    return (
        Watched(
            Followed(
                CONFIG_MAP,
                settings.watch_lease_namespace,
                field_selector=f"metadata.name={CONFIG_MAP_NAME}",
                called=NAME,
            ),
            read=read_reports,
        ),
    )


def read_reports(obj: JsonObject) -> View:
    reports = reports_in(obj)
    facts = {area: f"{report.total} {_seconds(report)}" for area, report in reports.items()}
    return View(fingerprint=tuple(sorted(facts.items())), facts=facts)


def audit_gauges(index: Index) -> Iterator[Metric]:
    findings = GaugeMetricFamily(
        "perdure_audit_findings", "Findings of the area's last scheduled audit.", labels=["area"]
    )
    made = GaugeMetricFamily(
        "perdure_audit_timestamp_seconds",
        "When the area was last audited successfully, in seconds since 1970.",
        labels=["area"],
    )
    for known in index.all(NAME):
        for area, fact in sorted(known.facts.items()):
            total, at = fact.split()
            made.add_metric([area], float(at))
            if float(at):
                findings.add_metric([area], float(total))
    yield findings
    yield made


GAUGES = audit_gauges


def _seconds(report: AreaReport) -> int:
    return int(report.at.timestamp()) if report.at is not None else 0
