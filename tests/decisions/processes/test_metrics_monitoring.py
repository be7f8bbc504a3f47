"""Alerts and dashboard speak of metrics and labels that exist, and lead to runbooks that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import REGISTRY

import activities.accounts.metrics
import activities.claims.metrics
import activities.instances.metrics
import activities.loadbalancers.metrics
import activities.openstack.call_metrics
import activities.threescale.metrics
import engine.bugs  # noqa: F401
import starters.events.metrics
import starters.watch.metrics
import starters.watch.missing_worker_metrics  # noqa: F401 - all put their metrics into the registry
from domain.identity import all_areas
from starters.watch.account_metrics import account_gauges
from starters.watch.audit_reports import audit_gauges
from starters.watch.claim_metrics import claim_gauges
from starters.watch.instance_metrics import instance_gauges
from starters.watch.loadbalancer_metrics import balancer_gauges
from starters.watch.projection_index import Index
from starters.watch.threescale_metrics import threescale_gauges

ROOT = Path(__file__).parents[3]
MONITORING = ROOT / "deploy" / "monitoring"
DASHBOARDS = sorted(MONITORING.glob("dashboard-*.json"))
GAUGES = (audit_gauges, account_gauges, claim_gauges, balancer_gauges, threescale_gauges, instance_gauges)
SUFFIXES = ("", "_total", "_bucket", "_count", "_sum")
NAME = re.compile(
    r"\b(?:(?:aws_account_operator|controller_runtime|perdure|poolboy|yawol|loadbalancer|loadbalancerset)_[a-z_]+|loadbalancermachine\w*)\b"
)


def rules() -> list[dict[str, Any]]:
    document = yaml.safe_load((MONITORING / "alerts.yaml").read_text())
    return [rule for group in document["spec"]["groups"] for rule in group["rules"]]


def panels(dashboard: Path) -> list[dict[str, Any]]:
    found = json.loads(dashboard.read_text())
    return [panel for panel in found["panels"] if panel["type"] != "row"]


def expressions() -> Iterator[tuple[str, str]]:
    for rule in rules():
        yield rule["alert"], rule["expr"]
    for dashboard in DASHBOARDS:
        for panel in panels(dashboard):
            for target in panel["targets"]:
                yield panel["title"], target["expr"]


def published() -> set[str]:
    """The series that some process publishes."""
    activities.accounts.metrics.LISTENER  # noqa: B018 - the module is what counts
    families = {family.name for gauges in GAUGES for family in gauges(Index())}
    families |= {family.name for family in REGISTRY.collect()}
    families |= {"aws_account_operator_aws_accounts", "perdure_create_budget_left"}
    return {f"{family}{suffix}" for family in families for suffix in SUFFIXES}


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_expressions_use_only_metrics_that_exist(where: str, expression: str) -> None:
    named = set(NAME.findall(expression))

    assert named <= published(), where
    assert named or "temporal_" in expression


def test_the_documented_metrics_exist() -> None:
    text = (ROOT / "docs" / "metrics.md").read_text()

    assert set(NAME.findall(text)) - {"aws_account_operator_"} <= published()


def test_every_gauge_is_documented() -> None:
    text = (ROOT / "docs" / "metrics.md").read_text()
    published = [family for gauges in GAUGES for family in gauges(Index())]
    families = (family.name.removeprefix("aws_account_operator_") for family in published)

    assert [name for name in families if f"`{name}`" not in text] == []


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_every_alert_leads_to_its_runbook(rule: dict[str, Any]) -> None:
    page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    headings = re.findall(r"^## (.+)$", (ROOT / page).read_text(), re.MULTILINE)

    assert anchor in {heading.lower().replace(" ", "-") for heading in headings}
    assert rule["annotations"]["summary"]
    assert rule["labels"]["severity"] in {"warning", "critical"}


def test_every_area_has_a_dashboard_that_the_kustomization_ships() -> None:
    files = [dashboard.name for dashboard in DASHBOARDS]
    generated = yaml.safe_load((MONITORING / "kustomization.yaml").read_text())["configMapGenerator"]

    assert files == [f"dashboard-{area}.json" for area in all_areas()]
    assert sorted(file for each in generated for file in each["files"]) == files


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda path: path.stem)
def test_panels_have_their_own_ids_and_places(dashboard: Path) -> None:
    found = panels(dashboard)
    places = [tuple(sorted(panel["gridPos"].items())) for panel in found]

    assert len({panel["id"] for panel in found}) == len(found)
    assert len(set(places)) == len(places)
    assert all(panel["description"] for panel in found)


def test_the_kustomization_names_files_that_exist() -> None:
    kustomization = yaml.safe_load((MONITORING / "kustomization.yaml").read_text())
    generated = [name for each in kustomization["configMapGenerator"] for name in each["files"]]

    assert [name for name in kustomization["resources"] + generated if not (MONITORING / name).exists()] == []
    assert {path.name for path in DASHBOARDS} <= set(generated)
