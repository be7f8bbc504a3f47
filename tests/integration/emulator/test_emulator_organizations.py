"""The emulator's Organizations against what AWS documents."""

from __future__ import annotations

import pytest
from emulator_process import Cloud, error_of
from waiting import until

from localcloud.aws.control import Emulator

pytestmark = pytest.mark.integration

REASONS = [
    "ACCOUNT_LIMIT_EXCEEDED",
    "EMAIL_ALREADY_EXISTS",
    "INVALID_ADDRESS",
    "INVALID_EMAIL",
    "CONCURRENT_ACCOUNT_MODIFICATION",
    "INTERNAL_FAILURE",
    "GOVCLOUD_ACCOUNT_ALREADY_EXISTS",
    "MISSING_BUSINESS_VALIDATION",
    "FAILED_BUSINESS_VALIDATION",
    "PENDING_BUSINESS_VALIDATION",
    "INVALID_IDENTITY_FOR_BUSINESS_VALIDATION",
    "UNKNOWN_BUSINESS_VALIDATION",
    "MISSING_PAYMENT_INSTRUMENT",
    "INVALID_PAYMENT_INSTRUMENT",
    "UPDATE_EXISTING_RESOURCE_POLICY_WITH_TAGS_NOT_SUPPORTED",
]


def test_an_account_is_in_progress_for_the_chosen_time_and_then_exists(payer: Cloud, emulator: Emulator) -> None:
    emulator.config(create_account_seconds=3600)
    request = payer.request_account(name="slow", email="slow@example.com")
    status = payer.creation(request)
    assert status["State"] == "IN_PROGRESS"
    assert "CompletedTimestamp" not in status
    assert "AccountId" not in status
    assert "slow@example.com" not in [a.email for a in emulator.world().accounts]
    emulator.clock(advance_seconds=3601)
    status = payer.creation(request)
    assert status["State"] == "SUCCEEDED"
    assert status["CompletedTimestamp"] >= status["RequestedTimestamp"]
    account = payer.client("organizations").describe_account(AccountId=status["AccountId"])["Account"]
    assert (account["Name"], account["Email"], account["Status"]) == ("slow", "slow@example.com", "ACTIVE")


def test_the_answer_to_create_account_is_in_progress_even_without_delay(payer: Cloud) -> None:
    answer = payer.client("organizations").create_account(AccountName="prompt", Email="prompt@example.com")
    assert answer["CreateAccountStatus"]["State"] == "IN_PROGRESS"


def test_a_faster_clock_shortens_creation(payer: Cloud, emulator: Emulator) -> None:
    emulator.config(create_account_seconds=600)
    emulator.clock(speed=1200)
    request = payer.request_account()
    assert payer.creation(request)["State"] == "IN_PROGRESS"
    until(lambda: payer.creation(request)["State"] == "SUCCEEDED")


@pytest.mark.parametrize("reason", REASONS)
def test_a_request_fails_with_the_reason_asked_for(payer: Cloud, emulator: Emulator, reason: str) -> None:
    emulator.fault("organizations", "CreateAccount", kind="async-failure", code=reason, count=1)
    failed = payer.creation(payer.request_account())
    assert (failed["State"], failed["FailureReason"]) == ("FAILED", reason)
    assert payer.creation(payer.request_account())["State"] == "SUCCEEDED"


def test_a_failure_can_be_aimed_at_an_email(payer: Cloud, emulator: Emulator) -> None:
    emulator.fault("organizations", "CreateAccount", kind="async-failure", code="INVALID_EMAIL", containing="aimed+")
    assert payer.creation(payer.request_account())["State"] == "SUCCEEDED"
    assert payer.creation(payer.request_account(email="aimed+1@example.com"))["FailureReason"] == "INVALID_EMAIL"


def test_an_email_serves_one_account_whatever_its_case(payer: Cloud, emulator: Emulator) -> None:
    assert payer.creation(payer.request_account(email="once@example.com"))["State"] == "SUCCEEDED"
    again = payer.creation(payer.request_account(email="ONCE@example.com"))
    assert (again["State"], again["FailureReason"]) == ("FAILED", "EMAIL_ALREADY_EXISTS")
    assert [a.email.lower() for a in emulator.world().accounts].count("once@example.com") == 1


def test_of_two_requests_in_flight_for_an_email_one_succeeds(payer: Cloud, emulator: Emulator) -> None:
    emulator.config(create_account_seconds=60)
    requests = [payer.request_account(email="twice@example.com") for _ in range(2)]
    emulator.clock(advance_seconds=61)
    assert sorted(payer.creation(request)["State"] for request in requests) == ["FAILED", "SUCCEEDED"]


def test_a_full_organization_refuses_at_once_or_later(payer: Cloud, emulator: Emulator) -> None:
    total = len(emulator.world().accounts)
    emulator.config(account_limit=total)
    with pytest.raises(payer.client("organizations").exceptions.ClientError) as refused:
        payer.request_account()
    assert refused.value.response["Error"]["Code"] == "ConstraintViolationException"
    assert refused.value.response["Reason"] == "ACCOUNT_NUMBER_LIMIT_EXCEEDED"
    emulator.config(account_limit_answer="failure")
    assert payer.creation(payer.request_account())["FailureReason"] == "ACCOUNT_LIMIT_EXCEEDED"


def test_accounts_in_progress_count_against_the_limit(payer: Cloud, emulator: Emulator) -> None:
    emulator.config(account_limit=len(emulator.world().accounts) + 1, create_account_seconds=60)
    payer.request_account()
    assert error_of(payer.request_account) == "ConstraintViolationException"


def test_more_requests_at_once_than_allowed_are_refused(payer: Cloud, emulator: Emulator) -> None:
    emulator.config(create_account_concurrency=2, create_account_seconds=60)
    payer.request_account()
    payer.request_account()
    assert error_of(payer.request_account) == "TooManyRequestsException"
    emulator.config(create_account_concurrency_error="ConcurrentModificationException")
    assert error_of(payer.request_account) == "ConcurrentModificationException"
    emulator.clock(advance_seconds=61)
    payer.request_account()


def test_an_unknown_request_is_not_found(payer: Cloud) -> None:
    assert error_of(lambda: payer.creation("car-00000000")) == "CreateAccountStatusNotFoundException"


def test_lists_come_in_pages_of_twenty_and_lose_nothing(payer: Cloud, emulator: Emulator) -> None:
    for _ in range(max(0, 45 - len(emulator.world().accounts))):
        payer.request_account()
    organizations = payer.client("organizations")
    pages = list(organizations.get_paginator("list_accounts").paginate())
    assert {len(page["Accounts"]) for page in pages[:-1]} == {20}
    listed = [account["Id"] for page in pages for account in page["Accounts"]]
    assert len(listed) == len(set(listed))
    assert sorted(listed) == sorted(a.id for a in emulator.world().accounts)
    pages = list(organizations.get_paginator("list_create_account_status").paginate(States=["SUCCEEDED"]))
    requests = [status["Id"] for page in pages for status in page["CreateAccountStatuses"]]
    assert len(pages) > 2
    assert sorted(requests) == sorted(c.id for c in emulator.world().creations if c.state == "SUCCEEDED")
    assert error_of(lambda: organizations.list_accounts(MaxResults=20, NextToken="nonsense")) == "InvalidInputException"


def test_requests_are_listed_by_state(payer: Cloud, emulator: Emulator) -> None:
    emulator.config(create_account_seconds=60)
    request = payer.request_account()
    organizations = payer.client("organizations")
    in_progress = organizations.list_create_account_status(States=["IN_PROGRESS"])["CreateAccountStatuses"]
    assert request in [status["Id"] for status in in_progress]
    emulator.clock(advance_seconds=61)
    in_progress = organizations.list_create_account_status(States=["IN_PROGRESS"])["CreateAccountStatuses"]
    assert request not in [status["Id"] for status in in_progress]


def test_a_unit_has_one_name_under_one_parent_that_exists(payer: Cloud, emulator: Emulator) -> None:
    organizations, root = payer.client("organizations"), emulator.world().root

    def create(parent: str, name: str) -> str:
        return organizations.create_organizational_unit(ParentId=parent, Name=name)["OrganizationalUnit"]["Id"]

    first = create(root, "tenant-1")
    assert error_of(lambda: create(root, "tenant-1")) == "DuplicateOrganizationalUnitException"
    assert error_of(lambda: create("r-zzzz", "tenant-2")) == "ParentNotFoundException"
    create(first, "tenant-1")


def test_an_account_moves_only_from_where_it_is(payer: Cloud, emulator: Emulator) -> None:
    organizations, root, account = payer.client("organizations"), emulator.world().root, payer.new_account()
    unit = organizations.create_organizational_unit(ParentId=root, Name="destination")["OrganizationalUnit"]["Id"]

    def move(source: str, destination: str) -> None:
        organizations.move_account(AccountId=account, SourceParentId=source, DestinationParentId=destination)

    move(root, unit)
    assert organizations.list_parents(ChildId=account)["Parents"][0]["Id"] == unit
    assert error_of(lambda: move(root, unit)) == "AccountNotFoundException"
    assert error_of(lambda: move(unit, unit)) == "DuplicateAccountException"
    assert error_of(lambda: move(unit, "ou-zzzz-zzzzzzzz")) == "DestinationParentNotFoundException"
    assert error_of(lambda: move("ou-zzzz-zzzzzzzz", unit)) == "SourceParentNotFoundException"
    children = organizations.list_children(ParentId=unit, ChildType="ACCOUNT")["Children"]
    assert [child["Id"] for child in children] == [account]
    not_empty = error_of(lambda: organizations.delete_organizational_unit(OrganizationalUnitId=unit))
    assert not_empty == "OrganizationalUnitNotEmptyException"


def test_a_closed_account_is_pending_then_suspended_and_locked(payer: Cloud, emulator: Emulator) -> None:
    emulator.config(close_account_seconds=60)
    organizations, account = payer.client("organizations"), payer.new_account()
    member = payer.in_account(account)
    organizations.close_account(AccountId=account)
    assert organizations.describe_account(AccountId=account)["Account"]["Status"] == "PENDING_CLOSURE"
    assert error_of(lambda: organizations.close_account(AccountId=account)) == "ConflictException"
    assert error_of(lambda: payer.in_account(account)) == "AccessDenied"
    assert error_of(member.client("iam").list_users) == "AccessDenied"
    emulator.clock(advance_seconds=61)
    assert organizations.describe_account(AccountId=account)["Account"]["Status"] == "SUSPENDED"
    assert error_of(lambda: organizations.close_account(AccountId=account)) == "AccountAlreadyClosedException"


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("close_account_quota", "CLOSE_ACCOUNT_QUOTA_EXCEEDED"),
        ("close_account_requests", "CLOSE_ACCOUNT_REQUESTS_LIMIT_EXCEEDED"),
    ],
)
def test_closing_has_quotas(payer: Cloud, emulator: Emulator, setting: str, reason: str) -> None:
    organizations = payer.client("organizations")
    emulator.config(close_account_seconds=60)
    organizations.close_account(AccountId=payer.new_account())
    emulator.config(**{setting: 1})
    with pytest.raises(organizations.exceptions.ConstraintViolationException) as refused:
        organizations.close_account(AccountId=payer.new_account())
    assert refused.value.response["Reason"] == reason


def test_member_accounts_may_not_run_the_organization(payer: Cloud) -> None:
    member = payer.in_account(payer.new_account()).client("organizations")
    assert error_of(member.list_accounts) == "AccessDeniedException"
    assert error_of(lambda: member.create_account(AccountName="x", Email="xy@example.com")) == "AccessDeniedException"
    assert member.describe_organization()["Organization"]["MasterAccountId"] == "123456789012"
