"""An Account from Creating to Ready: credentials, regions, the case, deadlines, hands on its status, deletion."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from account_objects import (
    ANSWERS,
    AWS_ID,
    NAME,
    NOW,
    REGIONS,
    account,
    activities,
    ago,
    claim,
    condition,
    config,
    fold,
    present,
    ready_account,
    refusal,
    settle,
    status_of,
    world,
    written_condition,
)

from domain.accounts.account_lifecycle import decide
from domain.accounts.actions.account_creation import TagAccount
from domain.accounts.actions.iam_identities import DeleteIdentities, EnsureAdminUser, EnsureSupportRole
from domain.accounts.actions.region_initialization import EndLaunches, InitializeRegion
from domain.accounts.actions.support_cases import OpenSupportCase
from domain.accounts.constants import CLAIM_UID_ANNOTATION, NOT_ENTERED, PROTECTED
from domain.accounts.force_release import FORCE_RELEASE
from domain.accounts.observed import AccountWorld, Permit, RegionOutcome, Verdict
from domain.accounts.resources import Account
from domain.decision import Outcome
from domain.refusal import OBSERVE_MODE, ErrorType, Refusal
from domain.resource import parse_timestamp
from domain.runner import State
from domain.writes import Patch

HAS_ID = {"awsAccountID": AWS_ID}
CREDENTIALS = {"tagged": True, "support_role": True, "admin_secret": f"{NAME}-secret", "regions": REGIONS}


def in_state(state: str, *, since: str = "", conditions: tuple[str, ...] = (), **spec: Any) -> Account:
    """An Account that entered a state at `since`, having been in others before."""
    earlier = [condition(type_, entered=ago(hours=2)) for type_ in conditions]
    own = [] if state in conditions else [condition(state, entered=since)]
    return account(spec={**HAS_ID, **spec}, status={"state": state, "conditions": [*earlier, *own]})


# --- Creating ---


def test_credentials_and_regions_are_asked_for_side_by_side() -> None:
    decision = decide(world(in_state("Creating")), NOW)
    assert activities(decision) == [
        "aws.tag_account",
        "aws.ensure_support_role",
        "aws.ensure_admin_user",
        "aws.list_regions",
    ]
    assert decision.deadline == NOW + timedelta(minutes=25)


def test_requests_to_aws_carry_the_names_that_tools_rely_on() -> None:
    tag, role, user, _ = decide(world(in_state("Creating")), NOW).actions
    assert isinstance(tag, TagAccount)
    assert tag.tags == {"owner": "shard-1"}
    assert isinstance(role, EnsureSupportRole)
    assert (role.iam_user_id, role.jump_role) == ("bcd456", "arn:aws:iam::999999999999:role/jump")
    assert role.summary == "create support role ManagedOpenShift-Support-bcd456"
    assert isinstance(user, EnsureAdminUser)
    assert (user.iam_user_id, user.secret) == ("bcd456", "osd-creds-mgmt-bcd456-secret")
    marks = {
        "clusterAccountName": NAME,
        "clusterNamespace": "aws-account-operator",
        "clusterClaimLink": "",
        "clusterClaimLinkNamespace": "",
    }
    assert role.tags == user.tags == marks


def test_compliance_tags_join_the_owner_tag_only_when_the_feature_is_on() -> None:
    keys = {"app_code": "APP", "service_phase": "prod", "cost_center": ""}
    off, *_ = decide(world(in_state("Creating"), config=config(**keys)), NOW).actions
    on, *_ = decide(
        world(in_state("Creating"), config=config(**{**keys, "feature.compliance_tags": "true"})), NOW
    ).actions
    assert isinstance(off, TagAccount)
    assert isinstance(on, TagAccount)
    assert off.tags == {"owner": "shard-1"}
    assert on.tags == {"owner": "shard-1", "app-code": "APP", "service-phase": "prod"}


@pytest.mark.parametrize(("created", "fresh"), [("", False), (AWS_ID, True)])
def test_only_an_account_that_was_just_created_is_tagged_whatever_its_tags_say(created: str, fresh: bool) -> None:
    tag, *_ = decide(world(in_state("Creating"), known={"created_account_id": created}), NOW).actions
    assert isinstance(tag, TagAccount)
    assert tag.fresh is fresh


def test_a_missing_shard_name_tags_an_empty_owner() -> None:
    tag, *_ = decide(world(in_state("Creating"), config=config(shard_name=None)), NOW).actions
    assert isinstance(tag, TagAccount)
    assert tag.tags == {"owner": ""}


def test_of_tags_that_iam_calls_duplicates_the_last_one_is_used() -> None:
    holder = claim(spec={"customTags": "team=b\nClusterAccountName=evil"})
    linked = in_state("Creating", claimLink="claim", claimLinkNamespace="tenant")
    managed = "Team=a\nTEAM=z\nother=d"
    _, role, *_ = decide(world(linked, claim=holder, config=config(aws_managed_tags=managed)), NOW).actions
    assert isinstance(role, EnsureSupportRole)
    assert {name: value for name, value in role.tags.items() if not name.startswith("clusterClaim")} == {
        "team": "b",
        "other": "d",
        "clusterAccountName": NAME,
        "clusterNamespace": "aws-account-operator",
    }


def test_managed_and_custom_tags_follow_and_never_replace_the_four_marks() -> None:
    holder = claim(spec={"customTags": "team=a\nbroken line\nclusterAccountName=evil\nkey=a=b"})
    linked = in_state("Creating", claimLink="claim", claimLinkNamespace="tenant")
    _, role, *_ = decide(world(linked, claim=holder, config=config(aws_managed_tags="team=z\nm=1")), NOW).actions
    assert isinstance(role, EnsureSupportRole)
    assert role.tags == {
        "team": "a",
        "m": "1",
        "key": "a=b",
        "clusterAccountName": NAME,
        "clusterNamespace": "aws-account-operator",
        "clusterClaimLink": "claim",
        "clusterClaimLinkNamespace": "tenant",
    }


@pytest.mark.parametrize("key", ["ami_owner", "support_jump_role"])
def test_a_missing_key_is_waited_for_until_the_creation_deadline(key: str) -> None:
    decision = decide(world(in_state("Creating", since=ago(minutes=5)), config=config(**{key: None})), NOW)
    assert (decision.outcome, activities(decision), decision.waits_for) == (
        Outcome.WAITING,
        ["kube.patch"],  # its condition
        ("ConfigMap",),
    )
    assert key.replace("_", "-") in decision.why
    assert decision.deadline == NOW + timedelta(minutes=20)


@pytest.mark.parametrize("key", ["root", "base", "account_limit", "accountpool", "shard_name"])
def test_keys_of_other_steps_do_not_stop_the_credentials(key: str) -> None:
    assert len(activities(decide(world(in_state("Creating"), config=config(**{key: None})), NOW))) == 4


def test_creation_fails_at_25_minutes_to_the_second() -> None:
    entered = in_state("Creating", since=ago(minutes=25))
    before = decide(world(entered), NOW - timedelta(seconds=1))
    assert "kube.patch" not in activities(before)
    decision = decide(world(entered), NOW)
    assert status_of(decision)["state"] == "Failed"
    failed = written_condition(decision, "AccountCreationFailed")
    assert failed["reason"] == "CreationTimeout"
    assert failed["message"] == "Creation pending for longer than 25 minutes"


def test_the_creation_deadline_counts_from_the_last_probe_of_the_condition() -> None:
    again = account(
        spec=HAS_ID,
        status={
            "state": "Creating",
            "conditions": [condition("Creating", entered=ago(days=90), lastProbeTime=ago(minutes=1))],
        },
    )
    assert decide(world(again), NOW).deadline == NOW + timedelta(minutes=24)


def test_creating_set_by_hand_without_a_condition_starts_the_deadline() -> None:
    by_hand = account(spec=HAS_ID, status={"state": "Creating"})
    status = status_of(decide(world(by_hand), NOW))
    assert [c["type"] for c in status["conditions"]] == ["Creating"]
    assert decide(settle(world(by_hand)), NOW).phase == "PendingVerification"


@pytest.mark.parametrize(
    "state", ["Creating", "OptingInRegions", "OptInRegionsEnabled", "InitializingRegions", "PendingVerification"]
)
@pytest.mark.parametrize("minutes", [0, 60])
def test_a_state_without_an_aws_account_is_blanked_to_search_for_the_account(state: str, minutes: int) -> None:
    """The replaced operator wrote the state before the id: a crash in between left an account to be found."""
    torn = account(status={"state": state, "conditions": [condition(state, entered=ago(minutes=minutes))]})
    decision = decide(world(torn, known={"inherited": None}), NOW)
    assert status_of(decision) == {"state": ""}
    found = Permit(verdict=Verdict.GRANTED, until=NOW + timedelta(minutes=2), account_id=AWS_ID)
    blank = account(status={"state": "", "conditions": [condition(state)]})
    adopted = decide(world(blank, known={"permit": found, "created_account_id": AWS_ID, "inherited": True}), NOW)
    assert isinstance(adopted.actions[0], Patch)
    assert adopted.actions[0].patch["spec"]["awsAccountID"] == AWS_ID  # type: ignore[index]


@pytest.mark.parametrize("missing", ["tagged", "support_role", "admin_secret", "regions"])
def test_only_what_is_missing_is_asked_for(missing: str) -> None:
    known = {name: value for name, value in CREDENTIALS.items() if name != missing}
    (action,) = decide(world(in_state("Creating"), known=known), NOW).actions
    assert (
        action.activity
        == {
            "tagged": "aws.tag_account",
            "support_role": "aws.ensure_support_role",
            "admin_secret": "aws.ensure_admin_user",
            "regions": "aws.list_regions",
        }[missing]
    )


def test_the_secret_is_recorded_then_the_regions_begin() -> None:
    (patch,) = decide(world(in_state("Creating"), known=CREDENTIALS), NOW).actions
    assert isinstance(patch, Patch)
    assert patch.patch == {"spec": {"iamUserSecret": f"{NAME}-secret"}}
    recorded = in_state("Creating", iamUserSecret=f"{NAME}-secret")
    decision = decide(world(recorded, known=CREDENTIALS), NOW)
    assert status_of(decision)["state"] == "InitializingRegions"
    assert written_condition(decision, "InitializingRegions")["message"] == "Initializing Regions"


IAM_ERRORS = [
    (ErrorType.INVALID, "InvalidClientTokenId", "AuthenticationError", "InvalidClientTokenId"),
    (ErrorType.DENIED, "InvalidClientTokenId", "AuthenticationError", "InvalidClientTokenId"),
    (ErrorType.DENIED, "AccessDenied", "AuthorizationError", "AccessDenied"),
    (ErrorType.DENIED, "UnauthorizedOperation", "AuthorizationError", "AccessDenied"),
    (ErrorType.INVALID, "MalformedPolicyDocument", "AccountClientError", "MalformedPolicyDocument"),
    (ErrorType.CONFLICT, "EntityAlreadyExists", "AccountClientError", "EntityAlreadyExists"),
    (ErrorType.INVALID, "", "UnhandledError", "Invalid"),
]


@pytest.mark.parametrize(("type_", "code", "failure", "reason"), IAM_ERRORS)
def test_a_refused_iam_user_fails_the_account_by_the_replaced_operators_mapping(
    type_: ErrorType, code: str, failure: str, reason: str
) -> None:
    start = world(in_state("Creating"))
    user = next(a for a in decide(start, NOW).actions if isinstance(a, EnsureAdminUser))
    decision = decide(fold(start, user, refusal(type_, "IAM said no", code=code)), NOW)
    assert status_of(decision)["state"] == "Failed"
    failed = written_condition(decision, failure)
    assert (failed["reason"], failed["message"]) == (reason, "IAM said no")


def test_a_bug_in_the_iam_step_never_fails_an_account() -> None:
    start = world(in_state("Creating"))
    user = next(a for a in decide(start, NOW).actions if isinstance(a, EnsureAdminUser))
    assert user.activity in activities(decide(fold(start, user, refusal(ErrorType.BUG)), NOW))


@pytest.mark.parametrize("code", [NOT_ENTERED, OBSERVE_MODE])
def test_an_account_that_cannot_be_entered_waits_until_the_creation_deadline(code: str) -> None:
    start = world(in_state("Creating", since=ago(minutes=20)))
    user = next(a for a in decide(start, NOW).actions if isinstance(a, EnsureAdminUser))
    shut = fold(start, user, refusal(ErrorType.DENIED, "the payer's key is missing", code=code))
    decision = decide(shut, NOW)
    assert user.activity in activities(decision)
    assert decision.deadline == NOW + timedelta(minutes=5)
    late = decide(shut, NOW + timedelta(minutes=5))
    assert written_condition(late, "AccountCreationFailed")["reason"] == "CreationTimeout"


@pytest.mark.parametrize("activity", ["aws.tag_account", "aws.ensure_support_role", "aws.list_regions"])
def test_other_refusals_while_creating_are_tried_again(activity: str) -> None:
    start = world(in_state("Creating"))
    step = next(a for a in decide(start, NOW).actions if a.activity == activity)
    decision = decide(fold(start, step, refusal(ErrorType.DENIED, code="AccessDenied")), NOW)
    assert activity in activities(decision)
    assert decision.outcome is Outcome.WORKING


def test_a_retry_forgets_the_iam_refusal_that_failed_the_account() -> None:
    no = {"aws.ensure_admin_user": lambda a: refusal(ErrorType.INVALID, "limit", code="LimitExceeded")}
    failed = settle(world(in_state("Creating")), answers=no)
    assert failed.account.failed
    metadata = failed.account.metadata.model_copy(update={"annotations": {"perdure.dev/retry": "1"}})
    corrected = settle(failed.model_copy(update={"account": failed.account.model_copy(update={"metadata": metadata})}))
    assert corrected.account.status.state == "PendingVerification"


def test_a_failed_account_set_to_creating_by_hand_is_retried() -> None:
    no = {"aws.ensure_admin_user": lambda a: refusal(ErrorType.INVALID, "limit", code="LimitExceeded")}
    failed = settle(world(in_state("Creating")), answers=no)
    seen = world(in_state("Creating")).recall(failed)
    assert settle(seen).account.status.state == "PendingVerification"


def test_blanking_a_failed_account_from_outside_forgets_the_refusal_too() -> None:
    no = {"aws.ensure_admin_user": lambda a: refusal(ErrorType.INVALID, "limit", code="LimitExceeded")}
    failed = settle(world(in_state("Creating")), answers=no)
    blank = failed.account.model_copy(update={"status": Account().status})
    seen = world(blank).recall(failed)
    assert settle(seen).account.status.state == "PendingVerification"


# --- InitializingRegions ---


def initializing(since: str = "", conditions: tuple[str, ...] = ("Creating",), **known: Any) -> AccountWorld:
    return world(in_state("InitializingRegions", since=since, conditions=conditions), known={**CREDENTIALS, **known})


def done(*regions: str, ok: bool = True, message: str = "") -> dict[str, RegionOutcome]:
    return {region: RegionOutcome(region=region, ok=ok, message=message) for region in regions}


def test_every_region_is_initialised_side_by_side_under_the_51_minute_deadline() -> None:
    decision = decide(initializing(), NOW)
    assert [a.region for a in decision.actions if isinstance(a, InitializeRegion)] == list(REGIONS)
    assert decision.deadline == NOW + timedelta(seconds=3060)
    assert len({a.slot for a in decision.actions}) == len(REGIONS)


def test_a_region_is_asked_for_with_what_the_launch_needs() -> None:
    linked = in_state("InitializingRegions", claimLink="claim", claimLinkNamespace="tenant")
    held = world(linked, claim=claim(spec={"kmsKeyId": "alias/key"}), known={**CREDENTIALS, "inherited": True})
    region = decide(held, NOW).actions[0]
    assert isinstance(region, InitializeRegion)
    assert (region.ami_owner, region.kms_key_id, region.search) == ("309956199498", "alias/key", True)
    assert region.round == str(int(NOW.timestamp()))
    assert region.tags["clusterClaimLink"] == "claim"


def test_regions_that_are_done_are_not_asked_for_again() -> None:
    (rest,) = decide(initializing(outcomes=done("eu-west-1")), NOW).actions
    assert isinstance(rest, InitializeRegion)
    assert rest.region == "us-east-1"


def test_a_workflow_that_lost_its_memory_looks_at_the_regions_again() -> None:
    lost = world(in_state("InitializingRegions"), known={"inherited": True})
    assert activities(decide(lost, NOW)) == ["aws.list_regions"]


def test_initialisation_fails_after_3060_seconds_to_the_second() -> None:
    start = initializing(since=ago(seconds=3060))
    assert "kube.patch" not in activities(decide(start, NOW - timedelta(seconds=1)))
    decision = decide(start, NOW)
    assert status_of(decision)["state"] == "Failed"
    failed = written_condition(decision, "AccountCreationFailed")
    assert failed["reason"] == "RegionInitializationTimeout"
    assert failed["message"] == "Initializing regions for longer than 3060 seconds"


def test_a_second_initialisation_has_its_own_51_minutes() -> None:
    """Upstream measures from the first one and fails at once."""
    first = settle(world(in_state("Creating", since=ago(days=30))), now=NOW - timedelta(days=30) + timedelta(minutes=1))
    blanked = first.account.model_copy(
        update={"status": first.account.status.model_copy(update={"state": ""}), "spec": first.account.spec}
    )
    again = settle(world(blanked).recall(first), now=NOW)
    assert again.account.status.state == "PendingVerification"
    entered = present(again.account.status.conditions, "InitializingRegions")
    assert parse_timestamp(entered.last_probe_time) == NOW
    transition = parse_timestamp(entered.last_transition_time)
    assert transition is not None
    assert transition < NOW


def test_initializing_regions_without_its_condition_fails_as_missing_condition() -> None:
    by_hand = account(spec=HAS_ID, status={"state": "InitializingRegions"})
    decision = decide(world(by_hand), NOW)
    assert status_of(decision)["state"] == "Failed"
    assert written_condition(decision, "InternalError")["reason"] == "MissingCondition"


def test_some_refused_regions_are_reported_and_do_not_stop_the_account() -> None:
    outcomes = {**done("eu-west-1"), **done("us-east-1", ok=False, message="no capacity")}
    decision = decide(initializing(outcomes=outcomes, case_id="case-1"), NOW)
    assert status_of(decision)["state"] == "PendingVerification"
    assert "us-east-1" in decision.why


def test_an_account_whose_every_region_refused_fails_and_says_so() -> None:
    decision = decide(initializing(outcomes=done(*REGIONS, ok=False, message="no capacity")), NOW)
    assert status_of(decision)["state"] == "Failed"
    failed = written_condition(decision, "AccountCreationFailed")
    assert failed["reason"] == "RegionInitializationFailed"
    assert "no capacity" in failed["message"]


def test_an_account_that_aws_has_verified_nowhere_yet_waits_for_its_support_case() -> None:
    unverified = RegionOutcome(region=REGIONS[0], ok=False, message="EC2CreationTimeout: not verified", given_up=True)
    outcomes = {**done(*REGIONS, ok=False, message="no capacity"), REGIONS[0]: unverified}
    decision = decide(initializing(outcomes=outcomes, case_id="case-1"), NOW)
    assert status_of(decision)["state"] == "PendingVerification"
    assert REGIONS[0] in decision.why


def test_initialised_for_the_first_time_it_waits_for_the_support_case() -> None:
    (opened,) = decide(initializing(outcomes=done(*REGIONS)), NOW).actions
    assert isinstance(opened, OpenSupportCase)
    assert (opened.account_id, opened.search, opened.most_attempts) == (AWS_ID, False, 1)
    decision = decide(initializing(outcomes=done(*REGIONS), case_id="case-1"), NOW)
    status = status_of(decision)
    assert (status["state"], status["supportCaseID"]) == ("PendingVerification", "case-1")
    message = written_condition(decision, "PendingVerification")["message"]
    assert message == "Account pending AWS limits verification"


@pytest.mark.parametrize("type_", list(ErrorType))
def test_a_refused_case_does_not_block_the_state_that_waits_for_it(type_: ErrorType) -> None:
    refused = Refusal(type=type_, message="no", at=NOW)
    before = initializing(outcomes=done(*REGIONS))
    before = before.model_copy(update={"refusals": {OpenSupportCase.activity: refused}})
    status = status_of(decide(before, NOW))
    assert (status["state"], status.get("supportCaseID", "")) == ("PendingVerification", "")
    after = pending().model_copy(update={"refusals": {OpenSupportCase.activity: refused}})
    (again,) = decide(after, NOW).actions
    assert isinstance(again, OpenSupportCase)
    assert (again.search, again.most_attempts) == (True, 0), "its answer may have been lost"


def test_initialised_regions_do_not_time_out_while_the_case_is_asked_for() -> None:
    late = NOW + timedelta(days=1)
    (opened,) = decide(initializing(outcomes=done(*REGIONS)), late).actions
    assert isinstance(opened, OpenSupportCase)


def test_an_account_that_was_ready_before_opens_no_second_case() -> None:
    decision = decide(initializing(outcomes=done(*REGIONS), conditions=("Creating", "Ready")), NOW)
    assert status_of(decision)["state"] == "Ready"
    assert decision.why == "Account support case already resolved; Account Ready"
    assert written_condition(decision, "Ready")["message"] == "Ready", "the first pass's message stays"


def test_fedramp_initialises_no_regions() -> None:
    gov = config(fedramp="true")
    creating = world(in_state("Creating", iamUserSecret=f"{NAME}-secret"), config=gov)
    requested = activities(decide(creating, NOW))
    assert "aws.list_regions" not in requested
    assert {a.partition for a in decide(creating, NOW).actions if hasattr(a, "partition")} == {"aws-us-gov"}
    assert decide(settle(creating), NOW).phase == "PendingVerification"


# --- PendingVerification ---


def pending(case: str = "", **known: Any) -> AccountWorld:
    status = {
        "state": "PendingVerification",
        "supportCaseID": case,
        "conditions": [condition("Creating"), condition("InitializingRegions"), condition("PendingVerification")],
    }
    return world(account(spec=HAS_ID, status=status), known=known)


def test_one_case_is_opened_recorded_and_waited_for_without_a_timer() -> None:
    (opened,) = decide(pending(), NOW).actions
    assert isinstance(opened, OpenSupportCase)
    assert (opened.account_id, opened.name, opened.search) == (AWS_ID, NAME, False)
    decision = decide(pending(case_id="case-1"), NOW)
    assert status_of(decision) == {"supportCaseID": "case-1"}
    waiting = decide(pending(case="case-1"), NOW)
    assert (waiting.actions, waiting.deadline) == ((), None)
    assert waiting.waits_for == ("SupportCase/case-1",)


def test_a_life_that_was_under_way_looks_for_its_case_before_opening_one() -> None:
    (opened,) = decide(pending(inherited=True), NOW).actions
    assert isinstance(opened, OpenSupportCase)
    assert opened.search


def test_a_resolved_case_makes_the_account_ready_with_the_former_message() -> None:
    decision = decide(pending(case="case-1", resolved_case="case-1"), NOW)
    assert status_of(decision)["state"] == "Ready"
    assert written_condition(decision, "Ready")["message"] == "Account ready to be claimed"
    held = {c["type"]: c["status"] for c in status_of(decision)["conditions"]}
    assert held == dict.fromkeys(("Creating", "InitializingRegions", "PendingVerification", "Ready"), "True")


def test_another_cases_resolution_says_nothing_about_this_one() -> None:
    assert decide(pending(case="case-2", resolved_case="case-1"), NOW).actions == ()


def test_a_resolution_that_comes_before_the_case_is_recorded_is_not_lost() -> None:
    early = pending(case_id="case-1", resolved_case="case-1")
    assert settle(early).account.status.state == "Ready"


def test_development_mode_opens_no_case() -> None:
    assert status_of(decide(pending().model_copy(update={"dev_mode": True}), NOW))["state"] == "Ready"


def test_development_mode_asks_aws_for_no_account() -> None:
    new = world(account(), dev_mode=True)
    (recorded,) = decide(new, NOW).actions
    assert isinstance(recorded, Patch)
    assert recorded.patch == {"spec": {"awsAccountID": "123456789012"}}, "no claim gets an account without a Secret"
    created = status_of(decide(fold(new, recorded, ANSWERS["kube.patch"](recorded)), NOW))
    assert (created["state"], created["supportCaseID"]) == ("Creating", "11111111")


@pytest.mark.parametrize(
    "fields", [{"protected": (AWS_ID,)}, {"config": config(payer_account_ids=AWS_ID, opt_in_regions="af-south-1")}]
)
def test_development_mode_shows_the_payers_own_account_ready_and_does_nothing_in_it(fields: dict[str, Any]) -> None:
    """The id of development mode is also the payer's of emulators."""
    only_written = {"kube.patch": ANSWERS["kube.patch"]}
    after = settle(world(account(), dev_mode=True, **fields), answers=dict.fromkeys(ANSWERS, refuse) | only_written)
    assert after.account.status.state == "Ready"
    assert (after.account.spec.aws_account_id, after.account.status.support_case_id) == (AWS_ID, "11111111")
    assert [c.type for c in after.account.status.conditions] == ["Creating", "Ready"]
    assert after.account.spec.iam_user_secret == "", "no claim gets an account without a Secret"
    reused = after.account.model_copy(update={"status": after.account.status.model_copy(update={"reused": True})})
    assert decide(after.model_copy(update={"account": reused}), NOW).actions == ()


def refuse(action: Any) -> Refusal:
    raise AssertionError(f"asked for {action.summary}")


def test_development_mode_learns_of_the_payer_by_aws_refusal() -> None:
    start = world(in_state("Creating"), dev_mode=True)
    role = next(a for a in decide(start, NOW).actions if isinstance(a, EnsureSupportRole))
    refused = fold(start, role, refusal(ErrorType.DENIED, code=PROTECTED))
    assert status_of(decide(refused, NOW))["state"] == "Ready"
    denied = fold(start, role, refusal(ErrorType.DENIED, code="AccessDenied"))
    assert "aws.ensure_support_role" in activities(decide(denied, NOW))


@pytest.mark.parametrize(
    ("of", "dev_mode"),
    [
        (in_state("Creating"), False),
        (in_state("Creating", awsAccountID="210987654321"), True),
        (in_state("Creating", byoc=True), True),
    ],
    ids=["production", "another account", "a customer's"],
)
def test_any_other_protected_account_is_left_alone_in_development_mode_too(of: Account, dev_mode: bool) -> None:
    decision = decide(world(of, dev_mode=dev_mode, protected=(AWS_ID, "210987654321")), NOW)
    assert (decision.outcome, decision.actions) == (Outcome.WAITING, ())
    assert "protected" in decision.why


def test_a_case_of_a_state_that_was_set_by_hand_gets_its_condition() -> None:
    by_hand = account(spec=HAS_ID, status={"state": "PendingVerification"})
    decision = decide(world(by_hand, known={"case_id": "case-1"}), NOW)
    assert written_condition(decision, "PendingVerification")["message"] == "Account pending verification in AWS"
    assert status_of(decision)["supportCaseID"] == "case-1"


def test_a_refused_case_is_tried_again_and_never_fails_the_account() -> None:
    start = pending()
    case = decide(start, NOW).actions[0]
    after = fold(start, case, refusal(ErrorType.INVALID, code="CaseCreationLimitExceeded"))
    assert activities(decide(after, NOW)) == ["aws.open_support_case"]


# --- Ready ---


def test_a_link_makes_the_account_claimed_once_with_upstreams_reason() -> None:
    linked = ready_account(spec={"claimLink": "c", "claimLinkNamespace": "n"})
    decision = decide(world(linked), NOW)
    assert status_of(decision)["claimed"] is True
    claimed = written_condition(decision, "Claimed")
    assert claimed["reason"] == "InitializingRegions"
    assert claimed["message"] == f"Account {NAME} was claimed: c (Namespace: n)"
    after = settle(world(linked))
    assert decide(after, NOW).outcome is Outcome.SETTLED
    assert after.account.status.state == "Ready"


def test_a_release_that_died_between_its_two_writes_is_completed() -> None:
    half = ready_account(
        status={"claimed": True, "supportCaseID": "case-1"}, spec={"legalEntity": {"id": "e", "name": "E"}}
    )
    after = settle(world(half)).account
    assert (after.status.claimed, after.status.reused, after.status.state) == (False, True, "Ready")
    assert (after.status.support_case_id, after.spec.legal_entity.id) == ("", "e")
    reused = present(after.status.conditions, "Reused")
    assert (reused.reason, reused.message) == ("Ready", "Account Reuse - Ready")


@pytest.mark.parametrize(
    ("holder", "freed"),
    [
        ({}, False),
        ({"meta": {"deletionTimestamp": ago(seconds=1)}}, True),
        ({"spec": {"accountLink": "another"}}, True),
        ({"spec": {"accountLink": NAME}, "status": {"state": "Pending"}}, True),
    ],
)
def test_an_account_whose_link_was_cleared_is_not_freed_while_its_claim_has_it(
    holder: dict[str, Any], freed: bool
) -> None:
    cleared = ready_account(status={"claimed": True}, spec={"legalEntity": {"id": "entity-1", "name": "E"}})
    of = claim(**{"spec": {"accountLink": NAME}, "status": {"state": "Ready"}, **holder})
    after = settle(world(cleared, claim=of))
    assert after.account.status.claimed is not freed
    assert freed or "AccountClaim/tenant/claim" in decide(after, NOW).why


@pytest.mark.parametrize(
    "holder",
    [
        {"meta": {"deletionTimestamp": ago(seconds=1)}},
        {"spec": {"accountLink": "another"}, "status": {"state": "Pending"}},
        {"spec": {"accountLink": ""}},
    ],
)
def test_an_account_whose_link_was_cleared_waits_for_the_claim_whose_uid_it_records(holder: dict[str, Any]) -> None:
    recorded = {"annotations": {CLAIM_UID_ANNOTATION: "uid-claim"}}
    cleared = ready_account(meta=recorded, status={"claimed": True})
    decision = decide(world(cleared, claim=claim(**holder)), NOW)
    assert (decision.outcome, decision.actions) == (Outcome.WAITING, ())
    assert "AccountClaim/tenant/claim" in decision.why
    assert not settle(world(cleared)).account.status.claimed, "that claim is gone for good"


def test_an_account_that_a_person_marks_as_claimed_is_not_taken_for_reused() -> None:
    marked = ready_account(status={"claimed": True})
    after = settle(world(marked))
    assert after.account.status == marked.status
    assert "status.claimed" in decide(after, NOW).waits_for


def test_a_reused_account_without_its_secret_gets_a_new_key_before_it_can_be_claimed() -> None:
    bare = ready_account(status={"reused": True}, spec={"iamUserSecret": ""})
    assert activities(decide(world(bare), NOW)) == ["aws.ensure_admin_user"]
    assert settle(world(bare)).account.spec.iam_user_secret == f"{NAME}-secret"


def test_a_reused_account_gets_a_new_key_each_time_it_has_lost_one() -> None:
    """A fleet manager's claim takes the key away; the second one of the same account's life does so, too."""
    bare = ready_account(status={"reused": True}, spec={"iamUserSecret": ""})
    keyed = settle(world(bare))
    assert keyed.account.spec.iam_user_secret == f"{NAME}-secret"
    again = world(bare).recall(keyed)
    assert activities(decide(again, NOW)) == ["aws.ensure_admin_user"]


def test_a_key_created_while_a_claim_took_the_account_is_created_again_after_it() -> None:
    held = ready_account(status={"reused": True}, spec={"iamUserSecret": "", "claimLink": "claim"})
    meanwhile = world(held).recall(world(held, known={"admin_secret": f"{NAME}-secret"}))
    bare = ready_account(status={"reused": True}, spec={"iamUserSecret": ""})
    assert activities(decide(world(bare).recall(meanwhile), NOW)) == ["aws.ensure_admin_user"]


def test_a_ready_account_asks_for_nothing() -> None:
    decision = decide(world(ready_account()), NOW + timedelta(days=400))
    assert (decision.actions, decision.outcome, decision.deadline) == ((), Outcome.SETTLED, None)


def test_ready_set_by_hand_without_conditions_is_believed() -> None:
    by_hand = account(spec=HAS_ID, status={"state": "Ready"})
    assert decide(world(by_hand), NOW).outcome is Outcome.SETTLED


# --- status as input ---


def test_a_blanked_status_restarts_with_the_same_id_and_a_new_case() -> None:
    """As the shredder does: conditions, reused and the case are gone."""
    blank = ready_account(status={}).model_copy(update={"status": Account().status})
    after = settle(world(blank).recall(world(ready_account())))
    assert after.account.spec.aws_account_id == AWS_ID
    assert present(after.account.status.conditions, "Creating").message == "AWS account already created"
    assert (after.account.status.state, after.account.status.support_case_id) == ("PendingVerification", "case-1")


def test_a_blanked_state_with_its_ready_condition_returns_to_ready_without_a_case() -> None:
    blank = ready_account(status={"state": ""})
    after = settle(world(blank).recall(world(ready_account())), answers={"aws.open_support_case": _never})
    assert after.account.status.state == "Ready"


def test_after_a_blank_status_everything_is_searched_for_before_it_is_made() -> None:
    blank = ready_account().model_copy(update={"status": Account().status})
    seen = world(blank, known={"inherited": None}).recall(world(ready_account()))
    assert seen.known.inherited is True


@pytest.mark.parametrize("state", ["Creating", "InitializingRegions"])
def test_a_time_near_the_end_of_the_calendar_in_a_condition_counts_as_unreadable(state: str) -> None:
    ended = condition(state, entered="9999-12-31T23:59:59Z")
    decision = decide(world(account(spec=HAS_ID, status={"state": state, "conditions": [ended]})), NOW)
    assert decision.deadline is None
    assert status_of(decision)["conditions"]


def test_a_failed_state_set_by_hand_stays() -> None:
    for state in ("Failed", "AccountClientError", "UnhandledError"):
        decision = decide(world(ready_account(status={"state": state})), NOW)
        assert (decision.outcome, decision.actions, decision.phase) == (Outcome.FAILED, (), "Failed")


def test_a_failed_account_says_what_failed_it() -> None:
    failed = in_state("Failed", conditions=("Creating", "Ready"))
    reason = condition("AuthorizationError", reason="AccessDenied", message="IAM said no")
    status = failed.status.model_copy(
        update={
            "conditions": (
                *failed.status.conditions[:-1],
                account(status={"conditions": [reason]}).status.conditions[0],
            )
        }
    )
    assert decide(world(failed.model_copy(update={"status": status})), NOW).why == "AccessDenied: IAM said no"


def test_pending_verification_set_by_hand_without_condition_goes_on_from_there() -> None:
    by_hand = account(spec=HAS_ID, status={"state": "PendingVerification"})
    assert activities(decide(world(by_hand), NOW)) == ["aws.open_support_case"]


def _never(action: Any) -> None:
    raise AssertionError(f"{action.activity} is not to be asked for")


# --- a person's retry ---


def retried(of: Account, token: str = "1", honoured: str = "") -> Account:
    annotations = {"perdure.dev/retry": token, **({"perdure.dev/retried": honoured} if honoured else {})}
    return of.model_copy(update={"metadata": of.metadata.model_copy(update={"annotations": annotations})})


def test_a_retry_starts_a_failed_account_again_once() -> None:
    failed = retried(in_state("Failed"))
    decision = decide(world(failed), NOW)
    assert status_of(decision) == {"state": ""}
    after = settle(world(failed))
    assert after.account.status.state == "PendingVerification"
    assert after.account.metadata.annotations["perdure.dev/retried"] == "1"


def test_a_retry_of_a_failed_account_that_a_claim_holds_only_makes_it_ready() -> None:
    held = {"claimLink": "claim", "claimLinkNamespace": "tenant"}
    failed = retried(ready_account(spec=held, status={"state": "Failed", "claimed": True}))
    after = settle(world(failed, claim=claim()), answers={"aws.initialize_region": _never})
    assert (after.account.status.state, after.account.status.claimed) == ("Ready", True)
    assert after.account.metadata.annotations["perdure.dev/retried"] == "1"


def test_an_honoured_token_is_not_honoured_again() -> None:
    failed = retried(in_state("Failed"), honoured="1")
    assert decide(world(failed), NOW).outcome is Outcome.FAILED
    assert decide(world(retried(in_state("Failed"), token="2", honoured="1")), NOW).actions != ()


def test_a_retry_of_a_healthy_account_only_notes_the_token() -> None:
    after = settle(world(retried(ready_account())))
    assert after.account.status == ready_account().status
    assert after.account.metadata.annotations["perdure.dev/retried"] == "1"


# --- deletion ---

DELETED = {"deletionTimestamp": "2026-05-01T12:00:00Z"}


def test_a_deleted_account_loses_its_identities_and_then_its_finalizer() -> None:
    going = world(ready_account(meta=DELETED))
    (clean,) = decide(going, NOW).actions
    assert clean.activity == "aws.delete_identities"
    after = settle(going)
    assert not after.exists


def test_other_finalizers_stay_and_are_waited_for() -> None:
    both = ready_account(meta={**DELETED, "finalizers": ["finalizer.aws.managed.openshift.io", "other"]})
    after = settle(world(both))
    assert after.account.metadata.finalizers == ("other",)
    decision = decide(after, NOW)
    assert (decision.outcome, decision.actions) == (Outcome.WAITING, ())
    assert "other" in decision.why


def test_a_deleted_account_without_an_aws_account_goes_at_once() -> None:
    assert activities(decide(world(account(meta=DELETED)), NOW)) == ["kube.patch"]


def test_a_deletion_while_aws_creates_waits_for_the_account_to_clean_it() -> None:
    going = world(account(meta=DELETED), known={"request_id": "car-1"})
    assert activities(decide(going, NOW)) == ["aws.await_account"]
    seen = fold(going, decide(going, NOW).actions[0], ANSWERS["aws.await_account"](None))
    assert activities(decide(seen, NOW)) == ["aws.delete_identities"]


@pytest.mark.parametrize("end", ["finished", "stopped", "failed"])
def test_identities_made_while_the_account_is_deleted_are_deleted_too(end: str) -> None:
    state, step = State(world(in_state("Creating")), dirty=False).step(decide, NOW)
    makers = [each for each in step.start if isinstance(each, EnsureSupportRole | EnsureAdminUser)]
    assert len(makers) == 2
    going = world(account(meta=DELETED, spec=HAS_ID, status={"state": "Creating"}))
    for maker in makers:
        ends, _ = state.observing(NOW).observed(going).step(decide, NOW)
        ends = ends.finished(DeleteIdentities.activity, None)
        if end == "failed":
            ends = ends.failed(maker.slot, refusal(ErrorType.UNAVAILABLE))
        else:
            answer = ANSWERS[maker.activity](maker)
            ends = ends.stopped(maker.slot) if end == "stopped" else ends.finished(maker.slot, answer)  # type: ignore[arg-type]
        _, step = ends.step(decide, NOW)
        assert [each.activity for each in step.start] == [DeleteIdentities.activity]


@pytest.mark.parametrize("end", ["stopped", "failed"])
def test_a_launch_that_ends_badly_while_the_account_is_deleted_is_searched_for_again(end: str) -> None:
    start = world(in_state("InitializingRegions"), known={**CREDENTIALS, "regions": ("us-east-1",)})
    state, step = State(start, dirty=False).step(decide, NOW)
    (launch,) = step.start
    assert isinstance(launch, InitializeRegion)
    ends = start.account.model_copy(update={"metadata": account(meta=DELETED).metadata})
    state, step = state.observing(NOW).observed(start.model_copy(update={"account": ends})).step(decide, NOW)
    (search,) = step.start
    assert isinstance(search, EndLaunches)
    state = state.finished(search.slot, None)
    failure = refusal(ErrorType.UNAVAILABLE)
    state = state.stopped(launch.slot) if end == "stopped" else state.failed(launch.slot, failure)
    _, step = state.step(decide, NOW)
    assert [each.slot for each in step.start] == [search.slot]


def test_a_deletion_during_a_request_that_fails_goes_on() -> None:
    going = world(account(meta=DELETED), known={"request_id": "car-1"})
    failed = fold(going, decide(going, NOW).actions[0], refusal(ErrorType.INVALID, code="EMAIL_ALREADY_EXISTS"))
    assert activities(decide(failed, NOW)) == ["kube.patch"]


@pytest.mark.parametrize("pause", [{"annotations": {"aws.managed.openshift.com/pause-reconciliation": "true"}}])
def test_the_replaced_operators_pause_lets_a_deletion_proceed(pause: dict[str, object]) -> None:
    decision = decide(world(ready_account(meta={**DELETED, **pause})), NOW)
    assert activities(decision) == ["aws.delete_identities"]


def test_a_deletion_held_up_for_long_is_shown_failed_and_goes_on() -> None:
    going = world(ready_account(meta=DELETED))
    for attempt in range(3):
        decision = decide(going, NOW)
        assert activities(decision) == ["aws.delete_identities"], f"attempt {attempt}"
        going = fold(going, decision.actions[0], refusal(ErrorType.DENIED, "cannot assume the role"))
    decision = decide(going, NOW)
    assert activities(decision) == ["kube.patch", "aws.delete_identities"]
    assert status_of(decision)["state"] == "Failed"
    assert written_condition(decision, "AccountClientError")["message"] == "cannot assume the role"
    shown = fold(going, decision.actions[0], ANSWERS["kube.patch"](decision.actions[0]))
    assert activities(decide(shown, NOW)) == ["aws.delete_identities"]


def test_force_release_frees_an_uncleanable_account_unless_a_claim_holds_it() -> None:
    """An account that has left the organization, say: its role refuses for ever."""
    released = {**DELETED, "annotations": {FORCE_RELEASE: "it has left the organization"}}
    refused = {"aws.delete_identities": lambda a: refusal(ErrorType.DENIED, "cannot assume the role")}
    assert not settle(world(ready_account(meta=released)), answers=refused).exists
    link = {"claimLink": "claim", "claimLinkNamespace": "tenant"}
    assert settle(world(ready_account(meta=released, spec=link, status={"claimed": True}), claim=claim())).exists


def test_force_release_does_not_wait_for_aws_to_create_the_account() -> None:
    """The payer's key may be revoked, so that the result of the request stays unknown."""
    released = {**DELETED, "annotations": {FORCE_RELEASE: "the payer is gone"}}
    refused = {"aws.await_account": lambda a: refusal(ErrorType.DENIED, "unknown key")}
    assert not settle(world(account(meta=released), known={"request_id": "car-1"}), answers=refused).exists


def test_a_protected_account_is_released_from_deletion_untouched() -> None:
    going = world(ready_account(meta=DELETED), protected=(AWS_ID,))
    assert activities(decide(going, NOW)) == ["kube.patch"]


@pytest.mark.parametrize("code", ["ProtectedAccount", "InvalidAccountId"])
def test_an_account_in_which_nothing_was_ever_done_is_released_from_deletion(code: str) -> None:
    """The payer's own id, which no list has to name, or what is no account's id at all."""
    refused = {"aws.delete_identities": lambda a: refusal(ErrorType.DENIED, "refused", code=code)}
    assert not settle(world(ready_account(meta=DELETED)), answers=refused).exists


def test_an_account_held_by_a_living_claim_stays_and_reports_so_once() -> None:
    held = ready_account(
        meta=DELETED, spec={"claimLink": "claim", "claimLinkNamespace": "tenant"}, status={"claimed": True}
    )
    start = world(held, claim=claim())
    decision = decide(start, NOW)
    message = written_condition(decision, "DeletionHeld")["message"]
    assert message == "Deletion waits until claim claim (Namespace: tenant) is released"
    after = settle(start)
    assert after.account.metadata.finalizers == held.metadata.finalizers
    assert decide(after, NOW).waits_for == ("AccountClaim/tenant/claim",)


@pytest.mark.parametrize(("link", "held"), [("", True), (NAME, True), ("osd-creds-mgmt-other2", False)])
def test_an_account_is_not_held_by_a_claim_that_is_linked_to_another(link: str, held: bool) -> None:
    dangling = ready_account(meta=DELETED, spec={"claimLink": "claim", "claimLinkNamespace": "tenant"})
    assert settle(world(dangling, claim=claim(spec={"accountLink": link}))).exists is held


def test_an_account_whose_claim_is_gone_is_deleted() -> None:
    dangling = ready_account(meta=DELETED, spec={"claimLink": "claim", "claimLinkNamespace": "tenant"})
    assert not settle(world(dangling, claim=None)).exists


def test_an_account_that_is_gone_ends_its_workflow() -> None:
    decision = decide(world().model_copy(update={"exists": False}), NOW)
    assert decision.gone


def test_the_owner_of_an_account_is_its_pool() -> None:
    assert decide(world(), NOW).owner == "AccountPool/aws-account-operator/pool"
    assert decide(world(account(meta={"ownerReferences": []})), NOW).owner == ""


@pytest.mark.parametrize(("attempts", "requested"), [(2, ["aws.end_launches"]), (3, ["kube.patch"])])
def test_a_region_that_keeps_refusing_to_be_swept_does_not_hold_a_deletion_up(
    attempts: int, requested: list[str]
) -> None:
    entered = {"state": "InitializingRegions", "conditions": [condition("InitializingRegions")]}
    leaving = account(meta=DELETED, spec={"awsAccountID": "210987654321"}, status=entered)
    refused = {"aws.end_launches/eu-west-1": refusal(ErrorType.DENIED, attempts=attempts)}
    seen = world(leaving, known={"regions": ("eu-west-1",), "identities_deleted": True}, refusals=refused)
    assert [action.activity for action in decide(seen, NOW).actions] == requested


@pytest.mark.parametrize("meta", [{}, DELETED])
def test_a_cut_initialisation_ends_nothing_but_our_own_launches(meta: dict[str, Any]) -> None:
    """An account that a person has brought in by its id may hold years of work."""
    failed = {"state": "Failed", "conditions": [condition("InitializingRegions")]}
    seen = world(account(meta=meta, spec={"awsAccountID": AWS_ID}, status=failed), known={"regions": ("eu-west-1",)})
    (sweep,) = decide(seen, NOW).actions
    assert isinstance(sweep, EndLaunches)
    assert (sweep.tags["clusterAccountName"], sweep.tags["clusterNamespace"]) == (NAME, "aws-account-operator")


@pytest.mark.parametrize("code", ["ForeignSecret", "Conflict", "AlreadyExists"])
def test_a_secret_that_is_in_the_way_for_a_moment_fails_no_account(code: str) -> None:
    """An Account that was deleted and made again under its name meets the Secret of before, which goes by itself."""
    answers = iter([refusal(ErrorType.CONFLICT, "an earlier one's", code=code), None])
    created = {"state": "Creating", "conditions": [condition("Creating")]}
    start = world(account(spec={"awsAccountID": AWS_ID}, status=created), known={"tagged": True})
    first = settle(
        start, answers={"aws.ensure_admin_user": lambda a: next(answers) or ANSWERS["aws.ensure_admin_user"](a)}
    )
    assert not first.account.failed
    assert first.account.spec.iam_user_secret == f"{NAME}-secret"


def test_a_claimed_account_set_to_failed_keeps_its_tenants_objects() -> None:
    """Quotas that were expanded again after a release have listed its regions."""
    seen = {"regions": ("eu-west-1", "us-east-1")}
    link = {"claimLink": "claim", "claimLinkNamespace": "tenant"}
    began, ready = condition("InitializingRegions", entered=ago(days=9)), condition("Ready", entered=ago(days=8))
    status = {"state": "Failed", "claimed": True, "reused": True, "conditions": [began, ready]}
    assert decide(world(ready_account(spec=link, status=status), claim=claim(), known=seen), NOW).actions == ()
    again = {**status, "conditions": [condition("InitializingRegions", entered=ago(days=7)), ready]}
    cut = decide(world(ready_account(spec=link, status=again), claim=claim(), known=seen), NOW)
    assert activities(cut) == ["aws.end_launches"] * 2


@pytest.mark.parametrize(("ready", "requested"), [(8, "kube.patch"), (10, "aws.end_launches")])
def test_only_an_initialisation_that_was_cut_is_swept_up_after(ready: int, requested: str) -> None:
    conditions = [
        condition("InitializingRegions", entered=ago(days=9)),
        condition("Ready", entered=ago(days=ready)),
    ]
    leaving = ready_account(meta=DELETED, status={"conditions": conditions})
    known = {"regions": ("eu-west-1",), "identities_deleted": True}
    assert activities(decide(world(leaving, known=known), NOW)) == [requested]


def test_of_several_failures_the_one_noted_last_says_why_an_account_has_failed() -> None:
    """A condition stays at its first position, and stays True."""
    conditions = [
        condition("Creating", entered=ago(days=3)),
        condition("AccountCreationFailed", entered=ago(minutes=1), reason="CreationTimeout", message="too long"),
        condition("AuthorizationError", entered=ago(days=2), reason="AccessDenied", message="denied"),
        condition("OptInRegionsEnabled", entered=ago(minutes=1)),
        condition("AuthenticationError", entered=ago(seconds=1), status="False", reason="InvalidClientTokenId"),
    ]
    failed = account(spec={"awsAccountID": AWS_ID}, status={"state": "Failed", "conditions": conditions})
    assert decide(world(failed), NOW).why == "CreationTimeout: too long"
