"""What Envoy is served after it has taken or refused something, and what of it is saved on disk."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from domain.loadbalancers.envoy import CLUSTER_TYPE, LISTENER_TYPE, EnvoyConfiguration
from domain.schema import Document
from yawollet.delivery import FIRST_PAUSE, LONGEST_PAUSE, Delivery
from yawollet.snapshot import Snapshot, SnapshotFile

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
BIND = "Error adding/updating listener(s) TCP-80: cannot bind '203.0.113.7:80': Address already in use\n"


def wanted(**forms: int) -> EnvoyConfiguration:
    """Clusters and listeners by name; another form is another document."""
    names = {name.replace("_", "-"): form for name, form in forms.items()}
    listeners: dict[str, Document] = {
        name: {"name": name, "per_connection_buffer_limit_bytes": form} for name, form in names.items()
    }
    return EnvoyConfiguration(clusters={name: {"name": name} for name in names}, listeners=listeners)


def form_of(delivery: Delivery, name: str) -> object:
    assert delivery.served is not None
    return delivery.served.listeners.get(name, {}).get("per_connection_buffer_limit_bytes")


def take_all(delivery: Delivery) -> None:
    assert delivery.served is not None
    for type_url in (CLUSTER_TYPE, LISTENER_TYPE):
        delivery.taken(type_url, delivery.served.version)


def refused_at_first(now: datetime = NOW) -> Delivery:
    delivery = Delivery()
    assert delivery.want(wanted(TCP_80=1, TCP_81=1), now)
    delivery.taken(CLUSTER_TYPE, 1)
    delivery.refuse(LISTENER_TYPE, 1, BIND, now)
    return delivery


def test_nothing_is_served_before_something_is_wanted() -> None:
    """W10: an Envoy that runs retains what it has; an empty first snapshot would take all its listeners away."""
    assert Delivery().served is None


def test_versions_count_up_and_the_same_is_served_once() -> None:
    delivery = Delivery()
    first = delivery.want(wanted(TCP_80=1), NOW)
    assert first is not None
    assert first.version == 1
    assert delivery.want(wanted(TCP_80=1), NOW) is None
    second = delivery.want(wanted(TCP_80=2), NOW)
    assert second is not None
    assert second.version == 2


def test_an_empty_load_balancer_is_something_to_serve() -> None:
    delivery = Delivery()
    assert delivery.want(wanted(), NOW) is not None


def test_all_is_settled_when_both_types_are_taken() -> None:
    delivery = Delivery()
    delivery.want(wanted(TCP_80=1), NOW)
    delivery.taken(CLUSTER_TYPE, 1)
    assert not delivery.settled
    delivery.taken(LISTENER_TYPE, 1)
    assert delivery.settled
    delivery.want(wanted(TCP_80=2), NOW)
    assert not delivery.settled


def test_a_refused_resource_is_left_out_and_everything_else_is_served() -> None:
    delivery = refused_at_first()
    assert delivery.refusals == [BIND]
    assert delivery.want(wanted(TCP_80=1, TCP_81=1), NOW)
    assert form_of(delivery, "TCP-80") is None
    assert form_of(delivery, "TCP-81") == 1


def test_a_name_with_which_the_refused_one_begins_is_not_taken_for_it() -> None:
    delivery = Delivery()
    delivery.want(wanted(TCP_80=1, TCP_8080=1), NOW)
    delivery.refuse(LISTENER_TYPE, 1, BIND.replace("TCP-80:", "TCP-8080:"), NOW)
    delivery.want(wanted(TCP_80=1, TCP_8080=1), NOW)
    assert form_of(delivery, "TCP-80") == 1
    assert form_of(delivery, "TCP-8080") is None


def test_the_last_good_form_replaces_a_refused_one() -> None:
    delivery = Delivery()
    delivery.want(wanted(TCP_80=1), NOW)
    take_all(delivery)
    delivery.want(wanted(TCP_80=2), NOW)
    delivery.refuse(LISTENER_TYPE, 2, BIND, NOW)
    delivery.want(wanted(TCP_80=2), NOW)
    assert form_of(delivery, "TCP-80") == 1
    assert delivery.served is not None
    assert delivery.served.version == 3


def test_a_refusal_that_names_nothing_speaks_of_all_that_is_new() -> None:
    delivery = Delivery()
    delivery.want(wanted(TCP_80=1), NOW)
    take_all(delivery)
    delivery.want(wanted(TCP_80=1, TCP_81=1), NOW)
    delivery.refuse(LISTENER_TYPE, 2, "out of memory", NOW)
    delivery.want(wanted(TCP_80=1, TCP_81=1), NOW)
    assert form_of(delivery, "TCP-80") == 1
    assert form_of(delivery, "TCP-81") is None


def test_a_resource_that_changes_after_a_refusal_is_proposed_at_once() -> None:
    delivery = refused_at_first()
    delivery.want(wanted(TCP_80=2, TCP_81=1), NOW)
    assert form_of(delivery, "TCP-80") == 2
    assert delivery.refusals == []


def test_a_refused_resource_is_proposed_again_after_pauses_that_grow() -> None:
    delivery, now, pauses = refused_at_first(), NOW, []
    for _ in range(7):
        began = now
        while form_of(delivery, "TCP-80") is None or now == began:
            now += timedelta(seconds=10)
            delivery.want(wanted(TCP_80=1, TCP_81=1), now)
        pauses.append(now - began)
        assert delivery.served is not None
        delivery.refuse(LISTENER_TYPE, delivery.served.version, BIND, now)
        delivery.want(wanted(TCP_80=1, TCP_81=1), now)
    assert pauses[0] == FIRST_PAUSE
    assert pauses[1] == 2 * FIRST_PAUSE
    assert pauses[-1] == LONGEST_PAUSE


def test_a_resource_accepted_at_the_second_time_is_refused_no_more() -> None:
    delivery = refused_at_first()
    delivery.want(wanted(TCP_80=1, TCP_81=1), NOW + FIRST_PAUSE)
    assert delivery.refusals == [BIND], "it stays reported until Envoy has taken it"
    take_all(delivery)
    assert delivery.refusals == []
    assert delivery.settled


def test_a_port_that_goes_takes_its_refusal_with_it() -> None:
    delivery = refused_at_first()
    delivery.want(wanted(TCP_81=1), NOW)
    assert delivery.refusals == []


def test_an_answer_to_an_older_version_changes_nothing() -> None:
    delivery = Delivery()
    delivery.want(wanted(TCP_80=1), NOW)
    delivery.want(wanted(TCP_80=2), NOW)
    delivery.refuse(LISTENER_TYPE, 1, BIND, NOW)
    delivery.taken(CLUSTER_TYPE, 1)
    assert delivery.refusals == []
    assert delivery.want(wanted(TCP_80=2), NOW) is None


def test_versions_go_on_from_the_saved_snapshot() -> None:
    saved = Snapshot(version=7, clusters=wanted(TCP_80=1).clusters, listeners=wanted(TCP_80=1).listeners)
    delivery = Delivery(saved)
    assert delivery.served == saved
    assert delivery.want(wanted(TCP_80=1), NOW) is None
    snapshot = delivery.want(wanted(TCP_80=2), NOW)
    assert snapshot is not None
    assert snapshot.version == 8


KEPT = Snapshot(version=3, clusters=wanted(TCP_80=1).clusters, listeners=wanted(TCP_80=1).listeners)


def test_a_saved_snapshot_is_read_again(tmp_path: Path) -> None:
    SnapshotFile(tmp_path / "deep" / "snapshot.json", "lbs/web").write(KEPT)
    assert SnapshotFile(tmp_path / "deep" / "snapshot.json", "lbs/web").read() == KEPT


def test_a_snapshot_saved_for_another_load_balancer_is_left_aside(tmp_path: Path) -> None:
    SnapshotFile(tmp_path / "snapshot.json", "lbs/web").write(KEPT)
    assert SnapshotFile(tmp_path / "snapshot.json", "lbs/other").read() is None


@pytest.mark.parametrize("damage", ["", "{", "null", '{"load_balancer": "lbs/web"}'])
def test_a_damaged_file_is_left_aside(tmp_path: Path, damage: str) -> None:
    (tmp_path / "snapshot.json").write_text(damage)
    assert SnapshotFile(tmp_path / "snapshot.json", "lbs/web").read() is None


def test_a_file_that_envoy_cannot_receive_is_left_aside(tmp_path: Path) -> None:
    file = SnapshotFile(tmp_path / "snapshot.json", "lbs/web")
    file.write(KEPT.model_copy(update={"clusters": {"TCP-80": {"invented": 1}}}))
    assert file.read() is None


def test_a_file_that_cannot_be_written_is_no_reason_to_fail(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    file = SnapshotFile(tmp_path / "file" / "snapshot.json", "lbs/web")
    file.write(KEPT)
    assert file.read() is None
