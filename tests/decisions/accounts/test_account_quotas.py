"""Service quotas of a pool's account: what is expanded, what may be asked for at once, what waits, what fails."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from account_objects import (
    AWS_ID,
    NOW,
    account,
    activities,
    ago,
    condition,
    config,
    present,
    ready_account,
    settle,
    status_of,
    world,
)

from domain.accounts.account_lifecycle import decide
from domain.accounts.actions.region_initialization import InitializeRegion
from domain.accounts.actions.service_quotas import QuotaStatuses, RaiseQuotas
from domain.accounts.observed import AccountWorld, RegionOutcome
from domain.accounts.resources import Account, AccountStatus, ServiceQuota
from domain.accounts.service_quotas import batches, expanded, quotas_of
from domain.decision import Decision, Outcome
from domain.writes import Patch

RULES, VCPUS, ADDRESSES, ROLES = "L-0EA8095F", "L-1216C47A", "L-0263D0A3", "L-FE177D64"
MANY = tuple(f"region-{number:02}" for number in range(17))
FIFTEEN = {f"L-{number:02}": 100 for number in range(15)}


def spec(regional: dict[str, dict[str, int]] | None = None, everywhere: dict[str, int] | None = None) -> dict[str, Any]:
    return {
        "awsAccountID": AWS_ID,
        "regionalServiceQuotas": {
            region: {code: {"value": value, "status": ""} for code, value in codes.items()}
            for region, codes in (regional or {}).items()
        },
        "globalServiceQuotas": {code: {"value": v, "status": ""} for code, v in (everywhere or {}).items()},
    }


def pending(status: dict[str, dict[str, str]] | None = None, of: dict[str, Any] | None = None, **more: Any) -> Account:
    """An Account in PendingVerification whose case is open; quota statuses by region ("" is the account) and code."""
    status = status or {}
    codes = {c: 100 for region, listed in status.items() for c in listed if region}
    wide = dict.fromkeys(status.get("", {}), 100)
    return account(
        spec=of or spec({"default": codes} if codes else None, wide),
        status={
            "state": "PendingVerification",
            "supportCaseID": "case-1",
            "conditions": [condition("PendingVerification", entered=ago(minutes=5))],
            "regionalServiceQuotas": {
                region: {c: {"value": 100, "status": s} for c, s in listed.items()}
                for region, listed in status.items()
                if region
            },
            "globalServiceQuotas": {c: {"value": 100, "status": s} for c, s in status.get("", {}).items()},
            **more,
        },
    )


def raised(decision: Decision) -> dict[str, RaiseQuotas]:
    return {action.region: action for action in decision.actions if isinstance(action, RaiseQuotas)}


def shown(decision: Decision) -> dict[str, dict[str, str]]:
    """The quota statuses that the decision writes."""
    written = status_of(decision)
    found = {r: {c: q["status"] for c, q in codes.items()} for r, codes in written["regionalServiceQuotas"].items()}
    wide = {code: quota["status"] for code, quota in written.get("globalServiceQuotas", {}).items()}
    return {**found, **({"": wide} if wide else {})}


def learn(before: AccountWorld, action: RaiseQuotas, **statuses: str) -> AccountWorld:
    names = {code.replace("_", "-"): status for code, status in statuses.items()}
    return action.fold(before, QuotaStatuses(statuses=names))


# --- expansion ---


def test_the_default_holds_for_every_region_and_a_regions_own_entry_wins() -> None:
    of = account(spec=spec({"default": {RULES: 100, VCPUS: 10}, "eu-west-1": {VCPUS: 50}}, {ROLES: 5000}))
    status = expanded(of.spec, of.status, ("us-east-1", "eu-west-1"), config())
    assert status.regional_service_quotas == {
        "eu-west-1": {RULES: ServiceQuota(value=100, status="TODO"), VCPUS: ServiceQuota(value=50, status="TODO")},
        "us-east-1": {RULES: ServiceQuota(value=100, status="TODO"), VCPUS: ServiceQuota(value=10, status="TODO")},
    }
    assert status.global_service_quotas == {ROLES: ServiceQuota(value=5000, status="TODO")}


def test_disabled_and_missing_regions_get_no_quota_requests() -> None:
    of = account(spec=spec({"default": {RULES: 100}, "mars-1": {RULES: 7}}))
    status = expanded(of.spec, of.status, ("us-east-1", "eu-west-1"), config(disabled_regions="eu-west-1"))
    assert list(status.regional_service_quotas) == ["us-east-1"]


def test_entries_of_regions_alone_need_no_default() -> None:
    of = account(spec=spec({"eu-west-1": {RULES: 100}}))
    status = expanded(of.spec, of.status, ("us-east-1", "eu-west-1"), config())
    assert list(status.regional_service_quotas) == ["eu-west-1"]


def test_an_unknown_quota_code_is_left_to_people_and_blocks_nothing() -> None:
    of = account(spec=spec({"default": {"L-UNKNOWN": 1}}))
    status = expanded(of.spec, of.status, ("us-east-1",), config())
    assert status.regional_service_quotas["us-east-1"]["L-UNKNOWN"].status == "MANUAL_ACTION"


def test_quotas_are_expanded_in_the_write_that_begins_to_wait_for_the_case() -> None:
    of = account(
        spec=spec({"default": {RULES: 100}}),
        status={"state": "InitializingRegions", "conditions": [condition("InitializingRegions")]},
    )
    decision = decide(world(of, known={"regions": (), "case_id": "case-1"}), NOW)
    assert status_of(decision)["state"] == "PendingVerification"
    known = {
        "regions": ("us-east-1",),
        "case_id": "case-1",
        "outcomes": {"us-east-1": {"region": "us-east-1", "ok": True}},
    }
    decision = decide(world(of, known=known), NOW)
    assert status_of(decision)["regionalServiceQuotas"] == {"us-east-1": {RULES: {"value": 100, "status": "TODO"}}}


def test_a_life_that_lost_its_memory_lists_the_regions_before_it_expands() -> None:
    of = pending(of=spec({"default": {RULES: 100}}))
    decision = decide(world(of), NOW)
    assert activities(decision) == ["aws.list_regions"]
    assert "waits for the list of the account's regions" in decision.why
    decision = decide(world(of, known={"regions": ("us-east-1",)}), NOW)
    assert shown(decision) == {"us-east-1": {RULES: "TODO"}}
    assert raised(decision)["us-east-1"].quotas == {RULES: ServiceQuota(value=100, status="TODO")}


def test_an_account_without_wanted_quotas_asks_for_nothing() -> None:
    assert activities(decide(world(pending()), NOW)) == []


# --- how many at once ---


def standing(status: str, codes: dict[str, int] = FIFTEEN, regions: tuple[str, ...] = MANY) -> AccountStatus:
    quotas = {code: ServiceQuota(value=value, status=status) for code, value in codes.items()}
    return AccountStatus(regional_service_quotas={region: dict(quotas) for region in regions})


def requested_counts(of: AccountStatus, **fields: Any) -> dict[str, int]:
    acting = world(account(spec={"awsAccountID": AWS_ID}).model_copy(update={"status": of}), **fields)
    return {action.region: len(action.quotas) for action in batches(acting, quotas_of(of))}


def test_never_more_than_twenty_are_open_and_each_region_has_one_look() -> None:
    assert requested_counts(standing("TODO")) == {"region-00": 15, "region-01": 5}


def test_open_requests_come_first_and_leave_the_rest_of_the_places() -> None:
    first = {code: ServiceQuota(value=1, status="IN_PROGRESS") for code in list(FIFTEEN)[:12]}
    of = standing("TODO", regions=MANY[:3])
    of = of.model_copy(update={"regional_service_quotas": {**of.regional_service_quotas, "region-02": first}})
    assert requested_counts(of) == {"region-00": 8, "region-02": 12}


def test_all_places_taken_leave_only_looks() -> None:
    ten = standing("IN_PROGRESS", dict(list(FIFTEEN.items())[:10]), MANY[:2]).regional_service_quotas
    of = AccountStatus(regional_service_quotas={**standing("TODO").regional_service_quotas, **ten})
    assert requested_counts(of) == {"region-00": 10, "region-01": 10}


def test_a_region_that_was_opted_in_to_takes_two() -> None:
    assert requested_counts(standing("TODO", regions=MANY[:2]), config=config(opt_in_regions="region-00")) == {
        "region-00": 2,
        "region-01": 15,
    }


def test_account_wide_quotas_count_and_come_last() -> None:
    of = standing("TODO", regions=MANY[:1]).model_copy(
        update={"global_service_quotas": {ROLES: ServiceQuota(value=1, status="TODO")}}
    )
    assert requested_counts(of) == {"region-00": 15, "": 1}


def test_running_requests_stay_among_the_chosen_while_earlier_ones_end_in_any_way() -> None:
    """A running observation learns no new choices: all it was given must stay chosen, or more than 20 were open."""
    of = standing("TODO", regions=MANY[:4])
    running = {
        a.region: set(a.quotas) for a in batches(world(account().model_copy(update={"status": of})), quotas_of(of))
    }
    for status in ("COMPLETED", "IN_PROGRESS", "MANUAL_ACTION"):
        for ended in range(16):
            codes = dict(of.regional_service_quotas["region-00"])
            for code in list(codes)[:ended]:
                codes[code] = codes[code].model_copy(update={"status": status})
            later = of.model_copy(
                update={"regional_service_quotas": {**of.regional_service_quotas, "region-00": codes}}
            )
            again = batches(world(account().model_copy(update={"status": later})), quotas_of(later))
            chosen = {(action.region, code) for action in again for code in action.quotas}
            assert {("region-01", code) for code in running["region-01"]} <= chosen
            assert len(chosen) <= 20


# --- the vCPUs that regions ask for when they are initialised ---


def test_vcpus_requested_with_the_regions_take_their_places_and_are_observed() -> None:
    known = {"vcpus_asked": MANY}
    assert requested_counts(standing("TODO"), known=known) == {"region-00": 3, **dict.fromkeys(MANY[1:], 0)}
    assert requested_counts(standing("TODO"), known={"vcpus_asked": MANY[1:]})["region-00"] == 4
    assert requested_counts(standing("TODO"), known={"vcpus_asked": ("elsewhere",)}) == {
        "region-00": 15,
        "region-01": 4,
        "elsewhere": 0,
    }


def test_of_the_two_places_of_an_opted_in_region_they_take_one() -> None:
    fields = {"config": config(opt_in_regions="region-00"), "known": {"vcpus_asked": ("region-00",)}}
    assert requested_counts(standing("TODO", regions=MANY[:1]), **fields) == {"region-00": 1}


def test_vcpus_are_not_read_when_every_quota_has_its_region() -> None:
    assert requested_counts(standing("IN_PROGRESS", {RULES: 1}, MANY[:1]), known={"vcpus_asked": MANY[:2]}) == {
        "region-00": 1
    }
    assert requested_counts(standing("COMPLETED"), known={"vcpus_asked": MANY}) == {}


def test_vcpus_that_the_pool_wants_itself_are_counted_once() -> None:
    of = standing("IN_PROGRESS", {VCPUS: 100}, MANY[:1])
    more = standing("TODO", regions=MANY[1:]).regional_service_quotas
    of = of.model_copy(update={"regional_service_quotas": {**of.regional_service_quotas, **more}})
    assert requested_counts(of, known={"vcpus_asked": ("region-00",)}) == {
        "region-00": 1,
        "region-01": 15,
        "region-02": 4,
    }


def test_a_quota_request_of_initialization_is_remembered_until_it_has_ended() -> None:
    before = world(pending({"us-east-1": {RULES: "TODO"}}))
    (init,) = [
        a
        for a in decide(world(_in_regions(), known={"regions": ("us-east-1",)}), NOW).actions
        if isinstance(a, InitializeRegion)
    ]
    after = init.fold(before, RegionOutcome(region="us-east-1", ok=True, vcpus_asked=True))
    look = raised(decide(after, NOW))["us-east-1"]
    assert look.vcpus_asked
    still = look.fold(after, QuotaStatuses(statuses={RULES: "IN_PROGRESS"}, vcpus_asked=True))
    assert still.known.vcpus_asked == ("us-east-1",)
    ended = look.fold(after, QuotaStatuses(statuses={RULES: "IN_PROGRESS"}))
    assert ended.known.vcpus_asked == ()


def _in_regions() -> Account:
    entered = condition("InitializingRegions", entered=ago(minutes=1))
    status = {"state": "InitializingRegions", "conditions": [entered]}
    return account(spec=spec(), status=status)


# --- what comes of them ---


def test_news_of_quotas_are_written_once_and_then_forgotten() -> None:
    before = world(pending({"us-east-1": {RULES: "TODO", VCPUS: "TODO"}}))
    action = raised(decide(before, NOW))["us-east-1"]
    after = learn(before, action, L_0EA8095F="IN_PROGRESS", L_1216C47A="COMPLETED")
    decision = decide(after, NOW)
    (write,) = [a for a in decision.actions if isinstance(a, Patch)]
    assert write.patch == {
        "status": {
            "regionalServiceQuotas": {"us-east-1": {RULES: {"status": "IN_PROGRESS"}, VCPUS: {"status": "COMPLETED"}}}
        }
    }
    assert set(raised(decision)["us-east-1"].quotas) == {RULES}, "and the look goes on for what is open"
    written = after.written(write.patch, "8")
    assert written.known.quota_news == {}
    assert not any(isinstance(a, Patch) for a in decide(written, NOW).actions)


def test_news_of_a_value_that_is_not_wanted_any_more_are_none() -> None:
    before = world(pending({"us-east-1": {RULES: "TODO"}}))
    after = learn(before, raised(decide(before, NOW))["us-east-1"], L_0EA8095F="COMPLETED")
    changed = pending({"us-east-1": {RULES: "TODO"}}).model_dump(mode="json")
    changed["status"]["regionalServiceQuotas"]["us-east-1"][RULES]["value"] = 200
    after = after.model_copy(update={"account": Account.model_validate(changed)})
    assert raised(decide(after, NOW))["us-east-1"].quotas[RULES] == ServiceQuota(value=200, status="TODO")


@pytest.mark.parametrize("open_", ["TODO", "IN_PROGRESS"])
def test_no_account_is_ready_before_its_quotas_are_settled(open_: str) -> None:
    decision = decide(world(pending({"us-east-1": {RULES: open_}}), known={"resolved_case": "case-1"}), NOW)
    assert activities(decision) == ["aws.raise_quotas"]
    assert decision.waits_for == ("ServiceQuotas",)
    assert "us-east-1/L-0EA8095F" in decision.why


def test_settled_quotas_wait_for_the_case_and_a_resolved_one_makes_ready() -> None:
    of = pending({"us-east-1": {RULES: "COMPLETED", VCPUS: "MANUAL_ACTION"}})
    assert decide(world(of), NOW).waits_for == ("SupportCase/case-1",)
    ready = status_of(decide(world(of, known={"resolved_case": "case-1"}), NOW))
    assert ready["state"] == "Ready"
    (manual,) = [c for c in ready["conditions"] if c["type"] == "ServiceQuotasManualAction"]
    assert "us-east-1/L-1216C47A" in manual["message"]


def test_a_denied_quota_fails_the_account_in_the_replaced_operators_words() -> None:
    decision = decide(world(pending({"us-east-1": {RULES: "DENIED", VCPUS: "TODO"}})), NOW)
    assert activities(decision) == ["kube.patch"], "nothing more is asked for"
    failed = status_of(decision)
    (shown,) = [c for c in failed["conditions"] if c["type"] == "Failed"]
    assert (failed["state"], shown["reason"], shown["message"]) == (
        "Failed",
        "Failed",
        "ServiceQuota increase got denied",
    )
    assert "us-east-1/L-0EA8095F" in decision.why


def test_a_denial_from_before_the_account_started_over_does_not_count() -> None:
    of = pending({"us-east-1": {RULES: "TODO"}})
    entered = present(of.status.conditions, "PendingVerification")
    action = raised(decide(world(of), NOW))["us-east-1"]
    assert action.since == NOW - timedelta(minutes=5)
    assert entered.last_probe_time == "2026-05-01T11:55:00Z"


def test_a_region_that_was_disabled_is_scrubbed() -> None:
    of = pending({"us-east-1": {RULES: "COMPLETED"}, "eu-west-1": {RULES: "IN_PROGRESS"}})
    decision = decide(world(of, config=config(disabled_regions="eu-west-1")), NOW)
    (write,) = decision.actions
    assert isinstance(write, Patch)
    assert write.patch == {"status": {"regionalServiceQuotas": {"eu-west-1": None}}}


def test_the_case_and_the_quotas_are_asked_for_side_by_side() -> None:
    of = pending({"us-east-1": {RULES: "TODO"}}, supportCaseID="")
    assert activities(decide(world(of), NOW)) == ["aws.open_support_case", "aws.raise_quotas"]


def test_in_development_mode_no_quota_is_asked_for() -> None:
    decision = decide(world(pending({"us-east-1": {RULES: "TODO"}}), dev_mode=True), NOW)
    assert status_of(decision)["state"] == "Ready"


# --- Ready ---


def ready(quotas: dict[str, str], **fields: Any) -> Account:
    listed = {code: {"value": 100, "status": status} for code, status in quotas.items()}
    return ready_account(
        spec=spec({"default": dict.fromkeys(quotas, 100)}),
        status={"regionalServiceQuotas": {"us-east-1": listed} if quotas and fields.get("expanded", True) else {}},
    )


def test_a_settled_ready_account_is_left_alone() -> None:
    decision = decide(world(ready({RULES: "COMPLETED", VCPUS: "DENIED"})), NOW)
    assert (decision.outcome, decision.actions) == (Outcome.SETTLED, ())


def test_quotas_for_a_person_are_named_once_while_they_stay_the_same() -> None:
    settled = settle(world(ready({VCPUS: "MANUAL_ACTION"})))
    later = decide(settled, NOW + timedelta(hours=1))
    assert (later.outcome, later.actions) == (Outcome.SETTLED, ())


@pytest.mark.parametrize(("quotas", "named"), [({RULES: "MANUAL_ACTION"}, [RULES]), ({RULES: "COMPLETED"}, [])])
def test_the_quotas_that_a_condition_names_are_the_present_ones(quotas: dict[str, str], named: list[str]) -> None:
    before = settle(world(ready({VCPUS: "MANUAL_ACTION"}))).account
    changed = ready(quotas)
    status = changed.status.model_copy(update={"conditions": before.status.conditions})
    after = settle(world(changed.model_copy(update={"status": status}))).account.status
    found = [c.message for c in after.conditions if c.type == "ServiceQuotasManualAction"]
    assert found == [f"1 service quota (us-east-1/{code}) must be raised by hand" for code in named]


def test_a_ready_account_whose_quotas_were_emptied_has_them_raised_and_stays_ready() -> None:
    of = ready({RULES: "TODO"}, expanded=False)
    decision = decide(world(of), NOW)
    assert activities(decision) == ["aws.list_regions"]
    assert "waits for the list of the account's regions" in decision.why
    decision = decide(world(of, known={"regions": ("us-east-1",)}), NOW)
    assert shown(decision) == {"us-east-1": {RULES: "TODO"}}
    assert (decision.phase, list(raised(decision))) == ("Ready", ["us-east-1"])


def test_a_denied_quota_takes_no_ready_account_away_and_stops_no_other() -> None:
    decision = decide(world(ready({RULES: "DENIED", VCPUS: "TODO"})), NOW)
    assert set(raised(decision)["us-east-1"].quotas) == {VCPUS}
    assert not any(isinstance(action, Patch) for action in decision.actions)


def test_without_a_shard_name_the_quotas_of_ready_accounts_are_not_observed() -> None:
    decision = decide(world(ready({RULES: "TODO"}), config=config(shard_name=None)), NOW)
    assert decision.outcome is Outcome.SETTLED
