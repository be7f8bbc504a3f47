"""Conditions of 3scale objects, held against how existing clients decide that an object is ready."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from domain.identity import Kind
from domain.threescale import APPLICATION, CUSTOM_KINDS, DEVELOPER_USER, PRODUCT, TENANT
from domain.threescale.conditions import Situation, SyncState, conditions, in_sync
from domain.threescale.resources.shared import Conditions

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
BY_NAME = {kind.name: kind for kind in CUSTOM_KINDS}
LONG_LIVED = ("Product", "Backend", "ActiveDoc", "CustomPolicyDefinition", "DeveloperAccount", "OpenAPI")


def conditions_of(kind: Kind, state: SyncState, message: str = "why", before: Conditions = ()) -> dict[str, str]:
    found = conditions(kind, Situation(state=state, message=message), before, NOW)
    return {each.type: each.status for each in found}


def counts_as_ready(kind: Kind, found: dict[str, str]) -> bool:
    """The rule of existing clients, ids apart; an absent Failed or Invalid counts as True."""

    def holds(type_: str, absent: str = "True") -> bool:
        return found.get(type_, absent) == "True"

    if kind.name in LONG_LIVED:
        sound = not holds("Failed") and not holds("Invalid")
        return sound and (holds("Synced", "False") or holds("Ready", "False"))
    if kind.name == "DeveloperUser":
        return not holds("Failed") and not holds("Invalid") and holds("Orphan", "False") != holds("Ready", "False")
    if kind.name == "Application":
        return next(iter(found.values())) == "True"
    if kind.name in ("ApplicationAuth", "ProxyConfigPromote"):
        return not holds("Failed") and holds("Ready", "False")
    return True  # of a Tenant only the ids are read


@pytest.mark.parametrize("kind", CUSTOM_KINDS, ids=lambda kind: kind.name)
def test_clients_take_what_is_fine_for_ready(kind: Kind) -> None:
    assert counts_as_ready(kind, conditions_of(kind, SyncState.FINE, ""))


@pytest.mark.parametrize("kind", [kind for kind in CUSTOM_KINDS if kind != TENANT], ids=lambda kind: kind.name)
@pytest.mark.parametrize("state", [SyncState.WAITING, SyncState.INVALID, SyncState.FAILED])
def test_clients_take_nothing_else_for_ready_but_a_user_that_waits(kind: Kind, state: SyncState) -> None:
    expected = kind == DEVELOPER_USER and state is SyncState.WAITING

    assert counts_as_ready(kind, conditions_of(kind, state)) is expected


@pytest.mark.parametrize(
    ("kind", "state", "shown"),
    [
        ("Product", SyncState.FINE, "Failed=False Invalid=False Orphan=False Synced=True"),
        ("Product", SyncState.WAITING, "Failed=True Invalid=False Orphan=True Synced=False"),
        ("Product", SyncState.INVALID, "Failed=True Invalid=True Orphan=False Synced=False"),
        ("Product", SyncState.FAILED, "Failed=True Invalid=False Orphan=False Synced=False"),
        ("Backend", SyncState.WAITING, "Failed=True Invalid=False Orphan=True Synced=False"),
        ("Backend", SyncState.INVALID, "Failed=True Invalid=True Synced=False"),
        ("ActiveDoc", SyncState.INVALID, "Failed=True Invalid=True Orphan=False Ready=False"),
        ("OpenAPI", SyncState.INVALID, "Failed=False Invalid=True Ready=False"),
        ("CustomPolicyDefinition", SyncState.INVALID, "Failed=False Invalid=True Ready=False"),
        ("DeveloperAccount", SyncState.INVALID, "Failed=False Invalid=True Ready=False Waiting=False"),
        ("DeveloperUser", SyncState.INVALID, "Failed=False Invalid=True Orphan=False Ready=False"),
        ("DeveloperAccount", SyncState.WAITING, "Failed=False Invalid=False Ready=False Waiting=True"),
        ("DeveloperUser", SyncState.WAITING, "Failed=False Invalid=False Orphan=True Ready=False"),
        ("Application", SyncState.FINE, "Ready=True"),
        ("Application", SyncState.WAITING, "Ready=False Failed=True Orphan=True"),
        ("ApplicationAuth", SyncState.FAILED, "Failed=True Ready=False"),
        ("Tenant", SyncState.FINE, "Ready=True"),
        ("OpenAPI", SyncState.SYNCING, "Failed=False InSync=True Invalid=False Ready=False"),
    ],
)
def test_a_kind_has_these_conditions(kind: str, state: SyncState, shown: str) -> None:
    found = conditions_of(BY_NAME[kind], state)

    assert " ".join(f"{type_}={status}" for type_, status in found.items()) == shown


def test_an_error_is_the_message_of_the_conditions_it_makes_true() -> None:
    found = conditions(PRODUCT, Situation(state=SyncState.WAITING, message="no backend"), (), NOW)

    assert {each.type for each in found if each.message == "no backend"} == {"Failed", "Orphan"}
    (first, *_) = conditions(APPLICATION, Situation(state=SyncState.FAILED, message="no plan"), (), NOW)
    assert (first.type, first.status, first.message) == ("Ready", "False", "no plan")


@pytest.mark.parametrize(
    ("kind", "before", "shown"),
    [
        ("Product", None, "Failed=False InSync=True Invalid=False Orphan=False Synced=False"),
        ("Product", SyncState.FINE, "Failed=False InSync=True Invalid=False Orphan=False Synced=True"),
        ("Application", SyncState.FINE, "Ready=True InSync=True"),
        ("DeveloperUser", SyncState.WAITING, "Failed=False InSync=True Invalid=False Orphan=True Ready=False"),
    ],
    ids=["new", "in step", "clients read its first", "waits"],
)
def test_a_lasting_sync_is_reported_beside_the_earlier_message(kind: str, before: SyncState | None, shown: str) -> None:
    known = conditions(BY_NAME[kind], Situation(state=before), (), NOW) if before else ()
    found = in_sync(BY_NAME[kind], "3scale asks for a minute", known, NOW)

    assert " ".join(f"{each.type}={each.status}" for each in found) == shown
    assert [each.message for each in found if each.type == "InSync"] == ["3scale asks for a minute"]


def test_a_sync_that_is_over_is_reported_no_more() -> None:
    lasting = in_sync(PRODUCT, "", (), NOW)

    assert {each.type for each in conditions(PRODUCT, Situation(state=SyncState.FINE), lasting, NOW)} == {
        "Failed",
        "Invalid",
        "Orphan",
        "Synced",
    }


def test_a_conditions_time_moves_with_its_status_only() -> None:
    first = conditions(PRODUCT, Situation(state=SyncState.WAITING, message="a"), (), NOW)
    later = conditions(PRODUCT, Situation(state=SyncState.WAITING, message="b"), first, NOW + timedelta(hours=1))
    synced = conditions(PRODUCT, Situation(state=SyncState.FINE), later, NOW + timedelta(hours=2))

    assert {each.last_transition_time for each in later} == {"2026-11-21T12:00:00Z"}
    assert {each.type for each in synced if each.last_transition_time == "2026-11-21T14:00:00Z"} == {
        "Failed",
        "Orphan",
        "Synced",
    }
    assert conditions(PRODUCT, Situation(state=SyncState.FINE), synced, NOW + timedelta(hours=3)) == synced
