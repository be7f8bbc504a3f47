"""Which lifecycles a change of a Service, a Node, a LoadBalancer or an Event wakes."""

from __future__ import annotations

from typing import Any, cast

import pytest
from lb_objects import INSTALLATION, balancer, node, service

from domain.identity import Key
from domain.loadbalancers import LOAD_BALANCER, SERVICE
from domain.resource import CustomResource, KubeModel
from domain.writes import merge
from engine.kube import NODE, KubeApi
from engine.kube.json import JsonObject
from starters.watch.loadbalancers import WATCHED
from starters.watch.projection import Projection, project
from starters.watch.projection_index import Index
from starters.watch.services import EVENTS, Reading
from starters.watch.watcher import Watcher

READING = Reading(INSTALLATION)
ENTRIES = {entry.name: entry for entry in (*READING.watched(), *WATCHED)}
FOREIGN = {"spec": {"loadBalancerClass": "other"}}
PLAIN = {"spec": {"type": "ClusterIP"}}


def on_the_wire(model: KubeModel | CustomResource, **changes: Any) -> JsonObject:
    found = merge(model.model_dump(mode="json"), changes)
    assert isinstance(found, dict)
    return found


def seen(**changes: Any) -> Projection:
    obj = on_the_wire(service(), metadata={"uid": "s", "resourceVersion": "1"})
    return ENTRIES[SERVICE.name].project("", merge(obj, changes))  # type: ignore[arg-type]


def seen_balancer(**changes: Any) -> Projection:
    return ENTRIES[LOAD_BALANCER.name].project("", on_the_wire(balancer(), **changes))


def seen_node(**changes: Any) -> Projection:
    return ENTRIES[NODE.name].project("", on_the_wire(node("node-a", "10.0.0.1"), **changes))


def index(*services: Projection, balancers: tuple[Projection, ...] = ()) -> Index:
    found = Index()
    for each in services:
        found.of(SERVICE.name)[each.name] = each
    for each in balancers:
        found.of(LOAD_BALANCER.name)[each.name] = each
    return found


OURS = Key(kind="Service", namespace="web", name="shop", uid="s")


# --- which Services have lifecycles ---


@pytest.mark.parametrize(
    ("changes", "lives"),
    [
        ({}, True),
        ({"metadata": {"finalizers": None}}, True),
        ({"metadata": {"deletionTimestamp": "2026-05-01T11:00:00Z"}}, True),
        (PLAIN, True),
        (FOREIGN, False),
        ({**PLAIN, "metadata": {"finalizers": None}}, False),
        ({**FOREIGN, "metadata": {"finalizers": None}}, False),
    ],
    ids=["ours", "new", "deleted", "held", "foreign and held", "of another type", "foreign"],
)
def test_only_services_that_concern_us_have_lifecycles(changes: dict[str, Any], lives: bool) -> None:
    assert READING.lives(seen(**changes), index()) is lives


def test_a_service_of_another_class_has_one_while_its_load_balancer_is_there() -> None:
    left = index(balancers=(seen_balancer(),))
    assert READING.lives(seen(**FOREIGN), left)
    others = seen_balancer(metadata={"annotations": {"yawol.stackit.cloud/serviceName": "web/other"}})
    assert not READING.lives(seen(**FOREIGN), index(balancers=(others,)))


def test_where_foreign_services_are_released_the_finalizer_is_enough() -> None:
    releasing = Reading(INSTALLATION.model_copy(update={"release_foreign": True}))
    obj = on_the_wire(service(), **FOREIGN)
    assert releasing.lives(project(SERVICE.name, "", obj, releasing.service), index())


# --- what is news ---


@pytest.mark.parametrize(
    "changes",
    [
        {"spec": {"ports": []}},
        {"spec": {"type": "ClusterIP"}},
        {"spec": {"loadBalancerSourceRanges": ["10.0.0.0/8"]}},
        {"metadata": {"annotations": {"yawol.stackit.cloud/replicas": "2"}}},
        {"metadata": {"annotations": {"logging.yawol.stackit.cloud/team": "web"}}},
        {"metadata": {"annotations": {"perdure.dev/paused": "true"}}},
        {"metadata": {"finalizers": []}},
        {"metadata": {"deletionTimestamp": "2026-05-01T11:00:00Z"}},
        {"status": {"loadBalancer": None}},
    ],
    ids=str,
)
def test_the_inputs_of_the_decision_are_news(changes: dict[str, Any]) -> None:
    assert seen(**changes).fingerprint != seen().fingerprint


@pytest.mark.parametrize(
    "changes",
    [
        {"metadata": {"resourceVersion": "2", "labels": {"a": "b"}}},
        {"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}},
        {"spec": {"sessionAffinity": "ClientIP", "clusterIP": "10.96.0.7"}},
    ],
    ids=str,
)
def test_anything_else_is_none(changes: dict[str, Any]) -> None:
    assert seen(**changes).fingerprint == seen().fingerprint


def test_a_heartbeat_of_a_node_is_no_news_and_its_readiness_is() -> None:
    beat = [
        {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-05-01T12:00:00Z"},
        {"type": "MemoryPressure"},
    ]
    assert seen_node(status={"conditions": beat}).fingerprint == seen_node().fingerprint
    unready = [{"type": "Ready", "status": "Unknown"}]
    assert seen_node(status={"conditions": unready}).fingerprint != seen_node().fingerprint


# --- which Services it concerns ---


def test_a_node_concerns_every_service_that_wants_a_load_balancer() -> None:
    plain = seen(**PLAIN, metadata={"name": "plain", "uid": "p"})
    assert ENTRIES[NODE.name].relatives(None, seen_node(), index(seen(), plain)) == {OURS}


@pytest.mark.parametrize(
    "changes",
    [
        {"status": {"externalIP": "203.0.113.99"}},
        {"status": {"readyReplicas": 1}},
        {"spec": {"replicas": 0}},
        {"metadata": {"generation": 9}},
        {"metadata": {"annotations": {"yawol.stackit.cloud/serviceName": None}}},
        {"metadata": {"deletionTimestamp": "2026-05-01T11:00:00Z"}},
    ],
    ids=str,
)
def test_awaited_changes_of_its_load_balancer_wake_a_service(changes: dict[str, Any]) -> None:
    before, after = seen_balancer(), seen_balancer(**changes)
    assert OURS in ENTRIES[LOAD_BALANCER.name].relatives(before, after, index(seen()))
    assert before.fingerprint != after.fingerprint, "else no lifecycle would be asked"


def test_a_load_balancer_that_is_gone_or_new_wakes_its_service() -> None:
    assert OURS in ENTRIES[LOAD_BALANCER.name].relatives(seen_balancer(), None, index(seen()))
    assert OURS in ENTRIES[LOAD_BALANCER.name].relatives(None, seen_balancer(), index(seen()))


def test_a_load_balancer_that_is_gone_wakes_each_service_whose_name_it_had() -> None:
    theirs = {"name": "a--b--c", "annotations": {"yawol.stackit.cloud/serviceName": "a/b--c"}}
    waiting = seen(metadata={"namespace": "a--b", "name": "c"})
    gone = seen_balancer(metadata=theirs)
    assert waiting.key in ENTRIES[LOAD_BALANCER.name].relatives(gone, None, index(waiting))


def test_other_cloud_fields_than_the_address_do_not_concern_the_service() -> None:
    known = index(seen())
    assert (
        ENTRIES[LOAD_BALANCER.name].relatives(seen_balancer(), seen_balancer(status={"portID": "port-2"}), known)
        == set()
    )


def test_a_write_by_its_service_wakes_a_load_balancer_though_perdure_wrote_it() -> None:
    assert seen_balancer(metadata={"generation": 9}).handed != seen_balancer().handed


def test_an_event_about_a_load_balancer_wakes_its_service() -> None:
    recorded = {"metadata": {"namespace": "lbs", "name": "event.1"}, "involvedObject": {"name": "web--shop"}}
    found = ENTRIES[EVENTS].project("", recorded)
    assert ENTRIES[EVENTS].relatives(None, found, index(seen(), balancers=(seen_balancer(),))) == {OURS}
    assert ENTRIES[EVENTS].relatives(found, None, index(seen(), balancers=(seen_balancer(),))) == set()
    assert ENTRIES[EVENTS].relatives(None, found, index(seen())) == set()


def test_the_watched_kinds_and_namespaces() -> None:
    watched = {each.name: each for each in READING.watched()}
    assert set(watched) == {"Service", "Node", EVENTS}
    assert [name for name, each in watched.items() if each.kind.served] == ["Service", "Node"]
    assert watched[EVENTS].followed.namespace == "lbs"
    assert watched[EVENTS].followed.field_selector == "involvedObject.kind=LoadBalancer,source=yawol-service"


# --- at work in the watcher ---


def woken(before: Projection | None, after: Projection | None, known: Index | None = None) -> set[Key]:
    """The lifecycles that a change of a Service wakes."""

    async def wake(_: Key) -> None:
        raise AssertionError("not reached: nothing drains the queue here")

    subject = Watcher(cast("KubeApi", None), wake, READING.watched())
    for name, each in (known.of(LOAD_BALANCER.name) if known else {}).items():
        subject.index.of(LOAD_BALANCER.name)[name] = each
    (entry,) = (each for each in READING.watched() if each.name == SERVICE.name)
    subject.changed(entry, before, after, seen_live=True)
    return set(subject.queue.outstanding())


LEFT = {**PLAIN, "metadata": {"finalizers": None}}


def test_a_service_of_another_class_wakes_no_lifecycle() -> None:
    assert woken(None, seen(**LEFT)) == set()
    assert woken(seen(**LEFT), seen(**merge(LEFT, {"spec": {"ports": []}}))) == set()  # type: ignore[arg-type]
    assert woken(seen(**LEFT), None) == set()


def test_a_service_that_begins_or_ceases_to_be_ours_is_woken() -> None:
    assert woken(seen(**LEFT), seen()) == {OURS}
    assert woken(seen(), seen(**LEFT)) == {OURS}
    assert woken(seen(), None) == {OURS}
    assert woken(None, seen(**FOREIGN), index(balancers=(seen_balancer(),))) == {OURS}


def test_an_event_before_the_list_of_load_balancers_still_reaches_its_service() -> None:
    async def wake(_: Key) -> None:
        raise AssertionError("not reached: nothing drains the queue here")

    subject = Watcher(cast("KubeApi", None), wake, READING.watched())
    watched = {each.name: each for each in READING.watched()}
    recorded = {"metadata": {"namespace": "lbs", "name": "event.1"}, "involvedObject": {"name": "web--shop"}}
    subject.changed(watched[EVENTS], None, ENTRIES[EVENTS].project("", recorded), seen_live=True)
    assert set(subject.queue.outstanding()) == set()
    for each in (seen(), seen_balancer()):
        subject.index.of(each.key.kind)[each.name] = each
    subject.started(watched[SERVICE.name], [])
    assert set(subject.queue.outstanding()) == {OURS}
