"""Which changes of the load balancers' area wake which lifecycles, and how silence is noticed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from lb_objects import NOW, ago, balancer, condition, healthy, machine, machine_set

from domain.identity import Key
from domain.loadbalancers import LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET, THE_PROJECTS
from domain.loadbalancers.constants import DRIFT_ANNOTATION, MARKED_AT_ANNOTATION, REVISION_ANNOTATION
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerMachine, LoadBalancerSet
from domain.writes import merge
from starters.watch.loadbalancers import WATCHED
from starters.watch.missed_heartbeats import MissedHeartbeats
from starters.watch.projection import Projection
from starters.watch.projection_index import Index
from starters.watch.watched_kinds import Watched

ENTRIES = {entry.name: entry for entry in WATCHED}


def seen(of: LoadBalancer | LoadBalancerSet | LoadBalancerMachine, **changes: Any) -> Projection:
    entry: Watched = ENTRIES[of.kind_of.name]
    body = merge(of.model_dump(mode="json", by_alias=True), changes)
    assert isinstance(body, dict)
    return entry.project("", body)


def test_a_write_by_a_services_workflow_or_the_sweep_is_news_to_the_load_balancer() -> None:
    before = seen(balancer())
    assert seen(balancer(), metadata={"generation": 2}).handed != before.handed
    assert seen(balancer(), metadata={"annotations": {DRIFT_ANNOTATION: "now"}}).handed != before.handed


def test_a_load_balancers_own_write_is_an_echo() -> None:
    before = seen(balancer())
    ready = seen(balancer(), status={"readyReplicas": 1})
    assert ready.handed == before.handed
    assert ready.fingerprint != before.fingerprint, "its Service waits for that"
    blanked = seen(balancer(), status={"portID": ""})
    assert blanked.fingerprint != before.fingerprint, "news, if a person does it"
    assert blanked.handed == before.handed


@pytest.mark.parametrize("field", ["floatingName", "portIP", "securityGroupName", "lastOpenstackReconcile"])
def test_whatever_is_blanked_of_a_status_wakes_its_load_balancer(field: str) -> None:
    status = {"floatingName": "a/b", "portIP": "10.0.0.1", "securityGroupName": "a/b", "lastOpenstackReconcile": ago()}
    assert seen(balancer(status=status)).fingerprint != seen(balancer(status={**status, field: None})).fingerprint


@pytest.mark.parametrize("field", ["serverID", "defaultPortID", "lastOpenstackReconcile"])
def test_whatever_is_blanked_of_a_status_wakes_its_machine(field: str) -> None:
    status = {"serverID": "server-1", "defaultPortID": "port-2", "lastOpenstackReconcile": ago()}
    assert seen(machine(status=status)).fingerprint != seen(machine(status={**status, field: None})).fingerprint


def test_a_report_without_news_wakes_no_lifecycle() -> None:
    once, again = (seen(machine(conditions=healthy(beat=ago(seconds=each)))) for each in (60, 30))
    assert once.fingerprint == again.fingerprint
    unready = seen(machine(conditions=[*healthy()[:2], condition("EnvoyUpToDate", "False")]))
    assert unready.fingerprint != once.fingerprint


def test_the_mark_of_its_set_is_news_to_a_machine() -> None:
    before = seen(machine())
    assert seen(machine(), metadata={"annotations": {MARKED_AT_ANNOTATION: "now"}}).handed != before.handed


@pytest.mark.parametrize("of", [balancer(), machine_set(), machine()])
def test_a_finalizer_of_ours_that_is_taken_away_is_news(
    of: LoadBalancer | LoadBalancerSet | LoadBalancerMachine,
) -> None:
    held = seen(of, metadata={"finalizers": [of.kind_of.finalizer]})
    assert held.fingerprint != seen(of).fingerprint


OWNER = [{"kind": "LoadBalancerSet", "name": "web--shop-aaaa"}]
LABELLED = {"lbm-template-hash": "aaaa"}


@pytest.mark.parametrize(
    ("was", "is_now"),
    [
        ({"ownerReferences": OWNER, "labels": LABELLED}, {"ownerReferences": OWNER}),  # taken out for a look
        ({"ownerReferences": OWNER}, {"ownerReferences": OWNER, "labels": LABELLED}),
        ({"ownerReferences": OWNER}, {}),
        ({}, {"ownerReferences": OWNER}),
        ({}, {"labels": LABELLED}),  # a copy
        ({"labels": LABELLED}, {}),
        (None, {"labels": LABELLED}),
    ],
)
def test_a_machine_that_is_put_into_a_set_or_taken_out_of_it_is_news_to_the_set(was: Any, is_now: Any) -> None:
    index, owner = Index(), seen(machine_set("web--shop-aaaa"))
    index.of(LOAD_BALANCER_SET.name)[owner.name] = owner
    entry = ENTRIES[LOAD_BALANCER_MACHINE.name]
    before = None if was is None else seen(machine(metadata=was))
    after = seen(machine(metadata=is_now))
    assert before is None or before.fingerprint != after.fingerprint
    assert entry.relatives(before, after, index) == {owner.key}
    assert entry.relatives(after, after, index) == set()


def test_a_machine_of_no_set_and_of_another_template_wakes_none() -> None:
    index, other = Index(), seen(machine_set("web--shop-bbbb"))
    index.of(LOAD_BALANCER_SET.name)[other.name] = other
    alone = seen(machine(metadata={"labels": LABELLED}))
    assert ENTRIES[LOAD_BALANCER_MACHINE.name].relatives(None, alone, index) == set()


def test_a_set_whose_label_owner_or_revision_is_changed_is_news_to_its_load_balancer() -> None:
    index, owner = Index(), seen(balancer())
    index.of("LoadBalancer")[owner.name] = owner
    before, entry = seen(machine_set()), ENTRIES[LOAD_BALANCER_SET.name]
    revision = {"annotations": {REVISION_ANNOTATION: "9"}}
    for change in ({"labels": {"lbm-template-hash": "other"}}, {"ownerReferences": []}, revision):
        after = seen(machine_set(), metadata=change)
        assert after.fingerprint != before.fingerprint
        assert entry.relatives(before, after, index) == {owner.key}
    assert entry.relatives(before, before, index) == set()


def test_a_security_group_is_news_to_a_machine_of_another_namespace() -> None:
    index = Index()
    waits = seen(machine(metadata={"namespace": "away"}))
    index.of(LOAD_BALANCER_MACHINE.name)[waits.name] = waits
    before, after = (seen(balancer(status={"securityGroupID": group})) for group in (None, "sg-1"))
    assert waits.key in ENTRIES["LoadBalancer"].relatives(before, after, index)


def test_a_new_load_balancer_wakes_the_sweep() -> None:
    entry = ENTRIES["LoadBalancer"]
    assert THE_PROJECTS in entry.relatives(None, seen(balancer()), Index())
    assert entry.relatives(seen(balancer()), seen(balancer()), Index()) == set()


def test_silence_is_reported_once_when_it_begins_and_once_when_it_ends() -> None:
    index, clock = Index(), [NOW.timestamp()]
    owner = machine_set("web--shop-aaaa")
    of = {"ownerReferences": [{"kind": "LoadBalancerSet", "name": "web--shop-aaaa", "uid": owner.metadata.uid}]}
    index.of(LOAD_BALANCER_SET.name)[("lbs", "web--shop-aaaa")] = seen(owner)

    def reported(seconds: int) -> None:
        found = seen(machine(conditions=healthy(beat=ago(seconds=seconds)), metadata=of))
        index.of(LOAD_BALANCER_MACHINE.name)[found.name] = found

    silence = MissedHeartbeats(WATCHED, index, clock=lambda: clock[0])
    reported(0)
    news: list[set[Key]] = []
    for later in (0, 180, 181, 240):
        clock[0] = (NOW + timedelta(seconds=later)).timestamp()
        news.append(silence.news())
    assert news == [set(), set(), {seen(owner).key}, set()]
    reported(-240)
    assert (silence.news(), silence.news()) == ({seen(owner).key}, set())


@pytest.mark.parametrize("beat", [ago(minutes=9), "9999-12-31T23:59:59Z"])
def test_a_machine_that_fell_silent_during_downtime_is_reported_at_the_start(beat: str) -> None:
    index = Index()
    owner = machine_set("web--shop-aaaa")
    of = {"ownerReferences": [{"kind": "LoadBalancerSet", "name": "web--shop-aaaa", "uid": owner.metadata.uid}]}
    index.of(LOAD_BALANCER_SET.name)[("lbs", "web--shop-aaaa")] = seen(owner)
    found = seen(machine(conditions=healthy(beat=beat), metadata=of))
    index.of(LOAD_BALANCER_MACHINE.name)[found.name] = found
    assert MissedHeartbeats(WATCHED, index, clock=NOW.timestamp).news() == {seen(owner).key}
