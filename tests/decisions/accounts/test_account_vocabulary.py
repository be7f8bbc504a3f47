"""The words of the area: conditions as they accumulate, the ConfigMap key by key, names, refusals and their delays."""

from __future__ import annotations

from datetime import timedelta

import pytest
from account_objects import AWS_ID, DATA, NOW, account, ago, claim, claim_world, condition, settle

from domain.accounts.actions.iam_identities import DeleteIdentities
from domain.accounts.config import Features, parse_config, parse_tags
from domain.accounts.naming import account_name, email_of, iam_user_id, secret_of, suffix_of
from domain.accounts.observed import AccountWorld
from domain.accounts.resources import AccountClaimStatus, AccountStatus
from domain.accounts.state_conditions import with_account_state, with_claim_state, with_condition, with_failure
from domain.accounts.support_role import support_role_arn
from domain.refusal import ErrorType, Refusal
from domain.resource import Condition, condition_of, parse_timestamp, timestamp
from domain.writes import difference, merge, patched

# --- conditions ---

LATER = NOW + timedelta(minutes=5)


def test_a_first_condition_has_both_times_in_whole_seconds() -> None:
    (fresh,) = with_condition((), "Ready", "Ready", "m", NOW + timedelta(milliseconds=900))
    assert fresh.last_probe_time == fresh.last_transition_time == "2026-05-01T12:00:00Z"
    assert (fresh.type, fresh.status, fresh.reason, fresh.message) == ("Ready", "True", "Ready", "m")


def test_a_second_pass_moves_the_probe_time_only() -> None:
    first = with_condition((), "Creating", "Creating", "Creating", NOW)
    (again,) = with_condition(first, "Creating", "Other", "AWS account already created", LATER)
    assert again.last_probe_time == timestamp(LATER)
    assert (again.last_transition_time, again.reason, again.message) == (timestamp(NOW), "Creating", "Creating")


@pytest.mark.parametrize("status", ["False", "Unknown", ""])
def test_a_condition_that_a_person_changed_is_replaced_as_a_whole(status: str) -> None:
    hand = Condition.model_validate(condition("Ready", entered=ago(days=1), status=status))
    (now_true,) = with_condition((hand,), "Ready", "Ready", "m", NOW)
    assert (now_true.status, now_true.message, now_true.last_transition_time) == ("True", "m", timestamp(NOW))


def test_conditions_accumulate_and_keep_their_order() -> None:
    status = AccountStatus()
    for state in ("Creating", "InitializingRegions", "PendingVerification", "Ready", "Creating"):
        status = with_account_state(status, state, state, NOW)
    failed = with_failure(status, "AccountCreationFailed", "CreationTimeout", "m", NOW)
    types = ["Creating", "InitializingRegions", "PendingVerification", "Ready", "AccountCreationFailed"]
    assert [c.type for c in failed.conditions] == types
    assert {c.status for c in failed.conditions} == {"True"}
    assert failed.state == "Failed"


def test_a_faulty_claims_condition_says_when_its_reason_changed() -> None:
    first = settle(claim_world(claim(spec={"byoc": True}))).claim
    other = claim(spec={"byoc": True, "byocAWSAccountID": AWS_ID}).spec
    later = settle(claim_world(first.model_copy(update={"spec": other})), now=LATER).claim
    (condition_now,) = later.status.conditions
    assert condition_now.reason == "BYOCSecretRefMissing"
    assert (condition_now.last_probe_time, condition_now.last_transition_time) == (timestamp(LATER), timestamp(NOW))
    assert settle(claim_world(later), now=LATER + timedelta(minutes=5)).claim == later


def test_a_claims_condition_keeps_its_probe_time_while_nothing_changes() -> None:
    first = with_claim_state(AccountClaimStatus(), "Pending", "Unclaimed", "AccountClaimed", "m", NOW)
    again = with_claim_state(first, "Pending", "Unclaimed", "AccountClaimed", "m", LATER)
    assert again == first


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01T00:00:00Z", None])
def test_times_that_people_garbled_are_no_times(text: str | None) -> None:
    assert parse_timestamp(text) is None


def test_a_garbled_condition_restarts_the_deadline_instead_of_crashing() -> None:
    from domain.accounts.account_lifecycle import decide

    garbled = condition("Creating", entered="soon")
    of = account(spec={"awsAccountID": "1"}, status={"state": "Creating", "conditions": [garbled]})
    decision = decide(AccountWorld(key=of.key, account=of, config=parse_config(DATA)), NOW)
    status = AccountStatus.model_validate(decision.actions[0].patch["status"])  # type: ignore[attr-defined]
    written = condition_of(status.conditions, "Creating")
    assert written is not None
    assert written.last_probe_time == timestamp(NOW)


# --- the ConfigMap ---


def test_the_configmap_is_read_key_by_key() -> None:
    read = parse_config({**DATA, "payer-account-ids": " 1 , 2,,", "disabled-regions": "eu-west-1", "quota.vcpu": "100"})
    assert (read.account_limit, read.root, read.base) == (100, "r-root", "ou-base")
    assert (read.payer_account_ids, read.disabled_regions, read.vcpu_quota) == (("1", "2"), ("eu-west-1",), 100)
    assert (read.default_pool, read.partition, read.problems) == ("pool", "aws", {})


def test_an_absent_configmap_is_not_an_empty_one() -> None:
    assert not parse_config(None).present
    assert parse_config({}).present


@pytest.mark.parametrize("key", ["account-limit", "root", "base", "ami-owner", "support-jump-role", "accountpool"])
def test_each_missing_key_is_named_alone(key: str) -> None:
    lacking = parse_config({name: value for name, value in DATA.items() if name != key})
    every = ("account-limit", "root", "base", "ami-owner", "support-jump-role", "accountpool")
    assert lacking.missing(*every) == (key,)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("account-limit", "many"),
        ("account-limit", "1.5"),
        ("account-limit", "9" * 20),  # the API server would refuse it in a pool's status
        ("accountpool", "]"),
        ("accountpool", "- pool"),
        ("accountpool", "just text"),
        ("accountpool", "pool: text"),
        ("accountpool", "pool: {servicequotas: [1]}"),
        ("accountpool", "pool: {default: 'no'}"),
        ("fedramp", "maybe"),
        ("feature.compliance_tags", "yes"),
    ],
)
def test_a_value_of_the_wrong_shape_is_a_problem_of_that_key_alone(key: str, text: str) -> None:
    read = parse_config({**DATA, key: text})
    assert set(read.problems) == {key}
    assert read.root == "r-root"


@pytest.mark.parametrize(
    "quotas",
    [
        "servicequotas: {default: {L-1: lots}}",
        "servicequotas: {default: {L-1: }}",
        "globalservicequotas: {L-1: '1.5'}",
        f"globalservicequotas: {{L-1: {'9' * 20}}}",
    ],
)
def test_a_quota_that_is_no_number_is_a_problem_of_its_pool_alone(quotas: str) -> None:
    read = parse_config({**DATA, "accountpool": f"pool: {{default: true, {quotas}}}\nother: {{}}"})
    assert (read.problems, read.missing("accountpool"), read.default_pool) == ({}, (), "pool")
    assert read.pools is not None
    assert "the quotas of pool cannot be read" in read.pools["pool"].problem
    assert read.pools["other"].problem == ""


@pytest.mark.parametrize(
    "text", ["pool:", "pool: {default: , servicequotas: , globalservicequotas: }", "pool: {servicequotas: {a: }}"]
)
def test_fields_that_a_pools_entry_leaves_blank_are_empty(text: str) -> None:
    read = parse_config({**DATA, "accountpool": text})
    assert (read.problems, read.default_pool) == ({}, "")
    assert read.pools is not None
    assert (read.pools["pool"].problem, read.pools["pool"].global_service_quotas) == ("", {})
    assert not any(read.pools["pool"].regional_service_quotas.values())


@pytest.mark.parametrize("text", ["1", "t", "T", "TRUE", "true", "True"])
def test_gos_spellings_of_true(text: str) -> None:
    assert parse_config({"fedramp": text}).partition == "aws-us-gov"


@pytest.mark.parametrize("text", ["0", "f", "F", "FALSE", "false", "False"])
def test_gos_spellings_of_false(text: str) -> None:
    read = parse_config({"fedramp": text})
    assert (read.partition, read.problems) == ("aws", {})


@pytest.mark.parametrize("name", sorted(Features.model_fields))
def test_each_feature_has_a_flag_of_its_own_that_is_off_by_default(name: str) -> None:
    assert not any(parse_config(DATA).features.model_dump().values())
    on = parse_config({**DATA, f"feature.{name}": "T"}).features.model_dump()
    assert [feature for feature, holds in on.items() if holds] == [name]
    assert not any(parse_config({**DATA, f"feature.{name}": "yes"}).features.model_dump().values())


@pytest.mark.parametrize(
    ("text", "dry"),
    [
        *((None, True), ("", True), ("maybe", True), ("true", True), ("0", False), ("false", False)),
        *((" false", True), ("false\n", True)),  # Go's ParseBool takes neither
    ],
)
def test_closing_accounts_is_a_dry_run_unless_the_key_says_false(text: str | None, dry: bool) -> None:
    assert parse_config({**DATA, **({} if text is None else {"close_account.dry_run": text})}).close_dry_run is dry


def test_the_default_pool_is_the_flagged_one_and_of_several_always_the_same() -> None:
    two = parse_config({"accountpool": "z: {default: true}\na: {default: true}\n"})
    assert two.default_pool == "a"
    assert parse_config({"accountpool": "a: {}\n"}).default_pool == ""
    assert parse_config({"accountpool": ""}).default_pool == ""


def test_tags_are_split_at_the_first_equals_sign_and_broken_lines_carry_none() -> None:
    assert parse_tags("a=b\n c = d=e \nbroken\n=x\n\n") == {"a": "b", "c": "d=e"}


# --- names ---


def test_names_are_the_same_that_tools_derive() -> None:
    assert account_name("bcd456") == "osd-creds-mgmt-bcd456"
    assert email_of("osd-creds-mgmt-bcd456", "redhat.com") == "osd-creds-mgmt+bcd456@redhat.com"
    assert email_of("single", "example.com") == "single@example.com"
    assert secret_of("My-Account") == "my-account-secret"
    assert support_role_arn("aws-us-gov", "1", "x") == "arn:aws-us-gov:iam::1:role/ManagedOpenShift-Support-x"


@pytest.mark.parametrize("name", ["osd-creds-mgmt-bcd456", "x-zzzzzz"])
def test_the_user_id_of_a_generated_name_is_its_suffix(name: str) -> None:
    assert iam_user_id(name, "uid") == name[-6:]


@pytest.mark.parametrize("name", ["short", "osd-creds-mgmt-abcdef", "osd-creds-mgmt-BCD456", "x-bcd4567"])
def test_the_user_id_of_any_other_name_comes_from_the_uid(name: str) -> None:
    assert iam_user_id(name, "uid-1") == suffix_of("uid-1") != suffix_of("uid-2")


# --- refusals ---


@pytest.mark.parametrize(
    ("attempts", "seconds"), [(1, 5), (2, 10), (3, 20), (4, 40), (7, 320), (8, 600), (9, 600), (500, 600)]
)
def test_a_refused_action_is_retried_after_a_delay_that_doubles_to_ten_minutes(attempts: int, seconds: int) -> None:
    refused = Refusal(type=ErrorType.DENIED, message="", at=NOW, attempts=attempts)
    assert refused.retry_at == NOW + timedelta(seconds=seconds)


def test_a_throttled_deletion_of_identities_ends_soon_after_the_throttling() -> None:
    first, longest = DeleteIdentities.first_retry, DeleteIdentities.longest_retry
    nine_throttles = [min(first * 2**number, longest) for number in range(9)]
    assert sum(nine_throttles, timedelta()) < timedelta(minutes=2)


# --- patches ---


def test_a_patch_of_the_difference_gives_the_other_status() -> None:
    before = account(status={"state": "Ready", "optInRegions": {"a": {"status": "TODO"}}})
    after = before.status.model_copy(update={"state": "", "claimed": True, "opt_in_regions": {}})
    patch = difference(before.status, after)
    assert patch == {"state": "", "claimed": True, "optInRegions": {"a": None}}
    assert patched(before, {"status": patch}, "8").status == after
    assert patched(before, {"status": patch}, "8").metadata.resource_version == "8"


def test_merging_follows_rfc_7386() -> None:
    assert merge({"a": {"b": 1, "c": 2}, "d": [1]}, {"a": {"b": None, "e": 3}, "d": [2]}) == {
        "a": {"c": 2, "e": 3},
        "d": [2],
    }
    assert merge("text", {"a": None, "b": {"c": None}}) == {"b": {}}
