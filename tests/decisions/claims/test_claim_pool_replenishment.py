"""Pools: how many handles are made and given up, scalings that add some once, and what the status shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from claim_domain import NAMES
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from domain.claims.constants import MANAGE_POOLS_INTERVAL
from domain.claims.json_objects import JsonObject
from domain.claims.pool_replenishment import PoolHandle, PoolPlan, Wants, plan, pool_handle, pool_status, rest, wants_of
from domain.claims.pool_scaling_progress import NewHandle, Scaling, scaling_of, scaling_status
from domain.resource import timestamp

NOW = datetime(2025, 1, 31, 12, 0, 0, tzinfo=UTC)
BORN = NOW - timedelta(days=1)


def some(count: int, *, ready: bool | None = True, healthy: bool | None = True, scaling: str = "") -> list[PoolHandle]:
    kind = f"{scaling}{ready}{healthy}".lower()
    return [
        PoolHandle(name=f"guid-{kind}-{i}", created=BORN, healthy=healthy, ready=ready, scaling=scaling)
        for i in range(count)
    ]


def scaling(name: str = "more", count: int = 3, **fields: Any) -> Scaling:
    return Scaling.model_validate({"name": name, "uid": f"uid-{name}", "count": count, "at": BORN, **fields})


# --- a pause ---


def test_a_paused_handle_is_neither_given_up_nor_replaced() -> None:
    unhealthy = some(1, healthy=False, ready=False, scaling="more")
    held = [handle.model_copy(update={"paused": True}) for handle in unhealthy]
    wants, grown = Wants(min_available=1, delete_unhealthy=True), scaling(count=1, made=1, serials=1, state="done")
    assert plan(wants, held, [grown], NOW) == PoolPlan()
    assert plan(wants, unhealthy, [grown], NOW).delete == (unhealthy[0].name,)


# --- the minimum ---


@pytest.mark.parametrize(
    ("wants", "handles", "created"),
    [
        pytest.param(Wants(min_available=3), [], 3, id="from nothing"),
        pytest.param(Wants(min_available=3), some(2), 1, id="what is missing"),
        pytest.param(Wants(min_available=3), some(3), 0, id="enough"),
        pytest.param(Wants(min_available=1), some(5), 0, id="more than enough: never scales down"),
        pytest.param(Wants(min_available=3), some(1, ready=False) + some(1, ready=None), 1, id="unready counts"),
        pytest.param(Wants(min_available=3), some(2, healthy=False, ready=False), 1, id="unhealthy counts if retained"),
        pytest.param(Wants(min_available=5, max_unready=2), [], 2, id="as many as may be unready"),
        pytest.param(Wants(min_available=5, max_unready=2), some(1, ready=None), 1, id="unknown is unready"),
        pytest.param(Wants(min_available=5, max_unready=2), some(2, ready=False) + some(1), 0, id="the cap is reached"),
        pytest.param(Wants(min_available=5, max_unready=1), some(3, ready=False), 0, id="the cap is exceeded"),
        pytest.param(Wants(min_available=5, max_unready=2), some(4), 1, id="no more than is missing"),
        pytest.param(Wants(min_available=5, max_unready=0), some(2), 0, id="a cap of zero"),
        pytest.param(Wants(), some(1), 0, id="no minimum"),
    ],
)
def test_missing_handles_are_created_within_the_cap(wants: Wants, handles: list[PoolHandle], created: int) -> None:
    decided = plan(wants, handles, (), NOW)
    assert decided == PoolPlan(create=(NewHandle(),) * created)


def test_unhealthy_handles_are_given_up_and_replaced_only_where_the_pool_says_so() -> None:
    handles = some(2) + some(1, healthy=False, ready=False) + some(1, healthy=None, ready=None)
    assert plan(Wants(min_available=4), handles, (), NOW) == PoolPlan()
    decided = plan(Wants(min_available=4, delete_unhealthy=True), handles, (), NOW)
    assert decided.delete == ("guid-falsefalse-0",)
    assert len(decided.create) == 1


def test_replacements_that_are_unhealthy_as_well_are_given_up_at_a_pace() -> None:
    wants = Wants(min_available=2, delete_unhealthy=True)
    (old,), (new,) = (some(1, healthy=False, ready=False) for _ in range(2))
    old, new = (
        old.model_copy(update={"name": "old", "created": NOW - timedelta(seconds=1)}),
        new.model_copy(update={"name": "new", "created": NOW}),
    )
    gave_up = NOW + timedelta(milliseconds=300)
    soon, later = NOW + timedelta(seconds=1), gave_up + MANAGE_POOLS_INTERVAL
    first = plan(wants, [old, new], (), soon)
    assert (first.delete, first.gives_up_at) == (("old", "new"), None)
    spared = plan(wants, [old, new], (), soon, gave_up=gave_up)
    assert (spared.delete, len(spared.create), spared.gives_up_at) == (("old",), 1, later)
    at_last = plan(wants, [new], (), later, gave_up=gave_up)
    assert (at_last.delete, len(at_last.create), at_last.gives_up_at) == (("new",), 2, None)
    assert plan(wants, some(2), (), soon, gave_up=gave_up) == PoolPlan()


def test_a_handle_that_is_given_up_is_no_unready_one() -> None:
    handles = some(2) + some(1, healthy=False, ready=False)
    wants = Wants(min_available=3, max_unready=1, delete_unhealthy=True)
    assert len(plan(wants, handles, (), NOW).create) == 1


def test_a_pool_with_many_unhealthy_handles_compares_none_with_another(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []

    def equal(one: PoolHandle, other: object) -> bool:
        compared.append(one.name)
        return one is other

    handles = some(9, healthy=False, ready=False) + some(9)
    monkeypatch.setattr(PoolHandle, "__eq__", equal)
    decided = plan(Wants(delete_unhealthy=True), handles, (), NOW)
    assert (len(decided.delete), compared) == (9, [])


# --- scalings ---


def test_a_scaling_adds_its_handles_on_top_of_the_minimum() -> None:
    decided = plan(Wants(min_available=2), [], [scaling(count=2)], NOW)
    assert decided.create == (
        NewHandle(),
        NewHandle(),
        NewHandle(scaling="more", scaling_uid="uid-more", serial=0),
        NewHandle(scaling="more", scaling_uid="uid-more", serial=1),
    )
    assert decided.scalings == (scaling(count=2, made=2, serials=2, state="done"),)
    assert decided.begins_at is None


def test_a_scaling_is_done_once_and_never_again() -> None:
    done = scaling(count=2, made=2, serials=2, state="done")
    assert plan(Wants(min_available=2), some(2), [done], NOW) == PoolPlan()
    assert plan(Wants(), [], [done], NOW) == PoolPlan()  # its handles were claimed


def test_a_scaling_waits_for_its_time() -> None:
    later = scaling(at=NOW + timedelta(hours=1))
    decided = plan(Wants(), [], [later, scaling("latest", at=NOW + timedelta(hours=2))], NOW)
    assert decided.create == ()
    assert [s.state for s in decided.scalings] == ["waiting", "waiting"]
    assert decided.begins_at == NOW + timedelta(hours=1)
    assert len(plan(Wants(), [], [later], NOW + timedelta(hours=1)).create) == 3
    nothing_left = later.model_copy(update={"made": 3, "serials": 3, "state": "done"})
    assert plan(Wants(), [], [nothing_left], NOW) == PoolPlan()


def test_scalings_respect_the_cap_after_the_minimum_and_in_the_order_of_their_times() -> None:
    early, late = scaling("b", count=2, at=BORN), scaling("a", count=2, at=NOW)
    decided = plan(Wants(min_available=2, max_unready=4), some(1), [late, early], NOW)
    assert [handle.scaling for handle in decided.create] == ["", "b", "b", "a"]
    assert [(s.name, s.made, s.state) for s in decided.scalings] == [("b", 2, "done"), ("a", 1, "scaling")]


def test_a_growing_scaling_continues_and_a_shrinking_one_removes_nothing() -> None:
    done: dict[str, Any] = {"made": 2, "serials": 2, "state": "done"}
    assert [h.serial for h in plan(Wants(), some(2), [scaling(count=3, **done)], NOW).create] == [2]
    assert plan(Wants(), some(2), [scaling(count=1, **done)], NOW) == PoolPlan()


def test_an_unhealthy_handle_of_a_scaling_gives_its_slot_back_before_it_is_deleted() -> None:
    wants = Wants(delete_unhealthy=True)
    broken = some(1, healthy=False, ready=False, scaling="more")
    done = scaling(count=2, made=2, serials=2, state="done")
    decided = plan(wants, some(1, scaling="more") + broken, [done], NOW)
    assert decided.delete == (broken[0].name,)
    back = scaling(count=2, made=1, serials=2, given_back=(broken[0].name,), state="scaling")
    assert decided.giving_back == (back,)
    assert [handle.serial for handle in decided.create] == [2]
    assert decided.scalings == (back.model_copy(update={"made": 2, "serials": 3, "state": "done"}),)
    again = plan(wants, broken, [back], NOW)  # the process died before the deletion
    assert again.delete == decided.delete
    assert again.giving_back == ()
    assert [handle.serial for handle in again.create] == [2]


def test_names_given_back_are_forgotten_when_their_handles_are_gone() -> None:
    broken = some(1, healthy=False, ready=False, scaling="more")
    before = scaling(count=2, made=2, serials=5, given_back=("guid-gone",), state="done")
    (back,) = plan(Wants(delete_unhealthy=True), broken, [before], NOW).giving_back
    assert back.given_back == (broken[0].name,)


class World:
    """A pool in a cluster, and a process that may die between any two writes."""

    def __init__(self, wants: Wants, requested: Scaling) -> None:
        self.wants, self.scaling = wants, requested
        self.handles: dict[str, PoolHandle] = {}
        self.ever: set[int] = set()  # serials that were made
        self.broken: set[str] = set()  # handles of the scaling that were given up

    def run(self, writes_left: int) -> None:
        """One pass in the order of the writes."""
        decided = plan(self.wants, list(self.handles.values()), [self.scaling], NOW)
        for back in decided.giving_back:
            if not (writes_left := writes_left - 1):
                return
            self.scaling = back
        for name in decided.delete:
            if not (writes_left := writes_left - 1):
                return
            if self.handles.pop(name).scaling:
                self.broken.add(name)
        for new in decided.create:
            if not (writes_left := writes_left - 1):
                return
            name = f"guid-{new.serial}"
            if name not in self.handles:
                assert new.serial not in self.ever, "a serial made twice"
            self.ever.add(new.serial or 0)
            self.handles.setdefault(name, PoolHandle(name=name, created=NOW, scaling=new.scaling))
        for written in decided.scalings:
            if not (writes_left := writes_left - 1):
                return
            self.scaling = written

    def settle(self) -> None:
        for _ in range(100):
            before = (self.scaling, dict(self.handles))
            self.run(1_000)
            if before == (self.scaling, self.handles):
                return
        raise AssertionError("the pool never settles")


@given(st.integers(1, 6), st.lists(st.tuples(st.integers(1, 9), st.sets(st.integers(0, 8), max_size=3)), max_size=6))
def test_a_scaling_makes_exactly_its_count_whatever_dies_when(count: int, lives: list[tuple[int, set[int]]]) -> None:
    world = World(Wants(delete_unhealthy=True), scaling(count=count))
    for writes, breaks in lives:
        world.run(writes)
        world.run(1_000)  # the next process comes up and ends its pass; then something breaks
        for serial in breaks:
            if (handle := world.handles.get(f"guid-{serial}")) is not None:
                world.handles[handle.name] = handle.model_copy(update={"healthy": False, "ready": False})
    world.settle()
    assert len(world.handles) == count
    assert len(world.ever) == count + len(world.broken)
    assert (world.scaling.made, world.scaling.state) == (count, "done")


# --- the status ---


def test_the_status_lists_the_handles_oldest_first() -> None:
    old = PoolHandle(name="guid-b", created=BORN, healthy=True, ready=True)
    older = PoolHandle(name="guid-a", created=BORN - timedelta(hours=1))
    assert pool_status([old, older]) == {
        "resourceHandles": [{"name": "guid-a"}, {"healthy": True, "name": "guid-b", "ready": True}],
        "resourceHandleCount": {"available": 2, "ready": 1},
    }


# --- reading objects ---

POOL: JsonObject = {
    "metadata": {"name": "pool", "namespace": "operator"},
    "spec": {"minAvailable": 2, "maxUnready": 0, "deleteUnhealthyResourceHandles": True},
}
OURS: JsonObject = {"name": "pool", "namespace": "operator", "kind": "ResourcePool"}


def handle(spec: JsonObject | None = None, **meta: JsonValue) -> JsonObject:
    born: JsonObject = {"name": "guid-a", "creationTimestamp": timestamp(BORN), **meta}
    return {"metadata": born, "spec": {"resourcePool": OURS, **(spec or {})}, "status": {"healthy": True}}


def test_a_pools_wants_are_read_from_it() -> None:
    assert wants_of(POOL) == Wants(min_available=2, max_unready=0, delete_unhealthy=True)
    assert wants_of({"spec": {}}) == Wants()


def test_a_pool_counts_its_own_free_handles_only() -> None:
    labels: JsonObject = {NAMES.pool_scaling_name_label: "more"}
    assert pool_handle(NAMES, handle(labels=labels), POOL) == PoolHandle(
        name="guid-a", created=BORN, healthy=True, scaling="more"
    )
    for other in (
        handle({"resourcePool": {**OURS, "name": "other"}}),
        handle({"resourcePool": {**OURS, "namespace": "other"}}),
        handle({"resourcePool": None}),
        handle({"resourceClaim": {"name": "c"}}),
        handle(deletionTimestamp=timestamp(NOW)),
        handle(labels={NAMES.ignore_label: ""}),
    ):
        assert pool_handle(NAMES, other, POOL) is None


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2099-01-01T00:00:00Z", datetime(2099, 1, 1, tzinfo=UTC)),
        ("2099-01-01t00:00:00z", datetime(2099, 1, 1, tzinfo=UTC)),
        ("2099-01-01T02:00:00+02:00", datetime(2099, 1, 1, tzinfo=UTC)),
        ("", BORN),
        ("tomorrow", None),
    ],
)
def test_a_scaling_begins_when_it_says_or_not_at_all(text: str, at: datetime | None) -> None:
    body: JsonObject = {
        "metadata": {"name": "more", "namespace": "operator", "creationTimestamp": timestamp(BORN)},
        "spec": {"count": 3, "at": text, "resourcePool": {"name": "pool"}},
    }
    read = scaling_of(body, POOL)
    assert (read and read.at) == at


def test_a_scaling_is_read_and_written_with_its_status() -> None:
    body: JsonObject = {
        "metadata": {"name": "more", "namespace": "operator", "uid": "u", "creationTimestamp": timestamp(BORN)},
        "spec": {"count": 3, "resourcePool": {"name": "pool"}},
        "status": {"count": 2, "state": "scaling"},
    }
    read = scaling_of(body, POOL)
    assert read == Scaling(name="more", uid="u", count=3, at=BORN, made=2, serials=2, state="scaling")
    assert scaling_of({**body, "spec": {"count": 3, "resourcePool": {"name": "other"}}}, POOL) is None
    assert scaling_of({**body, "metadata": {"name": "more", "namespace": "other"}}, POOL) is None
    deleted = {"name": "more", "namespace": "operator", "deletionTimestamp": timestamp(NOW)}
    assert scaling_of({**body, "metadata": {**deleted}}, POOL) is None
    timed = scaling_of({**body, "spec": {"count": 3, "at": timestamp(NOW), "resourcePool": {"name": "pool"}}}, POOL)
    assert timed is not None
    assert timed.at == NOW
    given_back = timed.model_copy(update={"given_back": ("guid-x",), "serials": 4})
    assert scaling_status(given_back) == {"count": 2, "state": "scaling", "serials": 4, "givenBack": ["guid-x"]}
    written: JsonObject = {**body, "status": scaling_status(given_back)}
    assert scaling_of(written, POOL) == given_back.model_copy(update={"at": BORN})


@pytest.mark.parametrize(("handles", "seconds"), [(0, 0), (50, 0), (99, 0), (100, 0.5), (200, 1), (5000, 2)])
def test_only_a_large_pool_rests_between_two_looks_and_never_long(handles: int, seconds: float) -> None:
    assert rest(handles) == timedelta(seconds=seconds)
