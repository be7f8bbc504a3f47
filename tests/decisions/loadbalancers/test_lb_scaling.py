"""What a set does with its machines: how many are made, who goes, and what holds it back."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from lb_objects import LABELS, NOW, ago, condition, fleet_of, healthy, machine, machine_set

from domain.loadbalancers.boot_backoff import boot_pause
from domain.loadbalancers.fleet_silence import Fleet
from domain.loadbalancers.machine_health import mark_patches
from domain.loadbalancers.new_machine import machine_document
from domain.loadbalancers.resources import LoadBalancerMachine, LoadBalancerSet
from domain.loadbalancers.scaling import SetPlan, plan_set
from domain.loadbalancers.selectors import machines_of
from domain.writes import merge

SET_LABELS = {**LABELS, "lbm-template-hash": "aaaa"}
LOUD = Fleet(reported=9, reporting=9)
STALE = healthy(beat=ago(minutes=6))
MARK = {"type": "MarkedForDeletion", "status": "True", "lastTransitionTime": ago(minutes=2)}
DEAD = [*STALE, MARK]


def of(name: str, conditions: list[Any] | None = None, **meta: Any) -> LoadBalancerMachine:
    owner = {"kind": "LoadBalancerSet", "name": "web--shop-aaaa", "uid": "uid-of-web--shop-aaaa"}
    return machine(name, conditions, metadata={"labels": SET_LABELS, "ownerReferences": [owner], **meta})


def ready(name: str, *, master: bool = False, **meta: Any) -> LoadBalancerMachine:
    return of(name, healthy(master=master), **meta)


def dead(name: str, *, master: bool = False, **meta: Any) -> LoadBalancerMachine:
    return of(name, [*healthy(beat=ago(minutes=6), master=master), MARK], **meta)


def wanting(replicas: int, **meta: Any) -> LoadBalancerSet:
    return machine_set(spec={"replicas": replicas}, metadata=meta)


def plan(
    replicas: int | LoadBalancerSet,
    *machines: LoadBalancerMachine,
    fleet: Fleet = LOUD,
    now: datetime = NOW,
    **how: Any,
) -> SetPlan:
    wanted = wanting(replicas) if isinstance(replicas, int) else replicas
    return plan_set(wanted, machines, fleet, now, **how)


# --- making ---


def test_missing_machines_are_made_at_once_and_by_the_same_names_each_time() -> None:
    first, again = plan(3), plan(3)
    assert len(set(first.create)) == 3
    assert first.create == again.create


def test_a_name_that_a_machine_has_which_is_not_the_sets_any_more_is_not_used() -> None:
    first, second, _ = plan(3).create
    assert plan(1, taken={first}).create == (second,)


def test_a_machine_is_made_as_the_set_says() -> None:
    of_seven = wanting(1, annotations={"loadbalancer.yawol.stackit.cloud/revision": "7"})
    body = machine_document(of_seven, "one")
    assert body["apiVersion"] == "yawol.stackit.cloud/v1beta1"
    assert body["metadata"] == {
        "name": "one",
        "namespace": "lbs",
        "labels": SET_LABELS,
        "annotations": {"loadbalancer.yawol.stackit.cloud/revision": "7"},
        "finalizers": ["yawol.stackit.cloud/controller4"],
        "ownerReferences": [
            {
                "apiVersion": "yawol.stackit.cloud/v1beta1",
                "kind": "LoadBalancerSet",
                "name": "web--shop-aaaa",
                "uid": "uid-of-web--shop-aaaa",
            }
        ],
    }
    made = LoadBalancerMachine.model_validate(body)
    assert made.spec == wanting(1).spec.template.spec


def test_a_full_set_makes_and_deletes_nothing() -> None:
    found = plan(2, ready("a"), ready("b"))
    assert (found.create, found.delete, found.marks, found.why) == ((), (), (), "")


def test_a_machine_that_is_being_deleted_does_not_block_its_successor() -> None:
    """W8."""
    assert len(plan(1, ready("a", deletionTimestamp=ago(minutes=1))).create) == 1


def test_a_booting_machine_counts() -> None:
    assert plan(1, of("a", creationTimestamp=ago(minutes=1))).create == ()


# --- fewer ---


@pytest.mark.parametrize(
    ("machines", "gone"),
    [
        ((ready("a"), of("b", creationTimestamp=ago(minutes=1))), ("b",)),
        ((ready("a", master=True), ready("b")), ("b",)),
        ((ready("a", creationTimestamp=ago(hours=1)), ready("b", creationTimestamp=ago(hours=2))), ("b",)),
        ((ready("b"), ready("a")), ("a",)),
        ((ready("a", master=True), of("b", STALE)), ("b",)),
    ],
    ids=["not ready", "not the master", "the oldest", "by name", "stale before master"],
)
def test_the_least_useful_machine_goes_first(machines: tuple[LoadBalancerMachine, ...], gone: tuple[str, ...]) -> None:
    assert plan(1, *machines).delete == gone


def test_all_surplus_machines_go_at_once_and_none_twice() -> None:
    machines = (ready("a"), ready("b"), ready("c"), ready("d", deletionTimestamp=ago()))
    assert plan(1, *machines).delete == ("a", "b")
    assert plan(0, *machines).delete == ("a", "b", "c")


# --- replacing ---


def test_the_replacement_of_a_dead_machine_is_made_before_it_goes() -> None:
    first = plan(1, dead("a"))
    assert (len(first.create), first.delete) == (1, ())
    second = plan(1, dead("a"), of("b", creationTimestamp=ago(seconds=1)))
    assert (second.create, second.delete) == ((), ("a",))


def test_where_the_quota_allows_no_more_it_goes_first() -> None:
    assert plan(1, dead("a"), quota_refused=True).delete == ("a",)
    assert plan(2, dead("a"), dead("b"), quota_refused=True).delete == ("a",)


def test_dead_machines_are_replaced_one_more_than_wanted_at_a_time() -> None:
    three = (dead("a", master=True), dead("b"), dead("c"))
    assert (len(plan(3, *three).create), plan(3, *three).delete) == (1, ())
    replaced = plan(3, *three, of("d", creationTimestamp=ago(seconds=1)))
    assert (replaced.create, replaced.delete) == ((), ("b",))


def test_a_machine_that_has_never_reported_goes_at_once_and_another_is_made() -> None:
    silent = of("a", [MARK], creationTimestamp=ago(minutes=12))
    found = plan(1, silent)
    assert (len(found.create), found.delete) == (1, ("a",))
    assert found.annotate == {
        "metadata": {
            "annotations": {
                "perdure.dev/boot-failures": "uid-of-a",
                "perdure.dev/boot-failed-at": "2026-05-01T12:00:00Z",
            }
        }
    }


def test_a_machine_without_a_server_goes_at_once() -> None:
    lost = ready("a", annotations={"perdure.dev/given-up": "gone"})
    found = plan(1, lost)
    assert (len(found.create), found.delete, found.annotate) == (1, ("a",), {})


def test_a_machine_within_its_grace_is_left_alone() -> None:
    marked = of("a", [*STALE, {**MARK, "lastTransitionTime": ago(seconds=119)}])
    found = plan(1, marked)
    assert (found.create, found.delete, found.deadline) == ((), (), NOW + timedelta(seconds=1))


def test_a_machine_that_never_reports_is_replaced_after_twelve_minutes_to_the_second() -> None:
    one, clock = of("a", creationTimestamp=ago()), NOW
    found = plan(1, one, now=clock)
    assert found.deadline == NOW + timedelta(minutes=10)
    clock = found.deadline
    found = plan(1, one, now=clock)
    (marked,) = found.marks
    body: object = one.model_dump(mode="json")
    for patch in mark_patches(marked.machine, marked.health):
        body = merge(body, patch)
    one = LoadBalancerMachine.model_validate(body)
    found = plan(1, one, now=clock)
    assert (found.create, found.delete, found.deadline) == ((), (), NOW + timedelta(minutes=12))
    found = plan(1, one, now=NOW + timedelta(minutes=12))
    assert (len(found.create), found.delete) == (1, ("a",))


# --- machines that do not boot ---


def test_pauses_grow_from_the_second_failure_on() -> None:
    minutes = [boot_pause(number).total_seconds() / 60 for number in range(10)]
    assert minutes == [0, 0, 1, 2, 4, 8, 16, 30, 30, 30]


def failing(number: int, machine_set_: LoadBalancerSet, now: datetime) -> tuple[LoadBalancerSet, SetPlan]:
    """One more machine of the set that has not booted."""
    silent = of(f"m{number}", annotations={"perdure.dev/given-up": "No valid host was found"})
    found = plan(machine_set_, silent, now=now)
    after = LoadBalancerSet.model_validate(merge(machine_set_.model_dump(mode="json"), found.annotate))
    return after, found


def test_five_machines_in_a_row_that_do_not_boot_make_the_pauses_grow() -> None:
    """W9."""
    current, clock, pauses = wanting(1), NOW, []
    for number in range(5):
        current, found = failing(number, current, clock)
        assert found.delete == (f"m{number}",)
        start = clock
        if not found.create:
            found = plan(current, now=clock)
            assert found.create == ()
            assert found.deadline is not None
            assert "machines do not boot" in found.why
            assert plan(current, now=found.deadline - timedelta(seconds=1)).create == ()
            clock = found.deadline
            assert len(plan(current, now=clock).create) == 1
        pauses.append((clock - start).total_seconds() / 60)
    assert pauses == [0, 1, 2, 4, 8]


def test_a_failure_counts_once_however_often_it_is_observed() -> None:
    current, _ = failing(0, wanting(1), NOW)
    again, found = failing(0, current, NOW + timedelta(seconds=30))
    assert (again, found.annotate) == (current, {})


def test_a_new_machine_that_is_ready_ends_the_series() -> None:
    current, _ = failing(0, wanting(2), NOW)
    older = ready("old")
    assert plan(current, older).annotate == {}
    newer = ready("new", creationTimestamp="2026-05-01T12:00:00Z")
    assert plan(current, older, newer).annotate == {
        "metadata": {"annotations": {"perdure.dev/boot-failed-at": None, "perdure.dev/boot-failures": None}}
    }


def test_the_last_day_of_the_calendar_pauses_no_creation() -> None:
    beyond = {"perdure.dev/boot-failures": "a,b,c", "perdure.dev/boot-failed-at": "9999-12-31T23:59:59Z"}
    assert len(plan(wanting(1, annotations=beyond)).create) == 1


def test_only_as_many_failures_are_remembered_as_pauses_need() -> None:
    current = wanting(1)
    for number in range(20):
        current, _ = failing(number, current, NOW)
    assert len(current.metadata.annotations["perdure.dev/boot-failures"].split(",")) == 8


# --- what holds back ---


def rejecting(name: str, message: str = "bad port") -> LoadBalancerMachine:
    """A machine that is condemned because its Envoy rejects the configuration."""
    rejected = condition("ConfigReady", "False", since=ago(minutes=10))
    return of(name, [{**rejected, "reason": "EnvoyConfigurationFailed", "message": message}, *healthy()[1:], MARK])


def wedged(name: str) -> LoadBalancerMachine:
    """A machine that is condemned because its Envoy runs and does not take up what it is served."""
    return of(name, [*healthy()[:2], condition("EnvoyUpToDate", "False", since=ago(minutes=10)), MARK])


def test_a_configuration_that_envoy_rejects_costs_no_machine() -> None:
    """W27."""
    found = plan(2, rejecting("a"), rejecting("b"))
    assert (found.create, found.delete) == ((), ())
    assert found.hold == "Envoy rejects the configuration, so no machine is replaced: bad port"
    assert [notice.message for notice in found.notices] == [found.hold]


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_wedged_envoy_is_replaced_even_if_every_machine_of_the_set_has_one(replicas: int) -> None:
    found = plan(replicas, *(wedged(f"machine-{number}") for number in range(replicas)))
    assert (len(found.create), found.delete, found.hold) == (1, (), "")


def test_a_wedged_envoy_is_replaced_while_another_rejects_the_configuration() -> None:
    first = plan(2, rejecting("a"), wedged("b"))
    assert (len(first.create), first.delete) == (1, ())
    assert first.hold == "Envoy rejects the configuration, so no machine is replaced: bad port"
    second = plan(2, rejecting("a"), wedged("b"), of("c", creationTimestamp=ago(seconds=1)))
    assert (second.create, second.delete) == ((), ("b",))


@pytest.mark.parametrize("type_", ["EnvoyReady", "EnvoyUpToDate"])
def test_a_machine_that_rejects_the_configuration_and_fails_otherwise_is_replaced(type_: str) -> None:
    conditions = rejecting("a").model_dump(mode="json")["status"]["conditions"]
    failed = [
        condition(type_, "False", since=ago(minutes=10)) if each["type"] == type_ else each for each in conditions
    ]
    found = plan(1, of("a", failed))
    assert (len(found.create), found.hold) == (1, "")


def test_a_config_fault_holds_nothing_while_no_machine_needs_replacement() -> None:
    conditions = [{**condition("ConfigReady", "False", since=ago(minutes=1))}, *healthy()[1:]]
    assert plan(1, of("a", conditions)).hold == ""


def test_a_machine_that_alone_rejects_the_configuration_is_replaced() -> None:
    found = plan(2, rejecting("a"), ready("b"))
    assert (len(found.create), found.hold) == (1, "")


def test_an_envoy_that_does_not_run_is_no_fault_of_the_configuration() -> None:
    conditions = [condition(each["type"], "False", since=ago(minutes=10)) for each in healthy()[1:3]]
    found = plan(1, of("a", [condition("ConfigReady"), *conditions, MARK]))
    assert (len(found.create), found.hold) == (1, "")


def test_fewer_machines_are_wanted_all_the_same() -> None:
    assert plan(1, rejecting("a"), rejecting("b")).delete == ("a",)


SILENT = Fleet(reported=2, reporting=0, scout="lbs/other-set")


def test_while_the_whole_fleet_is_silent_nothing_is_replaced() -> None:
    found = plan(1, dead("a"), fleet=SILENT)
    assert (found.create, found.delete) == ((), ())
    assert "none of 2 machines reports" in found.hold
    # No event says when it is over: another set's machine will report, or not.
    assert found.deadline == NOW + timedelta(minutes=3)


def test_a_silent_fleet_keeps_no_machine_that_never_reported() -> None:
    found = plan(1, of("a", [MARK]), fleet=SILENT)
    assert (len(found.create), found.delete) == (1, ("a",))


def test_the_one_set_that_may_makes_another_machine_and_deletes_none() -> None:
    scout = Fleet(reported=2, reporting=0, scout="lbs/web--shop-aaaa")
    first = plan(1, dead("a"), fleet=scout)
    assert (len(first.create), first.delete) == (1, ())
    second = plan(1, dead("a"), of("b", creationTimestamp=ago(seconds=1)), fleet=scout)
    assert (second.create, second.delete) == ((), ())


@pytest.mark.parametrize(
    ("replicas", "machines", "made", "gone"),
    [
        (0, (dead("a"),), 0, ("a",)),
        (1, (dead("a", master=True), dead("b")), 0, ("b",)),
        (2, (dead("a"), dead("b"), dead("c")), 0, ("a",)),
        (0, (dead("a"), of("b", creationTimestamp=ago(seconds=1))), 0, ("b", "a")),
        (1, (dead("a"),), 1, ()),
    ],
)
@pytest.mark.parametrize("quota", [False, True])
def test_fewer_machines_are_wanted_while_the_whole_fleet_is_silent(
    replicas: int, machines: tuple[LoadBalancerMachine, ...], made: int, gone: tuple[str, ...], quota: bool
) -> None:
    scout = Fleet(reported=2, reporting=0, scout="lbs/web--shop-aaaa")
    found = plan(replicas, *machines, fleet=scout, quota_refused=quota)
    assert (len(found.create), set(found.delete)) == (made, set(gone))
    elsewhere = plan(replicas, *machines, fleet=SILENT)
    assert (len(elsewhere.create), len(elsewhere.delete)) == (0, len(gone))


def test_the_only_machine_of_an_installation_is_replaced_once_its_successor_reports() -> None:
    alone = dead("a")
    scouting = plan(1, alone, fleet=fleet_of([alone], NOW))
    assert (len(scouting.create), scouting.delete) == (1, ())
    successor = ready("b")
    assert plan(1, alone, successor, fleet=fleet_of([alone, successor], NOW)).delete == ("a",)


# --- revisions, status ---


def test_machines_get_the_revision_of_their_set() -> None:
    current = wanting(2, annotations={"loadbalancer.yawol.stackit.cloud/revision": "3"})
    old, same = ready("a"), ready("b", annotations={"loadbalancer.yawol.stackit.cloud/revision": "3"})
    assert plan(current, old, same).restamp == ("a",)


def test_the_status_counts_ready_machines_and_says_who_has_the_address() -> None:
    """W28: `replicas` repeats what is wanted, which clients have learnt to read so, while one of them is leaving."""
    found = plan(3, ready("a", master=True), of("b", STALE), ready("c", deletionTimestamp=ago()))
    assert found.status == {
        "status": {
            "readyReplicas": 1,
            "replicas": 3,
            "conditions": [
                {
                    "type": "HasKeepalivedMaster",
                    "status": "True",
                    "reason": "KeepalivedMasterInSet",
                    "message": "a machine of the set holds the virtual address",
                    "lastTransitionTime": "2026-05-01T12:00:00Z",
                }
            ],
        }
    }


def test_a_status_that_says_so_is_not_written_again_and_keeps_its_moment() -> None:
    known = {
        "readyReplicas": 1,
        "replicas": 1,
        "conditions": [
            {
                "type": "HasKeepalivedMaster",
                "status": "False",
                "reason": "NoKeepalivedMasterInSet",
                "message": "in yawol's words",
                "lastTransitionTime": ago(hours=1),
            }
        ],
    }
    current = machine_set(status=known)
    assert plan(current, ready("a")).status == {}
    changed = plan(current, ready("a", master=True)).status["status"]
    assert changed["conditions"][0]["reason"] == "KeepalivedMasterInSet"  # type: ignore[index]
    assert changed["conditions"][0]["lastTransitionTime"] == "2026-05-01T12:00:00Z"  # type: ignore[index]


def lacking(replicas: int, ready_: int, *, wanted: int = 2, master: str = "False") -> LoadBalancerSet:
    """A set that says so much of its machines, and for an hour that none of them (or one) is the master."""
    found = {
        "type": "HasKeepalivedMaster",
        "status": master,
        "reason": "R",
        "message": "",
        "lastTransitionTime": ago(hours=1),
    }
    status = {"replicas": replicas, "readyReplicas": ready_, "conditions": [found]}
    return machine_set(spec={"replicas": wanted}, status=status)


NOTED = {"metadata": {"annotations": {"perdure.dev/ready-since": "2026-05-01T12:00:00Z"}}}
TWO = (ready("a"), ready("b"))


@pytest.mark.parametrize(
    ("current", "machines", "noted"),
    [
        (lacking(0, 0), TWO, NOTED),  # it was empty
        (lacking(2, 1), TWO, NOTED),
        (lacking(2, 1, wanted=1), TWO[:1], NOTED),  # fewer are wanted, and that one is ready
        (lacking(2, 1), (ready("a"), of("b")), {}),
        (lacking(2, 2), TWO, {}),
        (lacking(2, 1), (ready("a", master=True), ready("b")), {}),  # the condition changes now
        (lacking(2, 1, master="True"), TWO, {}),
        (lacking(2, 0, wanted=0), (), {}),
        (wanting(2), TWO, {}),  # the condition is new
    ],
)
def test_a_set_records_readiness_times_where_its_condition_does_not_show_them(
    current: LoadBalancerSet, machines: tuple[LoadBalancerMachine, ...], noted: dict[str, Any]
) -> None:
    found = plan(current, *machines)
    assert found.annotate == noted
    settled = merge(merge(current.model_dump(mode="json"), found.annotate), found.status)
    assert plan(LoadBalancerSet.model_validate(settled), *machines).annotate == {}


# --- which machines ---


def test_a_set_has_the_machines_of_its_selector_oldest_first() -> None:
    mine = [
        machine(name, metadata={"labels": SET_LABELS, "creationTimestamp": ago(hours=age)})
        for name, age in (("a", 1), ("b", 2))
    ]
    other = machine("c", metadata={"labels": LABELS})
    elsewhere = machine("d", metadata={"labels": SET_LABELS, "namespace": "other"})
    found = machines_of(wanting(1), [*mine, other, elsewhere])
    assert [each.metadata.name for each in found] == ["b", "a"]


def test_a_set_that_selects_nothing_has_the_machines_that_it_owns() -> None:
    nothing = machine_set(spec={"selector": {"matchLabels": None}})
    assert [each.metadata.name for each in machines_of(nothing, [of("a"), machine("b")])] == ["a"]


def test_a_machine_of_another_set_is_not_taken_for_its_labels() -> None:
    theirs = machine(
        "a", metadata={"labels": SET_LABELS, "ownerReferences": [{"kind": "LoadBalancerSet", "uid": "theirs"}]}
    )
    assert machines_of(wanting(1), [theirs]) == ()


# --- in the long run ---


@pytest.mark.parametrize("replicas", [0, 1, 2, 3])
@pytest.mark.parametrize(
    "start",
    [(), (ready("a"),), (ready("a"), ready("b"), ready("c")), (dead("a"),), (dead("a"), dead("b"), ready("c"))],
    ids=["none", "one", "three", "a dead one", "two dead ones"],
)
def test_every_set_comes_to_as_many_healthy_machines_as_wanted(
    replicas: int, start: tuple[LoadBalancerMachine, ...]
) -> None:
    machines = list(start)
    for _ in range(20):
        found = plan(replicas, *machines)
        most = max(replicas + 1, len(start))
        assert len(machines) + len(found.create) <= most
        if not found.create and not found.delete:
            break
        machines = [each for each in machines if each.metadata.name not in found.delete]
        machines += map(ready, found.create)
    assert len(machines) == replicas
    assert not [each for each in machines if "MarkedForDeletion" in str(each.status)]
