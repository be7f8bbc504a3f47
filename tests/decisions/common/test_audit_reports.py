"""Scheduled audits: what the report contains, and which metrics show it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from auditors import PORT, Auditor
from memory_kube import MemoryKube

from domain.audit_report import CONFIG_MAP_NAME, MOST_KEPT, AreaReport, Found, reported, reports_in
from engine.errors import Absent, Unavailable
from engine.kube import CONFIG_MAP
from engine.kube.errors import NO_SUCH_KIND
from engine.settings import Settings
from starters.cli.audit import served_audits, write_reports
from starters.cli.audits import Audit
from starters.cli.session import Session
from starters.watch.audit_reports import NAME, audit_gauges, read_reports, watched_for
from starters.watch.projection import project
from starters.watch.projection_index import Index

NOW = datetime(2026, 11, 22, 7, tzinfo=UTC)


async def made(kube: MemoryKube, **audits: Auditor) -> dict[str, AreaReport]:
    session = Session(Settings(), cast("Any", kube), temporal=cast("Any", None))
    return dict(await write_reports(session, audits, thorough=False, now=lambda: NOW))


async def stored_reports(kube: MemoryKube) -> dict[str, AreaReport]:
    return reports_in(await kube.get(CONFIG_MAP, "perdure", CONFIG_MAP_NAME))


def samples(config_map: dict[str, object]) -> dict[tuple[str, str], float]:
    index = Index()
    (watched,) = watched_for(Settings())
    known = project(CONFIG_MAP.name, "", config_map, read_reports)
    index.of(watched.name)[known.name] = known
    samples = [sample for family in audit_gauges(index) for sample in family.samples]
    return {(sample.name, sample.labels["area"]): sample.value for sample in samples}


async def test_findings_are_recorded_in_the_cluster_by_area() -> None:
    kube = MemoryKube()
    await made(kube, loadbalancers=Auditor(PORT), claims=Auditor())
    found = await stored_reports(kube)
    assert found["loadbalancers"].found == (Found(subject="port 1", problem="has no owner", advice="delete it"),)
    assert (found["claims"].total, found["claims"].at) == (0, NOW)


async def test_another_areas_report_stays() -> None:
    kube = MemoryKube()
    await made(kube, loadbalancers=Auditor(PORT))
    await made(kube, claims=Auditor())
    assert sorted(await stored_reports(kube)) == ["claims", "loadbalancers"]


async def test_an_audit_that_cannot_be_made_says_so_and_blocks_no_other() -> None:
    kube = MemoryKube()
    await made(kube, loadbalancers=Auditor(PORT))
    await made(kube, loadbalancers=Auditor(error=Unavailable("Neutron gave no answer")), claims=Auditor())
    found = await stored_reports(kube)
    assert found["loadbalancers"].trouble == "Neutron gave no answer"
    assert found["loadbalancers"].total == 1
    assert found["claims"].trouble == ""


async def test_an_area_that_is_not_installed_has_no_report(capsys: pytest.CaptureFixture[str]) -> None:
    kube = MemoryKube()
    absent = Absent("list products: not found", code=NO_SUCH_KIND)
    assert await made(kube, threescale=Auditor(error=absent)) == {}
    assert "threescale, whose kinds are not installed here" in capsys.readouterr().err


def test_a_long_report_is_cut_and_still_counted() -> None:
    found: Sequence[Found] = [Found(subject=str(number), problem="no owner") for number in range(1000)]
    cut = reported(NOW, tuple(found))
    assert (cut.total, len(cut.found)) == (1000, MOST_KEPT)


def test_findings_are_reported_by_area_with_the_time_of_the_audit() -> None:
    report = reported(NOW, (Found(subject="port 1", problem="has no owner"),))
    data = {"loadbalancers": report.written(), "claims": AreaReport(trouble="never made").written(), "odd": "{"}
    assert samples({"metadata": {"name": CONFIG_MAP_NAME, "namespace": "perdure"}, "data": data}) == {
        ("perdure_audit_findings", "loadbalancers"): 1,
        ("perdure_audit_timestamp_seconds", "loadbalancers"): NOW.timestamp(),
        ("perdure_audit_timestamp_seconds", "claims"): 0,
    }


@pytest.mark.parametrize(
    ("areas", "audited"),
    [((), ["accounts", "claims", "threescale"]), (("claims", "instances"), ["claims"])],
    ids=["all are served", "some are served"],
)
def test_without_an_area_what_this_installation_serves_is_audited(areas: tuple[str, ...], audited: list[str]) -> None:
    """Another operator's kinds may be there, and the rights to read them are not."""
    known: dict[str, Audit] = {area: Auditor() for area in ("accounts", "claims", "threescale")}
    assert list(served_audits(known, Settings(areas=areas))) == audited


def test_the_report_wakes_no_lifecycle() -> None:
    (watched,) = watched_for(Settings())
    assert (watched.name, watched.kind.lifecycle) == (NAME, False)
    assert not watched.relations
