"""The load balancers' gauges under yawol's names: labels, values, and when there is none."""

from __future__ import annotations

from typing import Any

import pytest
from lb_objects import NOW, ago, balancer, condition, healthy, machine, machine_set
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from domain.loadbalancers.resources import LoadBalancerMachine
from domain.loadbalancers.services.objects import Installation
from domain.resource import CustomResource
from domain.writes import merge
from starters.watch.gauges import published
from starters.watch.loadbalancer_metrics import balancer_gauges
from starters.watch.loadbalancers import WATCHED, read_machine
from starters.watch.projection import project
from starters.watch.projection_index import Index
from starters.watch.services import Reading

READ = {entry.kind.name: entry.read for entry in WATCHED}
LB = {"lb": "web--shop", "namespace": "lbs"}
LBS = {**LB, "lbs": "web--shop-aaaa"}
LBM = {**LB, "lbm": "web--shop-aaaa-00001"}
DELETED: dict[str, Any] = {"metadata": {"deletionTimestamp": ago(minutes=1)}}


def annotated(name: str) -> dict[str, Any]:
    return {"annotations": {f"perdure.dev/{name}": "why"}}


Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scrape(*objects: CustomResource) -> Series:
    """One answer of /metrics, read as Prometheus reads it."""
    index = Index()
    for each in objects:
        kind = each.kind_of.name
        body = each.model_dump(mode="json", by_alias=True, exclude_unset=True)
        known = project(kind, "", body, READ[kind])
        index.of(kind)[known.name] = known
    registry = CollectorRegistry()
    with published(index, registry):
        answer = generate_latest(registry).decode()
    found: Series = {}
    for family in text_string_to_metric_families(answer):
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found, f"{sample.name} twice"
            found[key] = sample.value
    return found


def value(series: Series, name: str, **labels: str) -> float | None:
    return series.get((name, frozenset(labels.items())))


def named(series: Series, name: str) -> list[dict[str, str]]:
    return [dict(labels) for known, labels in series if known == name]


def test_the_state_of_a_load_balancer_is_a_metric_with_labels() -> None:
    options = {"tcpIdleTimeout": "90s", "logForward": {"enabled": True, "lokiUrl": "http://loki"}}
    scraped = scrape(balancer(spec={"options": {"internalLB": True, **options}}))
    assert named(scraped, "loadbalancer_info") == [
        {
            **LB,
            "isInternal": "true",
            "tcpProxyProtocol": "false",
            "externalIP": "203.0.113.7",
            "tcpIdleTimeout": "1m30s",
            "udpIdleTimeout": "nil",
            "lokiEnabled": "true",
        }
    ]


def test_cloud_resources_of_a_load_balancer_are_counted_and_nil_where_it_has_none() -> None:
    scraped = scrape(balancer(status={"floatingID": None, "securityGroupID": None, "security_group_id": "former"}))
    expected = {"portID": "port-1", "floatingID": "nil", "securityGroupID": "former", "flavorID": "small"}
    assert named(scraped, "loadbalancer_openstack_info") == [{**LB, **expected}]


def test_counts_are_absent_until_they_are_known() -> None:
    scraped = scrape(balancer(spec={"replicas": 3}))
    assert value(scraped, "loadbalancer_replicas", **LB) == 3
    assert named(scraped, "loadbalancer_replicas_current") == named(scraped, "loadbalancer_replicas_ready") == []
    scraped = scrape(balancer(status={"replicas": 3, "readyReplicas": 0}))
    assert value(scraped, "loadbalancer_replicas_current", **LB) == 3
    assert value(scraped, "loadbalancer_replicas_ready", **LB) == 0


def test_an_object_being_deleted_wants_no_machine_and_shows_since_when() -> None:
    """W17."""
    since = (NOW.timestamp() // 60 - 1) * 60
    scraped = scrape(balancer(**DELETED), machine_set(**DELETED), machine(**DELETED))
    assert value(scraped, "loadbalancer_replicas", **LB) == value(scraped, "loadbalancerset_replicas", **LBS) == 0
    assert value(scraped, "loadbalancer_deletion_timestamp", **LB) == since
    assert value(scraped, "loadbalancerset_deletion_timestamp", **LBS) == since
    assert value(scraped, "loadbalancermachine_deletion_timestamp", **LBM) == since
    scraped = scrape(balancer(), machine_set(), machine())
    assert not [name for name, _ in scraped if name.endswith("_deletion_timestamp")]


def test_a_set_has_a_metric_with_the_load_balancer_it_serves() -> None:
    scraped = scrape(machine_set(spec={"replicas": 2}, status={"replicas": 2, "readyReplicas": 1}))
    assert value(scraped, "loadbalancerset_replicas", **LBS) == 2
    assert value(scraped, "loadbalancerset_replicas_current", **LBS) == 2
    assert value(scraped, "loadbalancerset_replicas_ready", **LBS) == 1
    assert value(scraped, "perdure_loadbalancerset_boot_failures", **LBS) == 0


def test_machines_that_did_not_boot_are_counted() -> None:
    scraped = scrape(machine_set(metadata={"annotations": {"perdure.dev/boot-failures": "uid-1,uid-2,uid-3"}}))
    assert value(scraped, "perdure_loadbalancerset_boot_failures", **LBS) == 3


def test_a_report_that_wakes_no_lifecycle_changes_the_metrics_all_the_same() -> None:
    """W17: what agents measure is not five minutes old, but as they reported it last."""

    def reported(load: str, beat: str) -> LoadBalancerMachine:
        return machine(conditions=healthy(beat=beat), status={"metrics": [measurement("load1", load)]})

    before, after = reported("0.10", ago(seconds=40)), reported("0.90", ago(seconds=10))
    seen = [
        project("LoadBalancerMachine", "", each.model_dump(mode="json", by_alias=True), read_machine)
        for each in (before, after)
    ]
    assert seen[0].fingerprint == seen[1].fingerprint, "it is no news to any workflow"
    scraped = [scrape(each) for each in (before, after)]
    assert [value(each, "loadbalancermachine", type="load1", **LBM) for each in scraped] == [0.1, 0.9]
    beats = [value(each, "perdure_loadbalancermachine_report_timestamp_seconds", **LBM) for each in scraped]
    assert beats == [NOW.timestamp() - 40, NOW.timestamp() - 10]


def measurement(type_: str, number: str) -> dict[str, str]:
    return {"type": type_, "value": number, "timestamp": ago(seconds=5)}


def test_an_agents_measurements_are_metrics_where_they_are_numbers() -> None:
    metrics = [
        measurement("load1", "0.25"),
        measurement("TCP-80-upstream_cx_active", "7"),
        measurement("memFree", "plenty"),
        measurement("load5", "inf"),
        measurement("load1", "0.50"),
    ]
    scraped = scrape(machine(conditions=healthy(), status={"metrics": metrics}))
    assert {each["type"] for each in named(scraped, "loadbalancermachine")} == {"load1", "TCP-80-upstream_cx_active"}
    assert value(scraped, "loadbalancermachine", type="TCP-80-upstream_cx_active", **LBM) == 7
    assert value(scraped, "loadbalancermachine", type="load1", **LBM) == 0.5


def test_an_agents_findings_are_counted_once_by_condition() -> None:
    """W28: conditions are no map list, so a condition may occur twice."""
    twice = [condition("EnvoyReady", "False"), condition("EnvoyReady", "True", beat=ago(seconds=40))]
    scraped = scrape(machine(conditions=twice))
    expected = {**LBM, "condition": "EnvoyReady", "reason": "R", "status": "True"}
    assert named(scraped, "loadbalancermachine_condition") == [expected]
    reported = value(scraped, "perdure_loadbalancermachine_report_timestamp_seconds", **LBM)
    assert reported == NOW.timestamp() - 40


def test_a_machine_that_never_reported_has_no_moment_of_a_report() -> None:
    scraped = scrape(machine())
    assert named(scraped, "perdure_loadbalancermachine_report_timestamp_seconds") == []
    expected = {"portID": "nil", "serverID": "server-1", "flavorID": "small", "imageID": "nil"}
    assert named(scraped, "loadbalancermachine_openstack_info") == [{**LBM, **expected}]


@pytest.mark.parametrize(
    ("obj", "kind", "phase"),
    [
        (balancer(status={"externalIP": None}), "LoadBalancer", "Provisioning"),
        (balancer(), "LoadBalancer", "NotReady"),
        (balancer(spec={"replicas": 2}, status={"readyReplicas": 1}), "LoadBalancer", "Degraded"),
        (balancer(status={"readyReplicas": 1}), "LoadBalancer", "Ready"),
        (balancer(spec={"replicas": 0}), "LoadBalancer", "Empty"),
        (balancer(**DELETED), "LoadBalancer", "Deleting"),
        (balancer(metadata={"annotations": {"perdure.dev/paused": "true"}}), "LoadBalancer", "Paused"),
        (machine_set(status={"readyReplicas": 1}), "LoadBalancerSet", "Ready"),
        (machine_set(spec={"replicas": 0}), "LoadBalancerSet", "Empty"),
        (machine(status={"serverID": None}), "LoadBalancerMachine", "Provisioning"),
        (machine(), "LoadBalancerMachine", "Booting"),
        (machine(conditions=healthy()), "LoadBalancerMachine", "Ready"),
        (machine(conditions=healthy()[:2]), "LoadBalancerMachine", "NotReady"),
        (machine(conditions=[*healthy(), condition("MarkedForDeletion")]), "LoadBalancerMachine", "Marked"),
        (machine(metadata=annotated("given-up")), "LoadBalancerMachine", "GivenUp"),
        (machine(metadata=annotated("waits-for-quota")), "LoadBalancerMachine", "WaitsForQuota"),
        (machine(**DELETED), "LoadBalancerMachine", "Deleting"),
    ],
)
def test_lifecycles_are_counted_by_the_phase_that_they_show(obj: CustomResource, kind: str, phase: str) -> None:
    scraped = scrape(obj)
    assert [each for each in named(scraped, "perdure_lifecycles") if each["kind"] == kind] == [
        {"kind": kind, "phase": phase}
    ]


INSTALLATION = Installation(
    namespace="lbs", secret_name="cloud", floating_net_id="ext", network_id="net", flavor_id="f", image_id="i"
)
ADDRESS = {"loadBalancer": {"ingress": [{"ip": "203.0.113.7"}]}}
AT_FAULT = {"conditions": [{"type": "perdure.dev/Misconfigured", "status": "True", "reason": "Unservable"}], **ADDRESS}


@pytest.mark.parametrize(
    ("spec", "status", "phases"),
    [
        ({"type": "LoadBalancer"}, {}, {"Waiting": 1.0}),
        ({"type": "LoadBalancer"}, ADDRESS, {"Ready": 1.0}),
        ({"type": "LoadBalancer"}, AT_FAULT, {"Unservable": 1.0}),
        ({"type": "LoadBalancer", "loadBalancerClass": "somebody.else/s"}, ADDRESS, {}),
        ({"type": "ClusterIP"}, {}, {}),
    ],
)
def test_services_that_want_a_load_balancer_are_counted(
    spec: dict[str, Any], status: dict[str, Any], phases: dict[str, float]
) -> None:
    body = {"metadata": {"name": "shop", "namespace": "web", "uid": "u"}, "spec": spec, "status": status}
    index = Index()
    index.of("Service")[("web", "shop")] = project("Service", "", body, Reading(INSTALLATION).service)
    (family,) = (each for each in balancer_gauges(index) if each.name == "perdure_lifecycles")
    assert {sample.labels["phase"]: sample.value for sample in family.samples} == phases


@pytest.mark.parametrize(
    ("sets", "rolling"),
    [
        ([machine_set()], 0),
        ([machine_set(), machine_set("web--shop-bbbb")], 1),
        ([machine_set(), machine_set("web--shop-bbbb", spec={"replicas": 0})], 0),
        ([machine_set(), machine_set("web--shop-bbbb", **DELETED)], 0),
        ([machine_set(), machine_set("web--shop-bbbb", metadata={"ownerReferences": []})], 0),
    ],
)
def test_a_rollout_is_shown_while_two_sets_have_machines(sets: list[CustomResource], rolling: float) -> None:
    assert value(scrape(balancer(), *sets), "perdure_loadbalancer_rolling_out", **LB) == rolling


@pytest.mark.parametrize(
    "spoiled",
    [
        {"status": {"externalIP": 7, "replicas": "many", "readyReplicas": True}},
        {"spec": {"replicas": "three", "options": {"tcpIdleTimeout": "soon"}}},
        {"spec": None, "status": None},
    ],
)
def test_a_malformed_object_hides_no_other_objects_metrics(spoiled: dict[str, Any]) -> None:
    index = Index()
    for name, changes in (("web--shop", {}), ("spoiled", {**spoiled, "metadata": {"name": "spoiled"}})):
        body = merge(balancer().model_dump(mode="json", by_alias=True, exclude_unset=True), changes)
        assert isinstance(body, dict)
        known = project("LoadBalancer", "", body, READ["LoadBalancer"])
        index.of("LoadBalancer")[("lbs", name)] = known
    registry = CollectorRegistry()
    with published(index, registry):
        answer = generate_latest(registry).decode()
    assert 'loadbalancer_replicas{lb="web--shop",namespace="lbs"} 1.0' in answer
    assert 'loadbalancer_info{externalIP="nil",' in answer or 'tcpIdleTimeout="nil"' in answer
