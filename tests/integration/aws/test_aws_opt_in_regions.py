"""Opt-in regions: one look at all, six under way at most, and each answer that AWS has."""

from __future__ import annotations

from datetime import timedelta

import pytest
from aws_lab import Lab

from domain.accounts.actions.opt_in_regions import EnableRegions
from domain.accounts.actions.region_initialization import ListRegions
from engine.errors import Denied, Pending, Unavailable

pytestmark = pytest.mark.integration

AFRICA, MILAN, ZURICH = "af-south-1", "eu-south-1", "eu-central-2"
HOUR = 3600
LATE = timedelta(minutes=10)


def enabled(lab: Lab, account_id: str, seen: dict[str, str], **how: object) -> dict[str, str]:
    action = EnableRegions(account_id=account_id, seen=seen)
    return lab.run(lab.activities.enable_regions, action, **how).statuses  # type: ignore[arg-type]


def test_regions_are_requested_and_then_observed_in_one_call(lab: Lab) -> None:
    account_id, _ = lab.account()
    lab.emulator.config(region_enable_seconds=HOUR)
    requested = enabled(lab, account_id, {AFRICA: "TODO", MILAN: "TODO"})
    assert requested == {AFRICA: "ENABLING", MILAN: "ENABLING"}
    lab.emulator.reset_ledger()
    with pytest.raises(Pending) as pending:
        enabled(lab, account_id, requested)
    assert pending.value.delay == lab.settings.accounts_poll
    assert lab.emulator.ledger().by_action() == {"account:ListRegions": 1}
    lab.emulator.clock(advance_seconds=HOUR + 1)
    assert enabled(lab, account_id, requested) == {AFRICA: "ENABLED", MILAN: "ENABLED"}
    regions = lab.run(lab.activities.list_regions, ListRegions(account_id=account_id))
    assert {AFRICA, MILAN} <= {*regions.regions}


def test_an_answer_that_was_lost_asks_for_nothing_twice(lab: Lab) -> None:
    account_id, _ = lab.account()
    lab.emulator.config(region_enable_seconds=HOUR)
    lab.emulator.fault("account", "EnableRegion", kind="after", count=1)
    with pytest.raises(Unavailable):
        enabled(lab, account_id, {AFRICA: "TODO"})
    assert enabled(lab, account_id, {AFRICA: "TODO"}) == {AFRICA: "ENABLING"}
    assert lab.calls("account", "EnableRegion", account_id) == 1


def test_six_regions_are_under_way_at_most_and_the_next_follows(lab: Lab) -> None:
    account_id, _ = lab.account()
    lab.emulator.config(region_enable_seconds=HOUR)
    regions = sorted(lab.emulator.config().opt_in_regions)[:8]
    requested = enabled(lab, account_id, dict.fromkeys(regions, "TODO"))
    assert [region for region, status in requested.items() if status == "ENABLING"] == regions[:6]
    lab.emulator.clock(advance_seconds=HOUR + 1)
    later = enabled(lab, account_id, requested)
    assert [later[region] for region in regions] == ["ENABLED"] * 6 + ["ENABLING"] * 2


def test_regions_enabled_by_default_are_enabled_and_unknown_ones_are_reported(lab: Lab) -> None:
    account_id, _ = lab.account()
    assert enabled(lab, account_id, {"us-east-1": "TODO", "mars-1": "TODO"}) == {"us-east-1": "ENABLED", "mars-1": ""}


def test_a_denial_counts_when_it_is_repeated(lab: Lab) -> None:
    account_id, _ = lab.account()
    lab.emulator.fault("account", "EnableRegion", kind="denied")
    with pytest.raises(Unavailable):
        enabled(lab, account_id, {AFRICA: "TODO"})
    assert enabled(lab, account_id, {AFRICA: "TODO"}, attempt=3) == {AFRICA: "MANUAL_ACTION"}
    assert enabled(lab, account_id, {AFRICA: "TODO"}, age=LATE) == {AFRICA: "MANUAL_ACTION"}


@pytest.mark.parametrize(("look", "intervals"), [(15, 1), (16, 1), (18, 3), (100, 5)])
def test_a_region_that_takes_long_is_observed_less_often(lab: Lab, look: int, intervals: int) -> None:
    account_id, _ = lab.account()
    lab.emulator.config(region_enable_seconds=HOUR)
    requested = enabled(lab, account_id, {AFRICA: "TODO"})
    action = EnableRegions(account_id=account_id, seen=requested)
    with pytest.raises(Pending) as pending:
        lab.run(lab.activities.enable_regions, action, attempt=look)
    assert pending.value.delay == intervals * lab.settings.accounts_poll


def test_where_the_list_is_denied_each_region_is_asked_for(lab: Lab) -> None:
    account_id, _ = lab.account()
    lab.emulator.config(region_enable_seconds=HOUR)
    lab.emulator.fault("account", "ListRegions", kind="denied")
    assert enabled(lab, account_id, {AFRICA: "TODO"}, age=LATE) == {AFRICA: "ENABLING"}
    with pytest.raises(Pending):
        enabled(lab, account_id, {AFRICA: "ENABLING"}, age=LATE)
    assert lab.calls("account", "GetRegionOptStatus", account_id) == 2


def test_nothing_is_opted_in_to_in_a_protected_account(lab: Lab) -> None:
    with pytest.raises(Denied):
        enabled(lab, lab.sessions.payer().identity().account_id, {AFRICA: "TODO"})
