"""Opting in to regions: whose turn it is, what is asked of AWS, what the status says, and that no deadline runs."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from account_objects import (
    AWS_ID,
    NAME,
    NOW,
    account,
    activities,
    ago,
    condition,
    config,
    ready_account,
    status_of,
    world,
)
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from activities.accounts import organization
from activities.accounts.cache import Reader
from activities.accounts.organization import OrganizationActivities
from activities.aws.session import Sessions
from domain.accounts.account_lifecycle import decide
from domain.accounts.actions.opt_in_regions import EnableRegions, RegionStatuses
from domain.accounts.config import OperatorConfig
from domain.accounts.observed import AccountWorld
from domain.accounts.opt_in_permits import NOT_OFFERED_AGAIN, PERMIT_LIFETIME, permits, permits_age
from domain.accounts.opt_in_regions import is_opting_in, regions_of, wants_to_opt_in
from domain.accounts.organization import OrganizationMemory
from domain.accounts.resources import Account
from domain.decision import Decision, Outcome
from domain.identity import Key
from domain.resource import timestamp
from domain.writes import Patch

AFRICA, MILAN, ZURICH = "af-south-1", "eu-south-1", "eu-central-2"
TURN = {"opt_in_asked": True, "opt_in_until": NOW + timedelta(minutes=1)}


def feature(regions: str = f"{AFRICA}, {MILAN}", **data: str) -> OperatorConfig:
    return config(**{"feature.opt_in_regions": "true", "opt-in-regions": regions, **data})


def creating(**fields: Any) -> Account:
    since = fields.pop("since", ago(minutes=1))
    status = {"state": "Creating", "conditions": [condition("Creating", entered=since)], **fields}
    return account(spec={"awsAccountID": AWS_ID}, status=status)


def opting_in(**regions: str) -> Account:
    listed = {name.replace("_", "-"): {"status": status} for name, status in regions.items()}
    return account(
        spec={"awsAccountID": AWS_ID},
        status={"state": "OptingInRegions", "conditions": [condition("OptingInRegions")], "optInRegions": listed},
    )


def decided(of: Account, known: dict[str, Any] | None = None, **fields: Any) -> Decision:
    return decide(world(of, known=known or {}, config=fields.pop("config", feature()), **fields), NOW)


def shown(decision: Decision) -> dict[str, str]:
    return {name: region["status"] for name, region in status_of(decision)["optInRegions"].items()}


def queried_regions(decision: Decision) -> dict[str, str]:
    (look,) = [action for action in decision.actions if isinstance(action, EnableRegions)]
    return look.seen


# --- the list ---


@pytest.mark.parametrize(
    ("data", "regions"),
    [
        ({}, (AFRICA, MILAN)),
        ({"disabled-regions": MILAN}, (AFRICA,)),
        ({"disabled-regions": f"{MILAN},{AFRICA}"}, ()),
        ({"feature.opt_in_regions": "false"}, ()),
        ({"opt-in-regions": " , "}, ()),
    ],
)
def test_the_regions_are_those_listed_and_not_disabled_while_the_feature_is_on(
    data: dict[str, str], regions: tuple[str, ...]
) -> None:
    assert regions_of(feature(**data)) == regions


# --- the turn ---


def test_without_the_feature_credentials_come_next() -> None:
    decision = decided(creating(), config=config())
    assert "aws.ensure_support_role" in activities(decision)


def test_the_turn_is_asked_for_once_and_then_waited_for() -> None:
    assert activities(decided(creating())) == ["accounts.ask_to_opt_in"]
    waits = decided(creating(), {"opt_in_asked": True})
    assert (waits.actions, waits.outcome, waits.waits_for) == ((), Outcome.WAITING, ("Organization",))


def test_the_deadline_of_creating_does_not_run_while_an_account_waits_for_its_turn() -> None:
    late = creating(since=ago(hours=3))
    waits = decided(late, {"opt_in_asked": True})
    assert (waits.outcome, waits.deadline) == (Outcome.WAITING, None)
    assert status_of(decided(late, config=config()))["state"] == "Failed", "as without the feature"


def test_a_turn_that_was_missed_is_asked_for_again() -> None:
    missed = {"opt_in_asked": True, "opt_in_until": NOW}
    decision = decided(creating(), missed)
    assert activities(decision) == ["accounts.ask_to_opt_in"]
    requested = decision.actions[0].fold(world(creating(), known=missed, config=feature()), None)
    assert decide(requested, NOW).outcome is Outcome.WAITING


def test_the_turn_begins_with_every_region_todo() -> None:
    decision = decided(creating(), TURN)
    assert status_of(decision)["state"] == "OptingInRegions"
    assert shown(decision) == {AFRICA: "TODO", MILAN: "TODO"}
    (found_condition,) = [c for c in status_of(decision)["conditions"] if c["type"] == "OptingInRegions"]
    assert found_condition["message"] == "Opting-In Regions"


@pytest.mark.parametrize("of", [creating(), opting_in(af_south_1="TODO")])
def test_in_development_mode_nothing_is_asked(of: Account) -> None:
    assert status_of(decided(of, dev_mode=True))["state"] == "OptInRegionsEnabled"


def test_a_claimed_account_does_not_opt_in() -> None:
    assert "accounts.ask_to_opt_in" not in activities(decided(creating(claimed=True)))


# --- the regions ---


def test_every_open_region_is_in_one_look() -> None:
    decision = decided(
        opting_in(af_south_1="TODO", eu_south_1="ENABLING", eu_central_2="ENABLED", me_south_1="MANUAL_ACTION")
    )
    assert queried_regions(decision) == {AFRICA: "TODO", MILAN: "ENABLING"}
    assert decision.waits_for == (f"Region/{MILAN}",)


def learnt(before: AccountWorld, **statuses: str) -> AccountWorld:
    look = next(action for action in decide(before, NOW).actions if isinstance(action, EnableRegions))
    return look.fold(before, RegionStatuses(statuses={n.replace("_", "-"): s for n, s in statuses.items()}))


def test_progress_is_written_while_the_look_goes_on() -> None:
    before = world(opting_in(af_south_1="TODO", eu_south_1="TODO"), config=feature())
    after = learnt(before, af_south_1="ENABLING", eu_south_1="ENABLED")
    decision = decide(after, NOW)
    (write,) = [a for a in decision.actions if isinstance(a, Patch)]
    assert write.patch == {"status": {"optInRegions": {AFRICA: {"status": "ENABLING"}, MILAN: {"status": "ENABLED"}}}}
    assert queried_regions(decision) == {AFRICA: "ENABLING"}
    assert after.written(write.patch, "9").known.opt_in_news == {}


def test_the_last_region_ends_the_state_in_the_same_write_and_relists_regions() -> None:
    before = world(opting_in(af_south_1="ENABLING", eu_south_1="ENABLED"), config=feature(), known={"regions": ("x",)})
    after = learnt(before, af_south_1="ENABLED")
    decision = decide(after, NOW)
    assert status_of(decision)["state"] == "OptInRegionsEnabled"
    assert status_of(decision)["optInRegions"] == {AFRICA: {"status": "ENABLED"}}
    assert after.known.regions is None


def test_a_region_that_aws_denies_is_named_and_blocks_nothing() -> None:
    before = world(opting_in(af_south_1="TODO"), config=feature())
    decision = decide(learnt(before, af_south_1="MANUAL_ACTION"), NOW)
    assert status_of(decision)["state"] == "OptInRegionsEnabled"
    (shown,) = [c for c in status_of(decision)["conditions"] if c["type"] == "OptInRegionsManualAction"]
    assert AFRICA in shown["message"]


def test_a_region_that_a_person_has_enabled_since_is_not_named_any_more() -> None:
    denied = decide(learnt(world(opting_in(af_south_1="TODO"), config=feature()), af_south_1="MANUAL_ACTION"), NOW)
    again = opting_in(af_south_1="TODO").model_dump(mode="json", by_alias=True)
    again["status"]["conditions"] = status_of(denied)["conditions"]
    decision = decide(learnt(world(Account.model_validate(again), config=feature()), af_south_1="ENABLED"), NOW)
    assert "OptInRegionsManualAction" not in [each["type"] for each in status_of(decision)["conditions"]]


def test_an_unknown_region_leaves_the_status_and_is_not_requested_again() -> None:
    before = world(opting_in(af_south_1="TODO", eu_south_1="ENABLED"), config=feature())
    after = learnt(before, af_south_1="")
    decision = decide(after, NOW)
    assert status_of(decision)["optInRegions"] == {AFRICA: None}
    (write,) = [a for a in decision.actions if isinstance(a, Patch)]
    assert AFRICA not in regions_wanted_of(after.written(write.patch, "9"))


def regions_wanted_of(of: AccountWorld) -> tuple[str, ...]:
    from domain.accounts.opt_in_regions import wanted_regions

    return wanted_regions(of)


def test_a_state_that_was_set_by_hand_begins_with_every_region() -> None:
    assert shown(decided(opting_in())) == {AFRICA: "TODO", MILAN: "TODO"}


def test_a_region_that_is_disabled_meanwhile_is_left_alone() -> None:
    of = opting_in(af_south_1="TODO", eu_south_1="ENABLED")
    decision = decided(of, config=feature(**{"disabled-regions": AFRICA}))
    assert status_of(decision)["state"] == "OptInRegionsEnabled"


@pytest.mark.parametrize(
    "off", [{"feature.opt_in_regions": "false"}, {"opt-in-regions": ""}, {"opt-in-regions": ZURICH}]
)
@pytest.mark.parametrize("state", ["OptingInRegions", "Ready"])
def test_a_region_that_the_configmap_wants_no_more_is_not_enabled(state: str, off: dict[str, str]) -> None:
    """A region that AWS enables is nothing that an account goes back from."""
    of = opting_in(af_south_1="TODO", eu_south_1="ENABLED", eu_central_2="ENABLED")
    spec = {"iamUserSecret": f"{NAME}-secret"}
    ready = ready_account(spec=spec, status={**of.status.model_dump(mode="json"), "state": "Ready"})
    decision = decided(of if state == "OptingInRegions" else ready, config=feature(**off))
    assert "aws.enable_regions" not in activities(decision)
    left = decision.actions[0]
    assert isinstance(left, Patch)
    assert dict(left.patch["status"])["optInRegions"] == {AFRICA: None}  # type: ignore[call-overload]


def test_after_opting_in_credentials_come_next_and_no_deadline_runs() -> None:
    since = condition("OptInRegionsEnabled", entered=ago(days=2))
    of = account(spec={"awsAccountID": AWS_ID}, status={"state": "OptInRegionsEnabled", "conditions": [since]})
    decision = decided(of)
    assert "aws.ensure_support_role" in activities(decision)
    assert decision.deadline is None
    known = {"tagged": True, "support_role": True, "admin_secret": f"{NAME}-secret", "regions": ("us-east-1",)}
    of = of.model_copy(update={"spec": of.spec.model_copy(update={"iam_user_secret": f"{NAME}-secret"})})
    assert status_of(decided(of, known))["state"] == "InitializingRegions"


# --- Ready ---


def ready(*regions: str, status: str = "ENABLED") -> Account:
    return ready_account(status={"optInRegions": {region: {"status": status} for region in regions}})


def test_a_ready_account_with_every_region_is_left_alone() -> None:
    assert decided(ready(AFRICA, MILAN)).outcome is Outcome.SETTLED


def test_a_ready_account_opts_in_to_what_the_list_has_more_and_stays_ready() -> None:
    assert activities(decided(ready(AFRICA))) == ["accounts.ask_to_opt_in"]
    decision = decided(ready(AFRICA), TURN)
    assert status_of(decision)["optInRegions"] == {MILAN: {"status": "TODO"}}
    assert "state" not in status_of(decision)
    assert queried_regions(decided(ready(AFRICA, MILAN, status="ENABLING"))) == {AFRICA: "ENABLING", MILAN: "ENABLING"}


def test_without_a_shard_name_a_ready_account_does_not_begin_to_opt_in() -> None:
    nameless = feature().model_copy(update={"shard_name": None})
    assert decided(ready(AFRICA), TURN, config=nameless).outcome is Outcome.SETTLED
    assert not wants_to_opt_in(ready(AFRICA), nameless)
    assert queried_regions(decided(ready(AFRICA, MILAN, status="ENABLING"), config=nameless)), (
        "what has begun is finished"
    )
    assert activities(decided(creating(), config=nameless)) == ["accounts.ask_to_opt_in"]


def test_a_longer_list_expands_the_quotas_again() -> None:
    of = ready(AFRICA)
    quotas = {"us-east-1": {"L-0EA8095F": {"value": 1, "status": "COMPLETED"}}}
    of = Account.model_validate(
        {**of.model_dump(mode="json"), "status": {**of.status.model_dump(mode="json"), "regionalServiceQuotas": quotas}}
    )
    assert status_of(decided(of, TURN))["regionalServiceQuotas"] == {"us-east-1": None}


# --- whose turn it is ---


def born(minutes: int, of: Account) -> Account:
    meta = of.metadata.model_copy(
        update={"name": f"account-{minutes}", "creation_timestamp": NOW - timedelta(minutes=minutes)}
    )
    return of.model_copy(update={"metadata": meta})


def turn(minutes: int) -> str:
    return born(minutes, creating()).key.path


def test_nine_accounts_opt_in_at_once_the_oldest_first() -> None:
    crowd = [born(minutes, creating()) for minutes in range(1, 21)]
    given = permits(crowd, feature(), {}, NOW)
    assert sorted(given.granted) == sorted(map(turn, range(12, 21)))
    assert given.waiting == 11
    assert set(given.granted.values()) == {NOW + PERMIT_LIFETIME}


def test_those_under_way_and_those_with_a_valid_permit_count() -> None:
    under_way = [born(100 + number, opting_in(af_south_1="TODO")) for number in range(4)]
    under_way += [born(200, ready(AFRICA, status="ENABLING"))]
    crowd = [*under_way, *(born(minutes, creating()) for minutes in range(1, 21))]
    permitted = {turn(1): NOW + timedelta(seconds=5), "gone": NOW + timedelta(seconds=5), turn(2): NOW}
    given = permits(crowd, feature(), permitted, NOW)
    assert set(given.granted) == {turn(1), turn(19), turn(20), "gone"}


def test_a_lifecycle_that_lost_its_memory_gives_the_same_turns() -> None:
    crowd = [born(minutes, creating()) for minutes in range(1, 21)]
    first = permits(crowd, feature(), {}, NOW)
    assert permits(crowd, feature(), {}, NOW) == first
    assert permits(crowd, feature(), first.granted, NOW) == first


def test_an_unknown_region_stops_no_new_account() -> None:
    """Ready accounts lack it for ever: each lets one turn run out, and does not come before a new account."""
    crowd = [born(minutes, ready(AFRICA)) for minutes in range(1, 31)]
    first = permits(crowd, feature(), {}, NOW)
    assert len(first.granted) == 9
    crowd.append(born(0, creating()))
    later = first.model_copy(update={"granted": dict.fromkeys(first.granted, NOW)})
    second = permits(crowd, feature(), later.granted, NOW, first.let_go)
    assert turn(0) in second.granted
    assert not second.granted.keys() & first.granted.keys()
    given, moment = second, NOW
    for _ in range(5):
        moment += PERMIT_LIFETIME
        given = permits(crowd, feature(), given.granted, moment, given.let_go)
    assert set(given.granted) == {turn(0)}
    assert given.waiting == 0


def test_a_released_turn_is_offered_again_after_hours_or_for_another_list() -> None:
    crowd = [born(1, ready(AFRICA))]
    over = permits(crowd, feature(), {turn(1): NOW}, NOW)
    assert (over.granted, over.waiting) == ({}, 0)
    assert permits(crowd, feature(), {}, NOW + NOT_OFFERED_AGAIN, over.let_go).granted
    assert permits(crowd, feature(f"{AFRICA},{ZURICH}"), {}, NOW, over.let_go).granted


async def test_a_turn_is_not_granted_when_its_account_cannot_be_notified() -> None:
    reader = cast("Reader", SimpleNamespace(settings=SimpleNamespace(accounts_protected=())))
    activities = OrganizationActivities(reader, cast("Sessions", None), cast("Client", None))
    begun = OrganizationMemory(), [born(1, ready(AFRICA))], feature()
    held = await ActivityEnvironment().run(activities.give_opt_in_permits, *begun, notifies=False)
    assert (held.opt_in_granted, held.opt_in_wanting) == ({}, 0)


async def test_every_account_of_a_name_is_signalled_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    signalled: list[Key] = []

    async def signal(_: Client, key: Key, *__: object) -> None:
        signalled.append(key)

    monkeypatch.setattr(organization, "signal_with_start", signal)
    settings = SimpleNamespace(accounts_protected=())
    reader = cast("Reader", SimpleNamespace(settings=settings, key=lambda account: account.key))
    first = creating()
    elsewhere = first.metadata.model_copy(update={"namespace": "other"})
    both = [first, first.model_copy(update={"metadata": elsewhere})]
    activities = OrganizationActivities(reader, cast("Sessions", None), cast("Client", None))
    request = OrganizationMemory(), both, feature()
    await ActivityEnvironment().run(activities.give_opt_in_permits, *request, notifies=True)
    assert [key.namespace for key in signalled] == [each.metadata.namespace for each in both]


def test_two_accounts_of_one_name_take_two_turns() -> None:
    first = born(30, creating())
    elsewhere = first.model_copy(update={"metadata": first.metadata.model_copy(update={"namespace": "other"})})
    crowd = [first, elsewhere, *(born(minutes, creating()) for minutes in range(1, 21))]
    given = permits(crowd, feature(), {}, NOW)
    assert set(given.granted) == {first.key.path, elsewhere.key.path, *map(turn, range(14, 21))}
    assert given.waiting == 13


def test_a_new_account_comes_before_ready_ones() -> None:
    crowd = [born(0, creating()), *(born(minutes, ready(AFRICA)) for minutes in range(1, 31))]
    assert turn(0) in permits(crowd, feature(), {}, NOW).granted


def test_a_protected_account_holds_no_turn() -> None:
    assert permits([born(1, ready(AFRICA))], feature(), {}, NOW, protected={AWS_ID}).granted == {}
    under_way = [born(minutes, opting_in(af_south_1="TODO")) for minutes in range(1, 10)]
    others = [
        each.model_copy(update={"spec": each.spec.model_copy(update={"aws_account_id": "1"})}) for each in under_way
    ]
    assert permits([*others, born(0, creating())], feature(), {}, NOW, protected={"1"}).granted


def test_an_account_that_has_begun_uses_its_permit_up() -> None:
    begun = born(5, opting_in(af_south_1="TODO"))
    assert permits([begun], feature(), {turn(5): NOW + PERMIT_LIFETIME}, NOW).granted == {}


def test_an_unused_permit_ends() -> None:
    known = OrganizationMemory(opt_in_granted={"a": NOW})
    assert permits_age(known, NOW)
    assert not permits_age(known, NOW - timedelta(seconds=1))
    assert permits([], feature(), known.opt_in_granted, NOW).granted == {}


@pytest.mark.parametrize(
    ("of", "wants"),
    [
        (creating(), True),
        (creating(claimed=True), False),
        (ready(AFRICA), True),
        (ready(AFRICA, MILAN), False),
        (opting_in(), False),
        (account(spec={"awsAccountID": AWS_ID, "byoc": True}, status={"state": "Creating"}), False),
        (account(status={"state": "Creating"}), False),
        (account(spec={"awsAccountID": AWS_ID}, meta={"deletionTimestamp": timestamp(NOW)}), False),
    ],
)
def test_accounts_that_want_a_turn(of: Account, wants: bool) -> None:
    assert wants_to_opt_in(of, feature()) is wants


def test_accounts_that_count_as_opting_in() -> None:
    assert is_opting_in(opting_in())
    assert is_opting_in(ready(AFRICA, status="TODO"))
    assert not is_opting_in(ready(AFRICA))
    assert not is_opting_in(creating())
