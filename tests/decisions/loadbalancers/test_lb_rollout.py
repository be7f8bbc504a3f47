"""The sets of a LoadBalancer: the current one, revisions, the gate, and what becomes of the others."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from lb_objects import LABELS, NOW, ago, balancer, machine_set

from domain.loadbalancers.resources import LoadBalancer, LoadBalancerSet
from domain.loadbalancers.rollout import Rollout, gate_of, plan_rollout, sets_of
from domain.loadbalancers.template_hash import template_hash
from domain.writes import merge

REVISION = "loadbalancer.yawol.stackit.cloud/revision"
CURRENT = template_hash(balancer())
SECOND = timedelta(seconds=1)


def revised(of: LoadBalancer, revision: str | None) -> LoadBalancer:
    patch = {"metadata": {"annotations": {REVISION: revision}}}
    return LoadBalancer.model_validate(merge(of.model_dump(mode="json"), patch))


def a_set(
    hash_: str = CURRENT,
    *,
    revision: int | str = 1,
    replicas: int = 1,
    ready: int | None = None,
    master: str | None = "True",
    since: str = "",
    **changes: Any,
) -> LoadBalancerSet:
    """A set whose machines are all ready and have long held the address, by default."""
    found = {"type": "HasKeepalivedMaster", "status": master, "lastTransitionTime": since or ago(hours=1)}
    body = {
        "metadata": {"annotations": {REVISION: str(revision) if revision != "" else None}},
        "spec": {"replicas": replicas},
        "status": {
            "replicas": replicas,
            "readyReplicas": replicas if ready is None else ready,
            "conditions": [{**found, "reason": "R", "message": ""}] if master else [],
        },
    }
    return machine_set(f"web--shop-{hash_}", **merge(body, changes))  # type: ignore[arg-type]


def plan(of: LoadBalancer, *sets: LoadBalancerSet, **how: Any) -> Rollout:
    return plan_rollout(of, sets_of(of, sets), NOW, **how)


def zeroed(found: Rollout) -> list[str]:
    return [each.name for each in found.patches if each.patch == {"spec": {"replicas": 0}}]


COUNTED = {"replicas": 1, "readyReplicas": 1}

# --- the first set ---


def test_the_first_set_is_made_from_the_load_balancer() -> None:
    found = plan(revised(balancer(spec={"replicas": 2}), None))
    assert found.revise == {"metadata": {"annotations": {REVISION: "1"}}}
    labels = {**LABELS, "lbm-template-hash": CURRENT}
    assert found.create is not None
    assert found.create.document["metadata"] == {
        "name": f"web--shop-{CURRENT}",
        "namespace": "lbs",
        "labels": labels,
        "annotations": {REVISION: "1"},
        "finalizers": ["stackit.cloud/loadbalancermachine"],
        "ownerReferences": [
            {
                "apiVersion": "yawol.stackit.cloud/v1beta1",
                "kind": "LoadBalancer",
                "name": "web--shop",
                "uid": "lb-uid",
            }
        ],
    }
    made = LoadBalancerSet.model_validate(found.create.document)
    assert (made.spec.replicas, made.spec.selector.match_labels, made.spec.template.labels) == (2, labels, labels)
    spec = made.spec.template.spec
    assert spec.infrastructure == balancer().spec.infrastructure
    assert (spec.port_id, spec.server_group_id) == ("port-1", "")
    assert (spec.load_balancer_ref.name, spec.load_balancer_ref.namespace) == ("web--shop", "lbs")


def test_a_set_that_was_just_made_needs_nothing_more() -> None:
    create = plan(revised(balancer(), None)).create
    assert create is not None
    made = LoadBalancerSet.model_validate(create.document)
    found = plan(balancer(), made)
    assert (found.revise, found.create, found.patches) == ({}, None, ())
    assert found.why == f"ready machines of web--shop-{CURRENT}: 0 of 1"


def test_no_set_is_made_before_there_is_a_port() -> None:
    found = plan(balancer(status={"portID": None}))
    assert (found.create, found.why) == (None, "waits for the port with the virtual address")


def test_a_settled_load_balancer_asks_for_nothing() -> None:
    found = plan(balancer(status=COUNTED), a_set())
    assert found == Rollout(done=True)


def test_a_revision_that_is_none_is_a_problem_for_a_person() -> None:
    found = plan(revised(balancer(), "one"), a_set())
    assert "is 'one', not a revision: correct or remove it" in found.problem
    assert (found.patches, found.create) == ((), None)


# --- a new template ---


def test_a_new_template_makes_a_set_of_the_next_revision_beside_the_old() -> None:
    found = plan(balancer(), a_set("old", revision=4))
    assert found.create is not None
    assert found.create.document["metadata"]["annotations"] == {REVISION: "5"}  # type: ignore[index]
    assert found.revise == {"metadata": {"annotations": {REVISION: "5"}}}
    assert found.patches == ()


def test_the_old_set_stays_until_all_new_machines_are_ready() -> None:
    of = revised(balancer(spec={"replicas": 2}), "2")
    new = a_set(revision=2, replicas=2, ready=1)
    found = plan(of, new, a_set("old", replicas=2))
    assert (found.patches, found.done, found.why) == (
        (),
        False,
        f"ready machines of web--shop-{CURRENT}: 1 of 2",
    )


@pytest.mark.parametrize(
    ("master", "since", "opens_in"),
    [
        ("True", ago(seconds=119), 2),
        ("True", ago(seconds=120), 1),
        ("True", ago(seconds=121), 0),
        ("False", ago(minutes=9), 61),
        ("False", ago(seconds=601), 0),
        (None, "", 0),
    ],
)
def test_the_gate_opens_to_the_second(master: str | None, since: str, opens_in: int) -> None:
    current = a_set(revision=2, master=master, since=since)  # an hour old
    found = plan(revised(balancer(), "2"), current, a_set("old"))
    assert zeroed(found) == ([] if opens_in else ["web--shop-old"])
    assert found.deadline == (NOW + opens_in * SECOND if opens_in else None)


@pytest.mark.parametrize(
    ("master", "since", "ready_since", "opens_in"),
    [
        ("False", ago(hours=1), ago(minutes=9), 61),
        ("False", ago(minutes=9), ago(hours=1), 61),
        ("False", ago(hours=1), ago(seconds=601), 0),
        ("False", ago(hours=1), "when it was", 0),
        ("False", ago(hours=1), "9999-12-31T23:59:59Z", 0),
        ("True", ago(seconds=119), ago(), 2),
        ("True", ago(minutes=3), ago(), 0),
    ],
)
def test_that_no_machine_holds_the_address_counts_from_when_all_were_ready(
    master: str, since: str, ready_since: str, opens_in: int
) -> None:
    noted = {"annotations": {REVISION: "2", "perdure.dev/ready-since": ready_since}}
    current = a_set(revision=2, master=master, since=since, metadata=noted)
    found = plan(revised(balancer(), "2"), current, a_set("old"))
    assert zeroed(found) == ([] if opens_in else ["web--shop-old"])
    assert found.deadline == (NOW + opens_in * SECOND if opens_in else None)


def test_a_young_set_without_reports_waits_fifteen_minutes() -> None:
    young = a_set(revision=2, master=None, metadata={"creationTimestamp": ago(minutes=14)})
    gate = gate_of(balancer(), young, NOW)
    assert (gate.open, gate.opens_at) == (False, NOW + timedelta(minutes=1) + SECOND)
    assert gate_of(balancer(), young, NOW + timedelta(minutes=1) + SECOND).open


def test_without_machines_there_is_nothing_to_wait_for() -> None:
    of = revised(balancer(spec={"replicas": 0}), "2")
    assert zeroed(plan(of, a_set(revision=2, replicas=0, master="False", since=ago()), a_set("old"))) == [
        "web--shop-old"
    ]


def test_a_rollout_is_done_when_all_others_are_empty() -> None:
    of = revised(balancer(), "2")
    assert not plan(of, a_set(revision=2), a_set("old")).done
    assert plan(of, a_set(revision=2), a_set("old", replicas=0)).done


def test_a_frozen_rollout_neither_makes_nor_empties_a_set() -> None:
    assert plan(balancer(), a_set("old"), frozen="the network cannot change").create is None
    both = plan(revised(balancer(), "2"), a_set(revision=2), a_set("old"), frozen="the network cannot change")
    assert (both.patches, both.problem) == ((), "the network cannot change")


# --- one rollout at a time ---


def test_a_set_that_never_took_over_is_emptied_when_a_third_template_comes() -> None:
    serving = a_set("first", revision=1)
    on_its_way = a_set("second", revision=2, ready=0, master="False")
    third = a_set(revision=3, ready=0, master=None)
    assert zeroed(plan(revised(balancer(), "3"), third, on_its_way, serving)) == ["web--shop-second"]


def test_no_set_is_emptied_while_none_serves() -> None:
    first, second = a_set("first", ready=0, master="False"), a_set("second", revision=2, ready=0, master="False")
    assert zeroed(plan(revised(balancer(), "3"), a_set(revision=3, ready=0), first, second)) == []


def test_the_set_with_the_address_serves_whatever_its_revision() -> None:
    first, second = a_set("first", master="False"), a_set("second", revision=2)
    assert zeroed(plan(revised(balancer(), "3"), a_set(revision=3, ready=0), first, second)) == ["web--shop-first"]


# --- going back ---


def test_going_back_gives_the_old_set_a_new_revision() -> None:
    """W6."""
    of = revised(balancer(), "2")
    back = a_set(revision=1, replicas=0)
    found = plan(of, a_set("other", revision=2), back)
    assert found.create is None
    assert found.revise == {"metadata": {"annotations": {REVISION: "3"}}}
    (patch,) = found.patches
    assert patch.name == back.metadata.name
    assert patch.patch == {"metadata": {"annotations": {REVISION: "3"}}, "spec": {"replicas": 1}}


@pytest.mark.parametrize("crashed_after", ["the load balancer", "the set"])
def test_going_back_comes_to_the_same_revision_after_a_crash(crashed_after: str) -> None:
    of = revised(balancer(), "3" if crashed_after == "the load balancer" else "2")
    own = 3 if crashed_after == "the set" else 1
    found = plan(of, a_set("other", revision=2), a_set(revision=own))
    revisions = {each.patch.get("metadata", {}).get("annotations", {}).get(REVISION) for each in found.patches}  # type: ignore[attr-defined]
    assert revisions <= {"3", None}
    assert found.revise in ({}, {"metadata": {"annotations": {REVISION: "3"}}})


def test_a_revision_is_never_lowered() -> None:
    found = plan(revised(balancer(), "7"), a_set("other", revision=2), a_set(revision=1))
    assert found.revise == {}
    assert found.patches[0].patch == {"metadata": {"annotations": {REVISION: "7"}}}


def test_a_set_that_lost_its_revision_gets_it_back() -> None:
    (patch,) = plan(balancer(), a_set(revision="")).patches
    assert patch.patch == {"metadata": {"annotations": {REVISION: "1"}}}


def test_a_load_balancer_that_lost_its_revision_gets_that_of_its_set() -> None:
    found = plan(revised(balancer(), None), a_set(revision=7))
    assert (found.revise, found.patches) == ({"metadata": {"annotations": {REVISION: "7"}}}, ())


def test_a_set_on_its_way_out_is_waited_for_before_its_successor_of_the_same_name() -> None:
    found = plan(balancer(), a_set(metadata={"deletionTimestamp": ago()}))
    assert (found.create, "waits for the deletion of the former set" in found.why) == (None, True)


# --- scaling, drift ---


def test_replicas_reach_the_current_set() -> None:
    (patch,) = plan(balancer(spec={"replicas": 3}), a_set()).patches
    assert patch.patch == {"spec": {"replicas": 3}}


def test_a_recreated_server_group_reaches_the_current_set() -> None:
    """W11."""
    of = balancer(status={"serverGroupID": "new"})
    (patch,) = plan(of, a_set(spec={"template": {"spec": {"serverGroupID": "dead"}}})).patches
    assert patch.patch == {"spec": {"template": {"spec": {"serverGroupID": "new"}}}}


def test_the_status_counts_the_machines_of_all_sets() -> None:
    found = plan(revised(balancer(), "2"), a_set(revision=2, replicas=1, ready=0), a_set("old", replicas=2, ready=2))
    assert found.status == {"status": {"replicas": 3, "readyReplicas": 2}}


# --- which sets ---


def test_three_empty_sets_remain_for_a_rollback() -> None:
    """W26."""
    old = [a_set(f"old{number}", revision=number, replicas=0) for number in range(1, 6)]
    of = revised(balancer(status=COUNTED), "6")
    assert plan(of, a_set(revision=6), *old).delete == ("web--shop-old2", "web--shop-old1")
    assert plan(of, a_set(revision=6, ready=0), *old).delete == ()
    assert plan(of, a_set(revision=6), *old[2:]).delete == ()


def test_a_load_balancer_without_labels_has_only_the_sets_that_it_owns() -> None:
    """W7."""
    bare = balancer(spec={"selector": {"matchLabels": None}})
    theirs = a_set("theirs", metadata={"ownerReferences": [{"kind": "LoadBalancer", "name": "x", "uid": "other"}]})
    unowned = a_set("nobodys", metadata={"ownerReferences": []})
    assert [each.metadata.name for each in sets_of(bare, [a_set("mine"), theirs, unowned])] == ["web--shop-mine"]


def test_an_unowned_set_with_its_labels_is_the_load_balancers() -> None:
    unowned = a_set("nobodys", metadata={"ownerReferences": []})
    elsewhere = a_set("elsewhere", metadata={"ownerReferences": [], "namespace": "other"})
    assert [each.metadata.name for each in sets_of(balancer(), [unowned, elsewhere])] == ["web--shop-nobodys"]


def test_a_set_of_another_load_balancer_is_not_taken_for_its_labels() -> None:
    """W7."""
    theirs = a_set("theirs", metadata={"ownerReferences": [{"kind": "LoadBalancer", "name": "x", "uid": "other"}]})
    assert sets_of(balancer(), [theirs]) == ()
