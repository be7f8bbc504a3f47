"""The OUs and tags of accounts, against AWS: few calls, and only what differs is changed."""

from __future__ import annotations

import pytest
from aws_lab import Lab

from activities.aws.account_moves import misplaced, move_between
from activities.aws.organization import ensure_organizational_units, set_tags, tags_of
from domain.accounts.config import parse_config
from engine.errors import Absent, Denied
from engine.kube import CONFIG_MAP as CONFIG_MAP_KIND
from engine.kube.json import mapping

pytestmark = pytest.mark.integration

NAMESPACE, NAME = "aws-account-operator", "aws-account-operator-configmap"


@pytest.fixture
def places(lab: Lab) -> tuple[str, str]:
    """The root, and a unit beside it."""
    data = mapping(lab.kube.get(CONFIG_MAP_KIND, NAMESPACE, NAME), "data")
    config = parse_config({name: str(value) for name, value in data.items()})
    unit = ensure_organizational_units(lab.sessions, config.base, ["validated"]).ids["validated"]
    return config.root, unit


def test_only_a_misplaced_account_is_reported_and_moved_once(lab: Lab, places: tuple[str, str]) -> None:
    root, unit = places
    first, second = lab.account()[0], lab.account()[0]
    assert misplaced(lab.sessions, {first: root, second: unit}) == {second: root}
    move_between(lab.sessions, second, root, unit)
    assert misplaced(lab.sessions, {first: root, second: unit}) == {}
    assert lab.emulator.world().account(second).parent == unit


def test_accounts_of_one_place_are_observed_together(lab: Lab, places: tuple[str, str]) -> None:
    root, unit = places
    accounts = [lab.account()[0] for _ in range(5)]
    move_between(lab.sessions, accounts[0], root, unit)
    lab.emulator.reset_ledger()
    assert misplaced(lab.sessions, dict.fromkeys(accounts, root)) == {accounts[0]: unit}
    assert lab.calls("organizations", "ListParents") == 1


def test_a_missing_ou_is_reported_for_each_account(lab: Lab, places: tuple[str, str]) -> None:
    root, _ = places
    accounts = [lab.account()[0] for _ in range(5)]
    assert misplaced(lab.sessions, dict.fromkeys(accounts, "ou-none-none0000")) == dict.fromkeys(accounts, root)
    strange = misplaced(lab.sessions, {"000000000001": root})["000000000001"]
    assert isinstance(strange, Absent)


def test_tags_are_set_over_others_and_the_rest_stays(lab: Lab) -> None:
    account_id, _ = lab.account()
    set_tags(lab.sessions, account_id, {"owner": "old", "kept": "1"})
    set_tags(lab.sessions, account_id, {"owner": "new", "app-code": "A"})
    assert tags_of(lab.sessions, account_id) == {"owner": "new", "kept": "1", "app-code": "A"}


def test_the_payer_is_never_moved_nor_tagged(lab: Lab, places: tuple[str, str]) -> None:
    root, unit = places
    payer = lab.sessions.payer().identity().account_id
    with pytest.raises(Denied):
        move_between(lab.sessions, payer, root, unit)
    with pytest.raises(Denied):
        set_tags(lab.sessions, payer, {"owner": "ours"})
