"""The emulator's faults, ledger and settings, as tests and benchmarks use them."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.exceptions import ConnectionClosedError, HTTPClientError
from botocore.exceptions import ConnectionError as BotoConnectionError
from emulator_process import Cloud, EmulatorProcess, error_of
from waiting import until

from localcloud.aws.contract import IMAGE_OWNER, FaultKind
from localcloud.aws.control import Emulator
from localcloud.control import ControlRefusedError

pytestmark = pytest.mark.integration

LOST = (ConnectionClosedError, BotoConnectionError, HTTPClientError)


def test_a_call_lost_before_its_effect_did_nothing(payer: Cloud, emulator: Emulator) -> None:
    emulator.fault("iam", "CreateUser", kind="before", count=1)
    iam = payer.in_account(account := payer.new_account()).client("iam")
    with pytest.raises(LOST):
        iam.create_user(UserName="once")
    assert [u for u in emulator.world().users if u.account == account] == []
    iam.create_user(UserName="once")


def test_a_call_lost_after_its_effect_was_done(payer: Cloud, emulator: Emulator) -> None:
    emulator.fault("iam", "CreateUser", kind="after", count=1)
    iam = payer.in_account(account := payer.new_account()).client("iam")
    with pytest.raises(LOST):
        iam.create_user(UserName="once")
    assert [u.name for u in emulator.world().users if u.account == account] == ["once"]
    assert error_of(lambda: iam.create_user(UserName="once")) == "EntityAlreadyExists"
    lost = [c for c in emulator.ledger().counts if c.action == "CreateUser"]
    assert [(c.count, c.errors, c.lost) for c in lost] == [(2, 1, 1)]


@pytest.mark.parametrize(
    ("service", "action", "throttled", "denied"),
    [
        ("ec2", "describe_instances", "RequestLimitExceeded", "UnauthorizedOperation"),
        ("iam", "list_users", "Throttling", "AccessDenied"),
        ("sts", "get_caller_identity", "Throttling", "AccessDenied"),
        ("s3", "list_buckets", "SlowDown", "AccessDenied"),
        ("route53", "list_hosted_zones", "Throttling", "AccessDenied"),
        ("organizations", "list_accounts", "TooManyRequestsException", "AccessDeniedException"),
        ("support", "describe_cases", "ThrottlingException", "AccessDeniedException"),
        ("account", "list_regions", "TooManyRequestsException", "AccessDeniedException"),
    ],
)
def test_each_service_throttles_and_denies_in_its_own_words(
    payer: Cloud, emulator: Emulator, service: str, action: str, throttled: str, denied: str
) -> None:
    call = getattr(payer.client(service), action)
    emulator.fault(service, kind="throttle", count=1)
    assert error_of(call) == throttled
    emulator.fault(service, kind="denied", count=1)
    assert error_of(call) == denied
    emulator.fault(service, kind="error", count=1, code="InternalFailure", status=500)
    assert error_of(call) == "InternalFailure"
    call()


def test_a_service_may_be_named_as_boto3_does(payer: Cloud, emulator: Emulator) -> None:
    emulator.fault("service-quotas", "GetServiceQuota", kind="throttle", count=1)
    quotas = payer.client("service-quotas")
    code = error_of(lambda: quotas.get_service_quota(ServiceCode="ec2", QuotaCode="L-1216C47A"))
    assert code == "TooManyRequestsException"
    assert emulator.ledger().calls("service-quotas", "GetServiceQuota") == 1


def test_an_error_after_the_effect_hides_a_success(payer: Cloud, emulator: Emulator) -> None:
    account = payer.new_account()
    iam = payer.in_account(account).client("iam")
    emulator.fault("iam", "CreateUser", kind=FaultKind.ERROR_AFTER, code="ServiceFailure", status=500, count=1)
    assert error_of(lambda: iam.create_user(UserName="hidden")) == "ServiceFailure"
    assert [u.name for u in emulator.world().users if u.account == account] == ["hidden"]


def test_a_delay_holds_the_answer_and_the_effect_is_done(payer: Cloud, emulator: Emulator) -> None:
    emulator.fault("sts", kind="delay", delay_seconds=0.5, count=1)
    sts, began = payer.client("sts"), time.monotonic()
    sts.get_caller_identity()
    assert time.monotonic() - began >= 0.5
    assert not [fault for fault in emulator.faults() if fault.count]  # it is used up: the next call is not held


def test_a_delay_is_over_when_its_fault_is_lifted(payer: Cloud, emulator: Emulator) -> None:
    fault = emulator.fault("sts", kind="delay", delay_seconds=50, count=1)
    sts = payer.client("sts")
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(sts.get_caller_identity)
        with pytest.raises(TimeoutError):
            call.result(timeout=2)
        emulator.clear(fault.id)
        call.result()


def test_latency_is_added_to_every_call(payer: Cloud, emulator: Emulator) -> None:
    sts = payer.client("sts")
    sts.get_caller_identity()
    emulator.config(latency_ms=200)
    began = time.monotonic()
    sts.get_caller_identity()
    assert time.monotonic() - began >= 0.2


def test_a_fault_is_aimed_at_an_account_and_a_region(payer: Cloud, emulator: Emulator) -> None:
    aimed, spared = (payer.new_account() for _ in range(2))
    emulator.fault("ec2", "Describe*", kind="denied", account=aimed, region="eu-west-1")
    payer.in_account(spared).client("ec2", "eu-west-1").describe_instances()
    member = payer.in_account(aimed)
    member.client("ec2", "eu-west-2").describe_instances()
    assert error_of(member.client("ec2", "eu-west-1").describe_instances) == "UnauthorizedOperation"


def test_a_fault_can_spare_the_first_calls_and_counts_its_hits(payer: Cloud, emulator: Emulator) -> None:
    fault = emulator.fault("sts", "GetCallerIdentity", kind="throttle", skip=2, count=1)
    sts = payer.client("sts")
    sts.get_caller_identity()
    sts.get_caller_identity()
    assert error_of(sts.get_caller_identity) == "Throttling"
    sts.get_caller_identity()
    assert [(f.id, f.hits, f.count) for f in emulator.faults()] == [(fault.id, 1, 0)]


def test_chance_is_repeatable_by_its_seed(payer: Cloud, emulator: Emulator) -> None:
    sts = payer.client("sts")

    def outcomes() -> list[bool]:
        emulator.clear()
        emulator.fault("sts", kind="throttle", probability=0.5, seed=7)
        struck = []
        for _ in range(20):
            try:
                sts.get_caller_identity()
            except sts.exceptions.ClientError:
                struck.append(True)
            else:
                struck.append(False)
        return struck

    first = outcomes()
    assert outcomes() == first
    assert 0 < sum(first) < 20


def test_a_misspelt_setting_or_fault_is_refused_and_changes_nothing(emulator: Emulator) -> None:
    before = emulator.config()
    with pytest.raises(ControlRefusedError, match="latency"):
        emulator.config(latency=5)
    with pytest.raises(ControlRefusedError):
        emulator.config(case_seconds=-1)
    with pytest.raises(ControlRefusedError):
        emulator.clear("no-such-fault")
    assert emulator.config() == before


def test_the_ledger_counts_by_account_and_kind(payer: Cloud, emulator: Emulator) -> None:
    account = payer.new_account()
    member = payer.in_account(account)
    emulator.reset_ledger()
    iam = member.client("iam")
    iam.create_user(UserName="one")
    iam.list_users()
    error_of(lambda: iam.create_user(UserName="one"))
    error_of(lambda: member.client("ec2").describe_instances(DryRun=True))
    error_of(lambda: member.client("ec2").terminate_instances(InstanceIds=["i-0"], DryRun=True))
    payer.client("sts").get_caller_identity()
    ledger = emulator.ledger(recent=True)
    assert ledger.calls("iam", "CreateUser", account) == 2
    assert ledger.errors("iam", "CreateUser") == 1
    assert (ledger.total(), ledger.mutating()) == (6, 2)
    assert [call.action for call in ledger.recent][:2] == ["CreateUser", "ListUsers"]
    assert next(call.error for call in ledger.recent if call.status >= 400) == "EntityAlreadyExists"


def test_a_single_call_shows_its_client_and_the_instances_that_it_names(payer: Cloud, emulator: Emulator) -> None:
    ec2 = payer.client("ec2")
    image = ec2.describe_images(Owners=[IMAGE_OWNER])["Images"][0]["ImageId"]
    launched = ec2.run_instances(ImageId=image, InstanceType="t3.micro", MinCount=2, MaxCount=2)["Instances"]
    instances = tuple(each["InstanceId"] for each in launched)
    emulator.reset_ledger()
    ec2.terminate_instances(InstanceIds=list(instances))
    (call,) = emulator.ledger(recent=True).recent
    assert call.named == instances
    assert "Boto3" in call.user_agent


def test_looking_and_steering_are_not_counted(payer: Cloud, emulator: Emulator) -> None:
    emulator.world()
    emulator.health()
    emulator.config()
    assert emulator.ledger().total() == 0


def test_a_file_steers_too_and_its_changes_are_seen(own_emulator: EmulatorProcess) -> None:
    file = own_emulator.folder / "aws.yaml"
    file.write_text("config: {case_seconds: 7}\nfaults: [{service: sts, kind: throttle}]\n")
    own_emulator.start()
    with own_emulator.control() as emulator:
        assert emulator.config().case_seconds == 7
        sts = own_emulator.cloud().client("sts")
        assert error_of(sts.get_caller_identity) == "Throttling"
        file.write_text("config: {case_seconds: 8}\n")
        until(lambda: emulator.config().case_seconds == 8)
        sts.get_caller_identity()
        file.write_text("config: {no_such_setting: 1}\n")
        until(lambda: "was ignored" in (own_emulator.folder / "aws.log").read_text())
        assert emulator.config().case_seconds == 8
