"""The emulator's memory: what survives restarts, crashes and damaged files."""

from __future__ import annotations

import signal
import sqlite3
import time

import pytest
from emulator_process import Cloud, EmulatorProcess, error_of

from localcloud.aws.contract import World

pytestmark = pytest.mark.integration


def build_something(own: EmulatorProcess) -> tuple[str, Cloud]:
    """Use a bit of everything; return an account and a user of it."""
    payer = own.cloud()
    account = payer.new_account()
    member = payer.in_account(account)
    iam, ec2 = member.client("iam"), member.client("ec2", "eu-west-1")
    iam.create_user(UserName="kept")
    iam.attach_user_policy(UserName="kept", PolicyArn="arn:aws:iam::aws:policy/AdministratorAccess")
    key = iam.create_access_key(UserName="kept")["AccessKey"]
    image = ec2.describe_images(Owners=["309956199498"])["Images"][-1]["ImageId"]
    root = {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 10, "Encrypted": True, "DeleteOnTermination": True}}
    ec2.run_instances(
        ImageId=image, MinCount=1, MaxCount=1, InstanceType="t3.micro", ClientToken="kept", BlockDeviceMappings=[root]
    )
    ec2.create_snapshot(VolumeId=ec2.create_volume(AvailabilityZone="eu-west-1a", Size=1)["VolumeId"])
    s3 = member.client("s3")
    s3.create_bucket(Bucket=f"kept-{account}")
    s3.put_object(Bucket=f"kept-{account}", Key="key", Body=b"body")
    member.client("route53").create_hosted_zone(Name="example.com.", CallerReference="1")
    member.client("kms").create_key(KeySpec="RSA_2048", KeyUsage="SIGN_VERIFY")
    member.client("account").enable_region(RegionName="af-south-1")
    quota = {"ServiceCode": "ec2", "QuotaCode": "L-1216C47A"}
    member.client("service-quotas", "eu-west-1").request_service_quota_increase(**quota, DesiredValue=64)
    case = {"subject": "kept", "communicationBody": "please"}
    payer.client("support").create_case(**case)
    return account, member.with_key(key["AccessKeyId"], key["SecretAccessKey"])


def world_of(own: EmulatorProcess) -> World:
    with own.control() as emulator:
        return emulator.world()


def test_everything_survives_a_restart(own_emulator: EmulatorProcess) -> None:
    own_emulator.start()
    with own_emulator.control() as emulator:
        emulator.config(case_seconds=3600, run_instances_seconds=1)
        emulator.fault("sqs", kind="throttle")
    account, user = build_something(own_emulator)
    session = own_emulator.cloud().in_account(account)
    before = world_of(own_emulator)
    own_emulator.end(signal.SIGTERM)
    own_emulator.start()
    after = world_of(own_emulator)
    assert after.model_copy(update={"instances": ()}) == before.model_copy(update={"instances": ()})
    assert [i.id for i in after.instances] == [i.id for i in before.instances]
    with own_emulator.control() as emulator:
        assert emulator.config().case_seconds == 3600
        assert [f.service for f in emulator.faults()] == ["sqs"]
        assert emulator.health().warnings == ()
    user, session = (Cloud(own_emulator.endpoint, cloud.credentials) for cloud in (user, session))
    assert user.client("sts").get_caller_identity()["Arn"] == f"arn:aws:iam::{account}:user/kept"
    administrator = session.client("iam").get_policy_version(
        PolicyArn="arn:aws:iam::aws:policy/AdministratorAccess", VersionId="v1"
    )
    assert administrator["PolicyVersion"]["Document"]["Statement"][0]["Action"] == "*"
    assert session.client("s3").get_object(Bucket=f"kept-{account}", Key="key")["Body"].read() == b"body"
    stranger = own_emulator.cloud().client("s3")
    assert error_of(lambda: stranger.create_bucket(Bucket=f"kept-{account}")) == "BucketAlreadyExists"
    ec2 = session.client("ec2", "eu-west-1")
    ec2.terminate_instances(InstanceIds=[i.id for i in after.instances])
    session.client("ec2", "af-south-1").describe_instances()
    again = own_emulator.cloud().request_account(email=after.account(account).email)
    assert own_emulator.cloud().creation(again)["FailureReason"] == "EMAIL_ALREADY_EXISTS"


def test_a_kill_loses_at_most_two_seconds(own_emulator: EmulatorProcess) -> None:
    own_emulator.start()
    account, _user = build_something(own_emulator)
    before = world_of(own_emulator)
    own_emulator.cloud().in_account(account)
    with own_emulator.control() as emulator:
        emulator.save()
    session = own_emulator.cloud().in_account(account)
    time.sleep(2)  # the promise under test
    own_emulator.cloud().request_account(email="later@example.com")
    own_emulator.end(signal.SIGKILL)
    own_emulator.start()
    after = world_of(own_emulator)
    assert [a.id for a in before.accounts] == [a.id for a in after.accounts if a.email != "later@example.com"]
    assert (after.keys, after.buckets, after.snapshots, after.instances) == (
        before.keys,
        before.buckets,
        before.snapshots,
        before.instances,
    )
    assert error_of(lambda: own_emulator.cloud().assume(f"arn:aws:iam::{account}:role/Missing")) == "AccessDenied"
    Cloud(own_emulator.endpoint, session.credentials).client("iam").list_users()


def test_a_creation_in_progress_goes_on_after_a_kill(own_emulator: EmulatorProcess) -> None:
    own_emulator.start()
    with own_emulator.control() as emulator:
        emulator.config(create_account_seconds=3600)
        request = own_emulator.cloud().request_account()
        emulator.save()
    own_emulator.end(signal.SIGKILL)
    own_emulator.start()
    assert own_emulator.cloud().creation(request)["State"] == "IN_PROGRESS"
    with own_emulator.control() as emulator:
        emulator.clock(advance_seconds=3601)
    assert own_emulator.cloud().creation(request)["State"] == "SUCCEEDED"


@pytest.mark.parametrize("damage", ["garbage", "truncated", "wrong pickle", "other format"])
def test_an_unreadable_file_is_set_aside_and_reported(
    emulator_process: EmulatorProcess, own_emulator: EmulatorProcess, damage: str
) -> None:
    emulator_process.cloud().new_account()
    with emulator_process.control() as emulator:
        emulator.save()
    file = own_emulator.folder / "aws.db"
    content = (emulator_process.folder / "aws.db").read_bytes()
    file.write_bytes(content)
    if damage == "garbage":
        file.write_bytes(b"not a database" * 1000)
    elif damage == "truncated":
        file.write_bytes(content[: len(content) // 2])
    else:
        with sqlite3.connect(file) as connection:
            change = "update chunk set body = x'00'" if damage == "wrong pickle" else "update about set value = '0'"
            connection.execute(change)
        connection.close()
    content = file.read_bytes()
    own_emulator.start()
    with own_emulator.control() as emulator:
        assert len(emulator.world().members()) == 0
        assert any("set aside" in warning for warning in emulator.health().warnings)
    (aside,) = own_emulator.folder.glob("aws.db.unreadable-*")
    assert aside.read_bytes() == content
    own_emulator.cloud().new_account()


def test_a_kill_before_the_first_save_is_a_first_start(own_emulator: EmulatorProcess) -> None:
    (own_emulator.folder / "aws.db").touch()
    own_emulator.start()
    with own_emulator.control() as emulator:
        assert emulator.health().warnings == ()
    own_emulator.cloud().new_account()


def test_the_payer_has_the_key_that_the_environment_gives(own_emulator: EmulatorProcess) -> None:
    own_emulator.more = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing-secret"}
    own_emulator.start()
    with own_emulator.control() as emulator:
        assert emulator.health().access_key_id == "testing"
    identity = own_emulator.cloud().client("sts").get_caller_identity()
    assert identity["Arn"] == "arn:aws:iam::123456789012:user/aws-account-operator"
    own_emulator.cloud().new_account()
