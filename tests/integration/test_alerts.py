"""Every alert fires when its condition holds, not before, and clears when it is over: by Prometheus' own promtool.

A case is what the processes would publish while something goes wrong: metrics that exist, with the labels that they
have. All is well for ten minutes; then it is not, for as long as the case says; then it is again.
"""

from __future__ import annotations

import importlib
import json
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from prometheus_client import REGISTRY
from promtool_program import PromtoolError, find_promtool

from starters.watch.gauges import gauges_of_areas
from starters.watch.projection_index import Index

ALERTS = Path(__file__).parents[2] / "deploy" / "monitoring" / "alerts.yaml"
WELL = 10  # minutes for which all is well at first
SETTLING = 2  # minutes after which it is looked at
# Beyond it a series that is published no more is forgotten.
LOOKBACK = 6
# Their import registers their metrics; the watcher's gauges come by themselves.
DISPATCHERS = (
    *("activities.claims.metrics", "activities.instances.metrics", "activities.openstack.call_metrics"),
    *("activities.threescale.metrics", "engine.pauses", "starters.events.metrics", "starters.watch.metrics"),
    *("engine.bugs", "starters.watch.missing_worker_metrics"),
)
# Not ours: the Temporal SDK publishes them.
OTHERS = {"temporal_workflow_task_execution_failed_total": {"workflow_type"}}
# Computed at each scrape by a collector that sets its labels with its first sample.
OF_A_COLLECTOR = {"perdure_openstack_orphans": {"project", "kind"}}


class Case(NamedTuple):
    """What happens, and what is heard of it.

    `series` are names with labels, each with its kind of values: see `values`. `after` are the minutes until it fires,
    `lasts` those for which it happens, `clears` those after its end until it is silent.
    """

    alert: str
    series: dict[str, str]
    labels: dict[str, str]
    after: int
    lasts: int
    clears: int = 1


POOL = {"namespace": "aws-account-operator", "pool_name": "p"}
OF_POOL = 'namespace="aws-account-operator",pool_name="p"'
BALANCER = {"namespace": "lb", "lb": "web"}
OF_BALANCER = 'namespace="lb",lb="web"'
AAO = 'name="aws-account-operator"'


def _refusals(api: str, thing: str, error: str) -> str:
    return f'perdure_openstack_refusals_total{{api="{api}",object="{thing}",operation="create",error="{error}"}}'


CASES = (
    Case("PerdureNoWatcherLeads", {"perdure_watch_leader": "gauge 1 0"}, {}, 5, 20),
    Case(
        "PerdureWakesDelayed", {'perdure_watch_lag_seconds{kind="Account"}': "gauge 0 45"}, {"kind": "Account"}, 5, 20
    ),
    Case(
        "PerdureWatchSilent",
        {'perdure_watch_unserved_seconds{kind="Account"}': "gauge 20 400"},
        {"kind": "Account"},
        5,
        20,
    ),
    Case("PerdureNoWorker", {'perdure_worker_missing{area="claims"}': "gauge 0 1"}, {"area": "claims"}, 5, 20),
    Case(
        "PerdureOldVersionWithoutWorker",
        {'perdure_worker_version_missing{area="claims",build_id="1.4.0"}': "gauge 0 3"},
        {"area": "claims", "build_id": "1.4.0"},
        5,
        20,
    ),
    Case(
        "PerdureBug",
        {'perdure_bugs_total{kind="Account",activity="create_account"}': "counter 1"},
        {"kind": "Account", "activity": "create_account"},
        1,
        10,
        16,
    ),
    Case(
        "PerdureWorkflowTaskFails",
        {'temporal_workflow_task_execution_failed_total{workflow_type="Account"}': "counter 1"},
        {"workflow_type": "Account"},
        6,
        20,
        16,
    ),
    Case("PerdureAuditFinds", {'perdure_audit_findings{area="claims"}': "gauge 0 3"}, {"area": "claims"}, 60, 90),
    Case(
        "PerdureAuditNotMade",
        {'perdure_audit_timestamp_seconds{area="claims"}': "clock"},
        {"area": "claims"},
        2941,
        3000,
    ),
    Case("PerdurePaused", {'perdure_paused{area="claims"}': "gauge 0 1"}, {"area": "claims"}, 240, 300),
    Case("PerdureCreateBudgetReached", {f"perdure_create_budget_reached{{{OF_POOL}}}": "gauge 0 1"}, POOL, 1, 20),
    Case("PerdureAccountLimitReached", {f"perdure_account_limit_reached{{{OF_POOL}}}": "gauge 0 1"}, POOL, 5, 20),
    Case(
        "PerdureAccountPoolStalled",
        {f'perdure_account_pool_stalled{{{OF_POOL},reason="AccountCreation"}}': "gauge 0 1"},
        {**POOL, "reason": "AccountCreation"},
        10,
        30,
    ),
    Case(
        "PerdureAccountPoolEmpty",
        {
            f"aws_account_operator_available_non_ccs_accounts{{{AAO},{OF_POOL}}}": "gauge 2 0",
            f"aws_account_operator_account_pool_size{{{AAO},{OF_POOL}}}": "gauge 3 3",
        },
        POOL,
        60,
        90,
    ),
    Case(
        "PerdureAccountsFailed", {f"aws_account_operator_total_accounts_crs_failed{{{AAO}}}": "gauge 0 2"}, {}, 15, 30
    ),
    Case(
        "PerdureCleanupFails",
        {f"aws_account_operator_total_aws_account_reused_failed{{{AAO}}}": "gauge 0 1"},
        {},
        15,
        30,
    ),
    Case(
        "PerdureClaimsPending",
        {f'aws_account_operator_account_claim_crs{{{AAO},state="Pending"}}': "gauge 0 1"},
        {},
        15,
        30,
    ),
    Case(
        "PerdureHandlesLacking",
        {f"perdure_pool_available{{{OF_POOL}}}": "gauge 2 0", f"perdure_pool_min_available{{{OF_POOL}}}": "gauge 2 2"},
        POOL,
        15,
        30,
    ),
    Case(
        "PerdureClaimsStalled",
        {'perdure_lifecycles{kind="ResourceClaim",phase="Stalled"}': "gauge 0 1"},
        {"kind": "ResourceClaim"},
        15,
        30,
    ),
    Case(
        "PerdureEndsLate",
        {
            'perdure_resource_expiry_lateness_seconds_bucket{kind="ResourceClaim",le="60"}': "counter 0",
            'perdure_resource_expiry_lateness_seconds_bucket{kind="ResourceClaim",le="300"}': "counter 1",
            'perdure_resource_expiry_lateness_seconds_bucket{kind="ResourceClaim",le="+Inf"}': "counter 1",
        },
        {},
        17,
        40,
        16,
    ),
    Case(
        "PerdureLoadBalancerDown",
        {
            f"loadbalancer_replicas{{{OF_BALANCER}}}": "gauge 2 2",
            f"loadbalancer_replicas_ready{{{OF_BALANCER}}}": "gauge 2 0",
        },
        BALANCER,
        15,
        30,
    ),
    Case(
        "PerdureLoadBalancerDegraded",
        {
            f"loadbalancer_replicas{{{OF_BALANCER}}}": "gauge 2 2",
            f"loadbalancer_replicas_ready{{{OF_BALANCER}}}": "gauge 2 1",
        },
        BALANCER,
        30,
        60,
    ),
    Case(
        "PerdureLoadBalancerWithoutMaster",
        {f'loadbalancermachine{{{OF_BALANCER},lbm="m",type="keepalivedIsMaster"}}': "gauge 1 0"},
        BALANCER,
        5,
        20,
    ),
    Case(
        "PerdureMachinesNeverBoot",
        {f'perdure_loadbalancerset_boot_failures{{{OF_BALANCER},lbs="web-1"}}': "gauge 0 2"},
        {**BALANCER, "lbs": "web-1"},
        1,
        20,
    ),
    Case(
        "PerdureAgentsSilent",
        {f'perdure_loadbalancermachine_report_timestamp_seconds{{{OF_BALANCER},lbm="m"}}': "clock"},
        {},
        7,
        30,
    ),
    Case("PerdureRolloutFrozen", {f"perdure_loadbalancer_rolling_out{{{OF_BALANCER}}}": "gauge 0 1"}, BALANCER, 60, 90),
    Case(
        "PerdureOpenStackQuota",
        {_refusals("neutron", "port", "OverQuota"): "counter 1"},
        {"api": "neutron", "object": "port"},
        16,
        40,
        62,
    ),
    Case(
        "PerdureOpenStackCredentials",
        {_refusals("keystone", "token", "HTTP 401"): "counter 1"},
        {},
        16,
        40,
        16,
    ),
    Case(
        "PerdureOpenStackRefuses",
        {_refusals("nova", "server", "HTTP 400"): "counter 1"},
        {"api": "nova", "object": "server", "error": "HTTP 400"},
        16,
        40,
        62,
    ),
    Case(
        "PerdureLoadBalancerDeletionStuck",
        {f"loadbalancer_deletion_timestamp{{{OF_BALANCER}}}": "mark"},
        BALANCER,
        66,
        90,
    ),
    Case(
        "PerdureOpenStackOrphans",
        {'perdure_openstack_orphans{project="infra",kind="port"}': "gauge 0 3"},
        {"project": "infra", "kind": "port"},
        30,
        60,
    ),
    Case(
        "PerdureThreescaleOrphans",
        {'perdure_threescale_oldest_orphan_timestamp{kind="Product"}': "mark"},
        {"kind": "Product"},
        66,
        90,
    ),
    Case(
        "PerdureThreescaleRefuses",
        {'perdure_threescale_refusals_total{kind="Product",type="Denied"}': "counter 1"},
        {"kind": "Product", "type": "Denied"},
        37,
        60,
        62,
    ),
    Case(
        "PerdureThreescaleNotSwept",
        {'perdure_threescale_swept_timestamp_seconds{tenant="https://t"}': "clock"},
        {"tenant": "https://t"},
        247,
        270,
    ),
    Case(
        "PerdureThreescaleWithoutOwner",
        {'perdure_threescale_without_owner{tenant="https://t"}': "gauge 0 1"},
        {"tenant": "https://t"},
        180,
        200,
    ),
    Case(
        "PerdureEventsLate",
        {'perdure_events_oldest_age_seconds{queue="1/r/q"}': "gauge 1 90"},
        {"queue": "1/r/q"},
        2,
        20,
    ),
    Case(
        "PerdureEventsKept",
        {'perdure_events_handled_total{outcome="unavailable"}': "counter 5"},
        {},
        12,
        30,
        6,
    ),
    Case(
        "PerdureEventsNotReceived",
        {'perdure_events_failed_calls_total{queue="1/r/q",call="receive"}': "counter 10"},
        {"queue": "1/r/q"},
        9,
        30,
        11,
    ),
    Case(
        "PerdureEventsDeadLetters",
        {'perdure_events_dead_letters_total{queue="1/r/q",reason="Malformed"}': "counter 1"},
        {"queue": "1/r/q", "reason": "Malformed"},
        2,
        10,
        62,
    ),
    Case("PerdureEventsRefuted", {"perdure_instances_refuted_total": "counter 1"}, {}, 2, 10, 62),
    Case(
        "PerdureInstanceReactionsSlow",
        {
            'perdure_instances_reaction_seconds_bucket{reaction="cordon",cause="spot",le="30"}': "counter 0",
            'perdure_instances_reaction_seconds_bucket{reaction="cordon",cause="spot",le="60"}': "counter 1",
            'perdure_instances_reaction_seconds_bucket{reaction="cordon",cause="spot",le="+Inf"}': "counter 1",
        },
        {"reaction": "cordon", "cause": "spot"},
        6,
        20,
        17,
    ),
    Case(
        "PerdureInstanceReactionsWait",
        {'perdure_instances_reactions_total{reaction="cordon",cause="scheduled",outcome="waits"}': "counter 3"},
        {"reaction": "cordon", "cause": "scheduled"},
        31,
        60,
        6,
    ),
    Case(
        "PerdureDrainIncomplete",
        {'perdure_instances_reactions_total{reaction="drain",cause="spot",outcome="incomplete"}': "counter 1"},
        {"cause": "spot", "outcome": "incomplete"},
        2,
        10,
        62,
    ),
    Case(
        "PerdureHookLate",
        {'perdure_instances_reactions_total{reaction="complete-hook",cause="hook",outcome="late"}': "counter 1"},
        {"cause": "hook"},
        2,
        10,
        62,
    ),
    Case(
        "PerdureInstanceNotTerminated",
        {
            'perdure_instances_reactions_total{reaction="terminate-instance",cause="spot",'
            'outcome="refused"}': "counter 1"
        },
        {"cause": "spot"},
        2,
        10,
        62,
    ),
    Case(
        "PerdureNotReplacedFirst",
        {'perdure_instances_reactions_total{reaction="replace-first",cause="spot",outcome="incomplete"}': "counter 1"},
        {"cause": "spot", "outcome": "incomplete"},
        2,
        10,
        62,
    ),
    Case(
        "PerdureNotificationsFailed",
        {'perdure_instances_notifications_total{outcome="failed"}': "counter 1"},
        {},
        2,
        10,
        62,
    ),
)


def rules() -> dict[str, dict[str, Any]]:
    groups = yaml.safe_load(ALERTS.read_text())["spec"]["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def values(kind: str, lasts: int) -> str:
    """The values of a series, minute by minute, in promtool's notation.

    `gauge A B` is A while all is well and B while it is not; `counter N` grows by N a minute while it is not; `clock`
    is the time of the minute, and stops while it is not; `mark` is the moment at which it began, and is not
    there while all is well.
    """
    word, *numbers = kind.split()
    begins, ends, rest = WELL + 1, WELL + lasts, 400
    if word == "gauge":
        well, ill = numbers
        return f"{well}+0x{WELL} {ill}+0x{lasts - 1} {well}+0x{rest}"
    if word == "counter":
        each = int(numbers[0])
        return f"0+0x{WELL} {each}+{each}x{lasts - 1} {each * lasts}+0x{rest}"
    if word == "clock":
        return f"0+60x{WELL} {60 * WELL}+0x{lasts - 1} {60 * (ends + 1)}+60x{rest}"
    return f"_x{WELL + 1} {60 * begins}+0x{lasts - 1} _x{rest}"


def promtool_input(case: Case, rule: dict[str, Any]) -> dict[str, Any]:
    """What promtool is asked of a case."""
    labels = {**rule["labels"], **case.labels}
    vanishing = LOOKBACK if "mark" in case.series.values() else 0
    begins, over = WELL + 1, WELL + case.lasts + case.clears + vanishing + SETTLING

    def at(minute: int, *, fires: bool) -> dict[str, Any]:
        expected = [{"exp_labels": labels}] if fires else []
        return {"eval_time": f"{minute}m", "alertname": case.alert, "exp_alerts": expected}

    too_early = [begins + case.after - SETTLING - 1] if case.after > SETTLING else []
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values(kind, case.lasts)} for name, kind in case.series.items()],
        "alert_rule_test": [
            *(at(minute, fires=False) for minute in (WELL, *too_early)),
            at(begins + case.after + SETTLING, fires=True),
            at(over, fires=False),
        ],
    }


@pytest.fixture(scope="module")
def promtool() -> Path:
    try:
        return find_promtool()
    except PromtoolError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def rule_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rules without their texts, which promtool would compare to the letter."""
    groups = yaml.safe_load(ALERTS.read_text())["spec"]["groups"]
    for group in groups:
        for rule in group["rules"]:
            del rule["annotations"]
    file = tmp_path_factory.mktemp("rules") / "rules.json"
    file.write_text(json.dumps({"groups": groups}))
    return file


def test_every_alert_has_its_case() -> None:
    assert sorted(case.alert for case in CASES) == sorted(rules())


def test_each_fires_when_it_happens_and_clears_when_it_is_over(promtool: Path, rule_file: Path, tmp_path: Path) -> None:
    file = tmp_path / "test.json"
    tests = [promtool_input(case, rules()[case.alert]) for case in CASES]
    file.write_text(json.dumps({"rule_files": [str(rule_file)], "evaluation_interval": "1m", "tests": tests}))
    done = subprocess.run([promtool, "test", "rules", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_accepts_the_rules_unchanged(promtool: Path, tmp_path: Path) -> None:
    file = tmp_path / "rules.json"
    file.write_text(json.dumps({"groups": yaml.safe_load(ALERTS.read_text())["spec"]["groups"]}))
    done = subprocess.run([promtool, "check", "rules", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.alert)
def test_its_series_have_these_labels(case: Case) -> None:
    known = published()
    for series in case.series:
        name, _, rest = series.partition("{")
        labels = set(re.findall(r'([a-z_]+)="', rest)) - {"le"}
        assert labels <= known[name], f"{name} has the labels {known[name]}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.alert)
def test_its_text_speaks_of_labels_that_it_has(case: Case) -> None:
    used = set(re.findall(r"\$labels\.(\w+)", rules()[case.alert]["annotations"]["summary"]))
    assert used <= case.labels.keys()


@cache
def published() -> dict[str, set[str]]:
    """Every series that some process publishes, with its labels."""
    return dict(_published())


def _published() -> Iterator[tuple[str, set[str]]]:
    for dispatcher in DISPATCHERS:
        importlib.import_module(dispatcher)
    yield from OTHERS.items()
    yield from OF_A_COLLECTOR.items()
    for collector, names in list(REGISTRY._collector_to_names.items()):
        yield from ((name, set(getattr(collector, "_labelnames", ()))) for name in names if name not in OF_A_COLLECTOR)
    for gauges in gauges_of_areas():
        for family in gauges(Index()):
            yield family.name, set(getattr(family, "_labelnames", ()))
