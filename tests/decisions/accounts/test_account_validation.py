"""Validation of accounts: which are looked at when, and what each check wants of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from account_objects import AWS_ID, DATA, NAME, NOW, account, config, ready_account

from domain.accounts.account_validation import (
    Check,
    Sighted,
    ValidationMemory,
    all_due,
    chosen,
    concerned,
    due_again,
    enabled,
    legal_entity_of,
    measure,
    quotas_outdated,
    quotas_unbegun,
    removable,
    settled,
    wanted_spec,
)
from domain.accounts.aws_account_tags import differing_tags
from domain.accounts.config import OperatorConfig, parse_config
from domain.accounts.resources import Account
from domain.control_annotations import PAUSED

HOURS = timedelta(hours=10)
ON = {
    "feature.validation_move_account": "true",
    "feature.validation_tag_account": "true",
    "feature.validation_delete_account": "true",
    "feature.accountpool_validation": "true",
}
QUOTAS = "pool: {default: true, servicequotas: {default: {L-1: '9'}}, globalservicequotas: {L-2: '5'}}"


def flags(**data: str | None) -> OperatorConfig:
    """Every flag on, and some keys set otherwise."""
    names = {name: name if "." in name else name.replace("_", "-") for name in data}
    changed = {**DATA, **ON, **{names[name]: value for name, value in data.items()}}
    return parse_config({name: value for name, value in changed.items() if value is not None})


@pytest.mark.parametrize(
    ("flag", "check"),
    [
        ("feature.validation_move_account", Check.PLACE),
        ("feature.validation_tag_account", Check.TAGS),
        ("feature.validation_delete_account", Check.REMOVAL),
        ("feature.accountpool_validation", Check.QUOTAS),
    ],
)
def test_each_check_has_its_own_flag(flag: str, check: Check) -> None:
    assert enabled(config()) == frozenset()
    assert enabled(parse_config({**DATA, flag: "true"})) == {check}
    assert enabled(parse_config({**DATA, **ON, flag: "false"})) == set(Check) - {check}
    assert enabled(parse_config({**DATA, flag: "true", "fedramp": "maybe"})) == frozenset()


@pytest.mark.parametrize("shard", [None, ""])
def test_without_a_shard_name_no_owner_is_wanted_and_the_other_tags_are(shard: str | None) -> None:
    assert Check.TAGS not in enabled(flags(shard_name=shard))
    compliant = parse_config({**DATA, **ON, "shard-name": shard or "", "app-code": "A", "feature.compliance_tags": "1"})
    assert Check.TAGS in enabled(compliant)
    assert differing_tags({}, compliant) == {"app-code": "A"}


@pytest.mark.parametrize(
    ("present", "wanted"),
    [
        ({"owner": "shard-1"}, {}),
        ({"owner": "shard-1", "anything": "else"}, {}),
        ({}, {"owner": "shard-1"}),
        ({"owner": "shard-2"}, {"owner": "shard-1"}),
    ],
)
def test_a_missing_or_foreign_owner_is_tagged_over(present: dict[str, str], wanted: dict[str, str]) -> None:
    assert differing_tags(present, flags()) == wanted


def test_a_compliance_tag_that_differs_is_wanted_beside_a_right_owner() -> None:
    compliant = parse_config({**DATA, **ON, "app-code": "A", "cost-center": "7", "feature.compliance_tags": "true"})
    assert differing_tags({"owner": "shard-1", "app-code": "B", "cost-center": "7"}, compliant) == {"app-code": "A"}


@pytest.mark.parametrize(
    "change",
    [
        {"root": "r-other"},
        {"base": "ou-other"},
        {"shard_name": "shard-2"},
        {"accountpool": QUOTAS},
        {"feature.validation_move_account": "false"},
    ],
)
def test_all_accounts_are_observed_as_soon_as_the_configuration_has_changed(change: dict[str, str]) -> None:
    known = ValidationMemory(measure=measure(flags()), swept_at=NOW, looked_at=NOW)
    assert not all_due(known, flags(), HOURS, NOW)
    assert not all_due(known, flags(account_limit="7"), HOURS, NOW), "nothing is measured by that"
    assert all_due(known, flags(**change), HOURS, NOW)


def test_all_accounts_are_checked_when_the_sweep_is_due_or_memory_is_lost() -> None:
    known = ValidationMemory(measure=measure(flags()), swept_at=NOW, looked_at=NOW)
    assert not all_due(known, flags(), HOURS, NOW + HOURS - timedelta(seconds=1))
    assert all_due(known, flags(), HOURS, NOW + HOURS)
    assert all_due(ValidationMemory(), flags(), HOURS, NOW)
    assert due_again(known, HOURS) == NOW + HOURS


def test_between_sweeps_only_written_or_failed_accounts_are_observed() -> None:
    known = ValidationMemory(measure=measure(flags()), swept_at=NOW, looked_at=NOW, failed=("aws-account-operator/c",))
    old, new = NOW - timedelta(hours=1), NOW + timedelta(seconds=1)
    sighted = [
        Sighted(account=ready_account("a"), written_at=old),
        Sighted(account=ready_account("b"), written_at=new),
        Sighted(account=ready_account("c"), written_at=old),
        Sighted(account=ready_account("d"), written_at=None),
    ]
    assert [each.metadata.name for each in chosen(sighted, known, everything=False)] == ["b", "c", "d"]
    assert len(chosen(sighted, known, everything=True)) == 4


def test_a_failed_correction_is_retried_in_five_minutes() -> None:
    known = ValidationMemory(swept_at=NOW, looked_at=NOW, failed=("aws-account-operator/a",))
    assert due_again(known, HOURS) == NOW + timedelta(minutes=5)


@pytest.mark.parametrize(
    ("fields", "looked_at"),
    [
        ({}, True),
        ({"meta": {"annotations": {"aws.managed.openshift.com/pause-reconciliation": "true"}}}, False),
        ({"meta": {"annotations": {PAUSED: "true"}}}, False),
        ({"meta": {"deletionTimestamp": "2026-05-01T12:00:00Z"}}, False),
        ({"spec": {"awsAccountID": "999999999999"}}, False),
    ],
)
def test_paused_deleted_and_protected_accounts_are_left_alone(fields: dict[str, Any], looked_at: bool) -> None:
    assert concerned(ready_account(**fields), ["999999999999"]) is looked_at


@pytest.mark.parametrize(
    ("of", "holds"),
    [
        (ready_account(), True),
        (ready_account(spec={"claimLink": "claim"}, status={"claimed": True}), True),
        (ready_account(spec={"claimLink": "claim"}), False),  # its claim is moving it
        (ready_account(spec={"byoc": True}), False),
        (ready_account(spec={"manualSTSMode": True}), False),
        (account(spec={"awsAccountID": AWS_ID}, status={"state": "Creating"}), False),
        (account(spec={"awsAccountID": AWS_ID}, status={"state": "Failed"}), False),
        (account(status={"state": "Ready"}), False),
    ],
)
def test_only_ready_accounts_of_ours_have_a_place_and_tags(of: Account, holds: bool) -> None:
    assert settled(of) is holds


def test_an_account_belongs_into_the_root_until_a_legal_entity_has_had_it() -> None:
    assert legal_entity_of(ready_account()) == ""
    released = ready_account(spec={"legalEntity": {"id": "entity", "name": ""}}, status={"reused": True})
    assert legal_entity_of(released) == "entity"


@pytest.mark.parametrize(
    ("state", "id_", "holds"),
    [("Failed", "", True), ("Failed", AWS_ID, False), ("AccountCreationFailed", "", False), ("", "", False)],
)
def test_only_what_failed_without_an_aws_account_is_removed(state: str, id_: str, holds: bool) -> None:
    assert removable(account(spec={"awsAccountID": id_}, status={"state": state})) is holds


def test_a_pools_changed_quotas_are_written_over_and_their_status_is_reset() -> None:
    of_config = flags(accountpool=QUOTAS)
    old = ready_account(spec={"regionalServiceQuotas": {"default": {"L-1": {"value": 1, "status": ""}}}})
    spec = wanted_spec(old, of_config)
    assert spec is not None
    assert spec.regional_service_quotas["default"]["L-1"].value == 9
    assert spec.global_service_quotas["L-2"].value == 5
    assert wanted_spec(old.model_copy(update={"spec": spec}), of_config) is None
    torn = old.model_copy(
        update={
            "spec": spec,
            "status": ready_account(
                status={"regionalServiceQuotas": {"us-east-1": {"L-1": {"value": 1, "status": "COMPLETED"}}}}
            ).status,
        }
    )
    assert quotas_outdated(torn), "a process that died between the two writes is completed"


@pytest.mark.parametrize(
    "spec",
    [
        {"accountPool": ""},
        {"accountPool": "another"},
    ],
)
def test_only_accounts_that_name_a_pool_of_the_configmap_get_its_quotas(spec: dict[str, str]) -> None:
    assert wanted_spec(ready_account(spec=spec), flags(accountpool=QUOTAS)) is None


def test_quotas_that_cannot_be_read_overwrite_none() -> None:
    of_config = flags(accountpool="pool: {globalservicequotas: {L-1: many}}")
    old = ready_account(spec={"globalServiceQuotas": {"L-1": {"value": 1, "status": ""}}})
    assert wanted_spec(old, of_config) is None


@pytest.mark.parametrize(
    ("status", "outdated"),
    [
        ({}, False),
        ({"regionalServiceQuotas": {"eu-west-1": {"L-1": {"value": 3, "status": "TODO"}}}}, False),
        ({"regionalServiceQuotas": {"us-east-1": {"L-1": {"value": 9, "status": "COMPLETED"}}}}, False),
        ({"regionalServiceQuotas": {"us-east-1": {"L-1": {"value": 3, "status": "COMPLETED"}}}}, True),
        ({"globalServiceQuotas": {"L-2": {"value": 4, "status": "TODO"}}}, True),
        ({"globalServiceQuotas": {"L-2": {"value": 5, "status": "TODO"}}}, False),
    ],
)
def test_a_status_of_other_quotas_than_the_specs_is_outdated(status: dict[str, Any], outdated: bool) -> None:
    spec = {
        "regionalServiceQuotas": {
            "default": {"L-1": {"value": 3, "status": ""}},
            "us-east-1": {"L-1": {"value": 9, "status": ""}},
        },
        "globalServiceQuotas": {"L-2": {"value": 5, "status": ""}},
    }
    assert quotas_outdated(ready_account(NAME, spec=spec, status=status)) is outdated


def test_a_ready_account_that_wants_quotas_and_shows_none_has_not_begun() -> None:
    spec = {"globalServiceQuotas": {"L-2": {"value": 5, "status": ""}}}
    begun = {"globalServiceQuotas": {"L-2": {"value": 5, "status": "COMPLETED"}}}
    assert quotas_unbegun(ready_account(spec=spec))
    assert not quotas_unbegun(ready_account(spec=spec, status=begun))
    assert not quotas_unbegun(ready_account())
    assert not quotas_unbegun(account(spec={"awsAccountID": AWS_ID, **spec}, status={"state": "Creating"}))
