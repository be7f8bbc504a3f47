"""Pauses of whole areas: how they are written, which objects they hold, and that nothing is sent meanwhile."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self, cast

import pytest
import typer
import yaml
from temporalio.testing import ActivityEnvironment
from waiting import eventually

from domain.audit_report import CONFIG_MAP_NAME as AUDIT_REPORT
from domain.control_annotations import PAUSED
from domain.identity import all_areas
from domain.pauses import CONFIG_MAP_NAME, RESUMED, Pause, areas_changed, pauses_in, resumed_since, why_paused
from engine.errors import Unavailable
from engine.health import Health
from engine.kube import KubeApi, pausing
from engine.pauses import PAUSED_AREAS, held, paused_area, refuse_if_paused, set_pauses
from engine.settings import Settings
from starters.cli.pause_areas import named

NOW = datetime(2026, 11, 22, 7, tzinfo=UTC)
AREAS = ("accounts", "claims")
LEAK = Pause(by="mia@desk", reason="the payer's key leaked", since=NOW)


@pytest.fixture(autouse=True)
def _nothing_paused_afterwards() -> Iterator[None]:
    yield
    set_pauses({})


def config_map(**data: str) -> dict[str, object]:
    return {"data": data}


async def sent_for(kind: str) -> str:
    """How a change is refused that is sent in an activity of such a lifecycle; empty if it is not."""
    environment = ActivityEnvironment()
    environment.info = dataclasses.replace(environment.info, workflow_type=kind)

    async def change() -> str:
        try:
            refuse_if_paused("iam.CreateUser in 1234")
        except Unavailable as error:
            return f"{error.message}; again in {error.delay}"
        return ""

    return await environment.run(change)


def test_a_written_pause_is_read() -> None:
    assert pauses_in(config_map(accounts=LEAK.written())) == {"accounts": LEAK}


def test_a_text_written_by_hand_is_the_reason() -> None:
    assert why_paused(pauses_in(config_map(all="they are on fire\n")), "claims") == (
        "everything is paused: they are on fire"
    )


def test_an_area_is_paused_by_its_name_and_by_all() -> None:
    assert why_paused({"accounts": LEAK}, "accounts") == (
        "accounts is paused by mia@desk since 2026-11-22T07:00:00Z: the payer's key leaked"
    )
    assert why_paused({"accounts": LEAK}, "claims") == ""
    assert why_paused({"all": LEAK}, "claims").startswith("everything is paused by mia@desk")


@pytest.mark.parametrize("found", [None, {}, {"data": None}, {"data": {}}])
def test_nothing_written_pauses_nothing(found: dict[str, object] | None) -> None:
    assert why_paused(pauses_in(found), "accounts") == ""


def test_an_area_goes_on_only_when_nothing_holds_it_any_more() -> None:
    both = {"accounts": LEAK, "all": LEAK}
    assert areas_changed({}, both, AREAS) == (AREAS, ())
    assert areas_changed(both, {"accounts": LEAK}, AREAS) == ((), ("claims",))
    assert areas_changed({"accounts": LEAK}, {}, AREAS) == ((), ("accounts",))


def test_a_new_leader_knows_what_was_resumed_shortly_before() -> None:
    let_go = {"metadata": {"annotations": {f"{RESUMED}claims": "2026-11-22T06:55:00Z", f"{RESUMED}accounts": "?"}}}
    assert resumed_since(let_go, NOW - timedelta(minutes=10), AREAS) == ("claims",)
    assert resumed_since(let_go, NOW, AREAS) == ()
    everything = {"metadata": {"annotations": {f"{RESUMED}all": "2026-11-22T06:55:00Z"}}}
    assert resumed_since(everything, NOW - timedelta(minutes=10), AREAS) == AREAS


def test_an_object_is_held_by_itself_and_by_its_area() -> None:
    acting, observing = Settings(mode="act"), Settings(mode="observe")
    assert held("accounts", {}, acting) == ""
    set_pauses({"accounts": LEAK})
    assert "the payer's key leaked" in held("accounts", {}, acting)
    assert held("claims", {}, acting) == ""
    assert "annotation" in held("accounts", {PAUSED: "true"}, acting)
    assert "PERDURE_MODE=observe" in held("accounts", {}, observing)


async def test_nothing_is_sent_for_a_lifecycle_of_a_paused_area() -> None:
    set_pauses({"accounts": LEAK})
    assert await sent_for("Account") == (
        "iam.CreateUser in 1234: not sent, accounts is paused by mia@desk since 2026-11-22T07:00:00Z: "
        "the payer's key leaked; again in 0:01:00"
    )
    assert await sent_for("ResourceClaim") == ""


async def test_everything_is_sent_where_nothing_is_paused() -> None:
    assert await sent_for("Account") == ""


def test_a_request_outside_of_a_lifecycle_is_sent_even_then() -> None:
    """Leases, levers, and whatever else a process does by itself."""
    set_pauses({"all": LEAK})
    refuse_if_paused("update Lease perdure/perdure-watch")


class Arriving:
    """A store of which the first list is there when `arrived` is set."""

    trouble, listed = "", True

    def __init__(self, arrived: asyncio.Event) -> None:
        self.settled = arrived.wait

    def __call__(self, kube: KubeApi) -> Self:
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None: ...

    def follow(self, followed: object) -> Self:
        return self

    def listen(self, learn: object) -> None: ...


@pytest.mark.parametrize("turns", range(4))
async def test_a_pauses_end_that_comes_together_with_the_first_list_is_noticed(
    monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    arrived = asyncio.Event()
    monkeypatch.setattr(pausing, "Store", Arriving(arrived))

    async def follow() -> None:
        async with pausing.pauses_followed(cast("KubeApi", None), Settings(), Health()):
            await asyncio.sleep(60)

    task = asyncio.create_task(follow())
    await asyncio.sleep(0.01)
    arrived.set()
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task], timeout=1)
    assert task.cancelled()


async def test_a_watcher_that_begins_to_lead_does_not_interrupt_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """In `perdure run`, the worker of the same process has read the pauses already."""
    set_pauses({"accounts": LEAK})
    arrived = asyncio.Event()
    monkeypatch.setattr(pausing, "Store", Arriving(arrived))

    async def lead() -> None:
        async with pausing.pauses_followed(cast("KubeApi", None), Settings(), Health()):
            await asyncio.sleep(60)

    task = asyncio.create_task(lead())
    await asyncio.sleep(0.01)
    assert await sent_for("Account")
    arrived.set()  # the list has no pauses
    await eventually(lambda: not paused_area("accounts"), "the end of the pause")
    task.cancel()
    await asyncio.wait([task], timeout=1)


def test_the_metric_shows_every_area() -> None:
    set_pauses({"accounts": LEAK})
    values = {sample.labels["area"]: sample.value for family in PAUSED_AREAS.collect() for sample in family.samples}
    assert values == {area: float(area == "accounts") for area in all_areas()}


def test_one_object_or_an_area_or_everything_is_named() -> None:
    assert named("", "", "claims", everything=False) == "claims"
    assert named("", "", "", everything=True) == "all"
    assert named("account", "a/b", "", everything=False) == ""


@pytest.mark.parametrize(
    ("kind", "name", "area", "everything"),
    [("", "", "", False), ("account", "", "", False), ("account", "a/b", "claims", False), ("", "", "claims", True)],
)
def test_anything_else_is_refused(kind: str, name: str, area: str, everything: bool) -> None:
    with pytest.raises(typer.BadParameter):
        named(kind, name, area, everything=everything)


def test_an_area_that_there_is_none_of_is_refused() -> None:
    with pytest.raises(typer.BadParameter, match="accounts, claims, instances, loadbalancers, threescale"):
        named("", "", "storage", everything=False)


def test_the_rights_name_the_config_map_that_is_read() -> None:
    rights = Path(__file__).parents[3] / "deploy" / "rbac" / "pauses.yaml"
    roles = [obj for obj in yaml.safe_load_all(rights.read_text()) if "rules" in obj]
    assert {name for role in roles for rule in role["rules"] for name in rule.get("resourceNames", [])} == {
        CONFIG_MAP_NAME,
        AUDIT_REPORT,
    }
