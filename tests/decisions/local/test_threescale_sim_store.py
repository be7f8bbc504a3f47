"""The store of the simulated 3scale, on SQLite as it is."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcloud.threescale import tables
from localcloud.threescale.answers import Page
from localcloud.threescale.store import Record, Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "store.db")
    yield store
    store.close()


@pytest.fixture
def tenant(store: Store) -> Record:
    return store.insert(tables.ACCOUNTS, kind="provider", org_name="Org", state="approved")


def service(store: Store, tenant: Record, system_name: str, **more: int | str) -> Record:
    values = {"name": system_name, "state": "incomplete", **more}
    return store.insert(tables.SERVICES, tenant_id=tenant.id, system_name=system_name, **values)


def test_columns_and_attributes_come_back_side_by_side(store: Store, tenant: Record) -> None:
    made = service(store, tenant, "a", description="text", extra=7)

    assert (made["description"], made["extra"], made["system_name"], made["missing"]) == ("text", 7, "a", None)


def test_a_change_touches_only_what_differs(store: Store, tenant: Record) -> None:
    made = service(store, tenant, "a", description="text")
    changed = store.update(made, description="other", name="b")

    assert (changed["description"], changed["name"], changed["state"]) == ("other", "b", "incomplete")
    assert store.update(changed, name="b") is changed


def test_a_failed_change_leaves_nothing(store: Store, tenant: Record) -> None:
    def fail() -> None:
        with store.transaction():
            service(store, tenant, "a")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()

    assert store.count(tables.SERVICES) == 0


def test_the_store_enforces_unique_values_too(store: Store, tenant: Record) -> None:
    service(store, tenant, "a")

    with pytest.raises(sqlite3.IntegrityError):
        service(store, tenant, "a")


def test_rows_that_belong_to_a_row_go_with_it(store: Store, tenant: Record) -> None:
    owner, other = service(store, tenant, "a"), service(store, tenant, "b")
    for each in (owner, other):
        store.insert(tables.METRICS, service_id=each.id, system_name="hits", friendly_name="Hits")
    store.delete(owner)

    assert [metric["service_id"] for metric in store.all(tables.METRICS)] == [other.id]


def test_an_id_is_not_used_again_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "again.db"
    first = Store(path)
    tenant = first.insert(tables.ACCOUNTS, kind="provider", org_name="Org", state="approved")
    gone = service(first, tenant, "a")
    first.delete(gone)
    first.close()
    second = Store(path)

    assert service(second, tenant, "a").id == gone.id + 1
    second.close()


def test_ids_of_tables_lie_apart() -> None:
    firsts = [tables.first_id(table) for table in tables.TABLES]

    assert firsts == sorted(set(firsts))


def test_pages_know_the_whole(store: Store, tenant: Record) -> None:
    for name in "abcde":
        service(store, tenant, name)
    found, page = store.page(tables.SERVICES, Page(3, 2), tenant_id=tenant.id)

    assert [each["system_name"] for each in found] == ["e"]
    assert (page.total, page.count) == (5, 3)


def test_positions_shift_within_their_owner(store: Store, tenant: Record) -> None:
    owner, other = service(store, tenant, "a"), service(store, tenant, "b")
    for each in (owner, other):
        metric = store.insert(tables.METRICS, service_id=each.id, system_name="hits", friendly_name="Hits")
        for position in (1, 2, 3):
            store.insert(tables.MAPPING_RULES, service_id=each.id, metric_id=metric.id, position=position)
    store.shift(tables.MAPPING_RULES, {"service_id": owner.id}, 2, None, 1)
    store.shift(tables.MAPPING_RULES, {"service_id": other.id}, 1, 2, 5)

    positions = [
        [rule["position"] for rule in store.all(tables.MAPPING_RULES, service_id=each.id)] for each in (owner, other)
    ]
    assert positions == [[1, 3, 4], [6, 7, 3]]


def test_only_finished_deletions_are_purged(store: Store, tenant: Record) -> None:
    for name, deleted in (("old", 10.0), ("new", 30.0)):
        store.update(service(store, tenant, name), deleted=deleted)
    service(store, tenant, "live")
    store.purge(tables.SERVICES, 20.0)

    assert [each["system_name"] for each in store.all(tables.SERVICES)] == ["new", "live"]
