"""Callers: the payer by its Secret, members by AssumeRole, protected accounts never, and no mixed-up credentials."""

from __future__ import annotations

import base64
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from aws_lab import REGION, Lab, region_init
from botocore.credentials import ReadOnlyCredentials

from activities.aws.clients import Clients, NoCallerError
from activities.aws.session import Sessions
from domain.accounts.constants import CONFIG_MAP, OPERATOR_NAMESPACE, PAYER_SECRET
from engine.errors import Denied, Invalid, Throttled, Unavailable
from engine.kube import CONFIG_MAP as CONFIG_MAP_KIND
from engine.kube import SECRET
from engine.kube.json import text
from engine.settings import Settings

pytestmark = pytest.mark.integration

PAYER = "123456789012"


def test_many_regions_at_once_assume_the_role_once(lab: Lab) -> None:
    account_id, _ = lab.account()

    def look(region: str) -> str:
        member = lab.sessions.member(account_id)
        return member.ec2(region).describe_regions()["ResponseMetadata"]["RequestId"]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(look, ["us-east-1", "us-east-2", "us-west-1", "us-west-2"] * 4))
    assert lab.calls("sts", "AssumeRole") == 1


def test_calls_of_several_callers_do_not_mix(lab: Lab) -> None:
    accounts = [lab.account()[0] for _ in range(3)]
    barrier = threading.Barrier(3)

    def who(account_id: str) -> list[str]:
        member = lab.sessions.member(account_id)
        barrier.wait()
        return [member.ask_identity().account_id for _ in range(10)]

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(who, accounts)) == [[account_id] * 10 for account_id in accounts]


def test_a_client_keeps_its_caller_inside_of_another(lab: Lab) -> None:
    account_id, _ = lab.account()
    member = lab.sessions.member(account_id).sts()
    assert lab.sessions.payer().sts().get_caller_identity()["Account"] == PAYER
    assert member.get_caller_identity()["Account"] == account_id


def test_calls_of_one_account_are_limited_without_delaying_other_accounts(lab: Lab) -> None:
    (account_id, _), (other, _) = lab.account(), lab.account()
    sessions = Sessions(lab.kube, Settings(), most_calls=1)
    member = sessions.member(account_id)
    with member.guarded():
        with pytest.raises(Throttled) as refused:
            member.ask_identity()
        with pytest.raises(Throttled):
            sessions.member(account_id)
        assert sessions.member(other).ask_identity().account_id == other
    assert refused.value.code == "AccountBusy"
    assert member.ask_identity().account_id == account_id


def test_a_shared_client_has_no_credentials_of_its_own() -> None:
    with pytest.raises(NoCallerError):
        Clients().shared("sts", REGION).get_caller_identity()  # type: ignore[attr-defined]


@pytest.mark.parametrize("account_id", [PAYER, "999999999999"])
def test_a_protected_account_is_refused_before_any_call_in_it(lab: Lab, account_id: str) -> None:
    settings = Settings(accounts_protected=("999999999999",))
    sessions = Sessions(lab.kube, settings)
    with pytest.raises(Denied) as refused:
        sessions.member(account_id)
    assert refused.value.code == "ProtectedAccount"
    assert lab.calls("sts", "AssumeRole") == 0


def test_payer_account_ids_of_the_configmap_are_refused(lab: Lab) -> None:
    account_id, name = lab.account()
    lab.kube.patch(CONFIG_MAP_KIND, OPERATOR_NAMESPACE, CONFIG_MAP, {"data": {"payer-account-ids": f"1, {account_id}"}})
    try:
        with pytest.raises(Denied):
            Sessions(lab.kube, lab.settings).member(account_id)
    finally:
        lab.kube.patch(CONFIG_MAP_KIND, OPERATOR_NAMESPACE, CONFIG_MAP, {"data": {"payer-account-ids": None}})
    assert lab.run(lab.activities.initialize_region, region_init(account_id, name)).ok


@pytest.mark.parametrize("account_id", ["", "12345", "12345678901a", "123456789013\n"])
def test_a_malformed_account_id_is_refused(lab: Lab, account_id: str) -> None:
    with pytest.raises(Invalid):
        lab.sessions.member(account_id)


def test_a_rotated_payer_key_works_at_once(lab: Lab) -> None:
    right = lab.kube.get(SECRET, OPERATOR_NAMESPACE, PAYER_SECRET)["data"]
    sessions = Sessions(lab.kube, lab.settings)
    wrong = {"aws_access_key_id": base64.b64encode(b"AKIAWRONG00000000000").decode()}
    lab.kube.patch(SECRET, OPERATOR_NAMESPACE, PAYER_SECRET, {"data": wrong})
    try:
        with pytest.raises(Denied) as refused:
            sessions.payer().organizations().describe_organization()
    finally:
        lab.kube.patch(SECRET, OPERATOR_NAMESPACE, PAYER_SECRET, {"data": right})
    assert "credentials" in str(refused.value)
    assert sessions.payer().organizations().describe_organization()["Organization"]["MasterAccountId"] == PAYER


def test_a_missing_payer_key_says_which_entries_are_wanted(lab: Lab) -> None:
    right = lab.kube.get(SECRET, OPERATOR_NAMESPACE, PAYER_SECRET)["data"]
    lab.kube.patch(SECRET, OPERATOR_NAMESPACE, PAYER_SECRET, {"data": {"aws_secret_access_key": None}})
    try:
        with pytest.raises(Denied) as refused:
            Sessions(lab.kube, lab.settings).payer().identity()
    finally:
        lab.kube.patch(SECRET, OPERATOR_NAMESPACE, PAYER_SECRET, {"data": right})
    assert "aws_secret_access_key" in str(refused.value)
    assert PAYER_SECRET in str(refused.value)


def test_an_expired_session_is_renewed_within_the_call(lab: Lab) -> None:
    account_id, _ = lab.account()
    member = lab.sessions.member(account_id)
    lab.emulator.fault("ec2", "DescribeRegions", kind="error", code="ExpiredToken", count=1, status=400)
    member.ec2(REGION).describe_regions()
    assert lab.calls("sts", "AssumeRole") == 2


def test_nothing_is_changed_in_observe_mode(lab: Lab) -> None:
    account_id, _ = lab.account()
    sessions = Sessions(lab.kube, Settings(mode="observe"))
    iam = sessions.member(account_id).iam()
    assert iam.list_users()["Users"] == []
    lab.emulator.reset_ledger()
    with pytest.raises(Denied) as refused:
        iam.create_user(UserName="nobody")
    assert refused.value.code == "ObserveMode"
    assert lab.emulator.ledger().total() == 0


def test_a_read_is_repeated_once_and_a_change_never(lab: Lab) -> None:
    account_id, _ = lab.account()
    member = lab.sessions.member(account_id)
    lab.emulator.fault("ec2", "DescribeRegions", kind="before", count=1)
    member.ec2(REGION).describe_regions()
    assert lab.calls("ec2", "DescribeRegions") == 2
    lab.emulator.fault("iam", "CreateAccessKey", kind="before", count=1)
    with pytest.raises(Unavailable):
        member.iam().create_access_key(UserName="nobody")
    assert lab.calls("iam", "CreateAccessKey") == 1


def test_throttling_is_not_repeated_at_once(lab: Lab) -> None:
    lab.emulator.fault("organizations", "ListAccounts", kind="throttle", count=1)
    with pytest.raises(Throttled):
        lab.sessions.payer().organizations().list_accounts()
    assert lab.calls("organizations", "ListAccounts") == 1


def test_an_error_names_call_caller_code_and_request(lab: Lab) -> None:
    account_id, _ = lab.account()
    lab.emulator.fault("iam", "CreateUser", kind="denied", count=1)
    with pytest.raises(Denied) as refused:
        lab.sessions.member(account_id).iam().create_user(UserName="somebody")
    for part in ("iam CreateUser", "somebody", account_id, "AccessDenied", "[request "):
        assert part in str(refused.value)


def test_credentials_do_not_show_in_errors(lab: Lab) -> None:
    lab.emulator.fault("sts", "GetCallerIdentity", kind="denied", count=1)
    keys = lab.sessions.payer().credential()
    assert isinstance(keys, ReadOnlyCredentials)
    with pytest.raises(Denied) as refused:
        lab.sessions.payer().ask_identity()
    assert str(keys.secret_key) not in str(refused.value)
    assert text(lab.kube.get(SECRET, OPERATOR_NAMESPACE, PAYER_SECRET), "data", "aws_secret_access_key") not in str(
        refused.value
    )
