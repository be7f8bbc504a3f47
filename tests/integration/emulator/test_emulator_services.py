"""The emulator's support cases, quotas, regions, EC2, S3 and Route53 against what AWS documents."""

from __future__ import annotations

from typing import Any

import pytest
from emulator_process import Cloud, error_of

from localcloud.aws.contract import DEFAULT_OPT_IN_REGIONS, DEFAULT_REGIONS
from localcloud.aws.control import Emulator
from localcloud.control import ControlRefusedError

pytestmark = pytest.mark.integration

VCPU = {"ServiceCode": "ec2", "QuotaCode": "L-1216C47A"}
OWNER = "309956199498"


@pytest.fixture
def member(payer: Cloud) -> Cloud:
    return payer.in_account(payer.new_account())


def open_case(payer: Cloud, subject: str = "Add account 1 to Enterprise Support") -> str:
    case = {"serviceCode": "customer-account", "categoryCode": "other-account-issues", "severityCode": "high"}
    return payer.client("support").create_case(subject=subject, communicationBody="please", **case)["caseId"]


def case_of(payer: Cloud, case_id: str, **more: Any) -> dict[str, Any]:
    cases = payer.client("support").describe_cases(caseIdList=[case_id], includeResolvedCases=True, **more)["cases"]
    assert len(cases) == 1
    return cases[0]


def image_of(ec2: Any) -> str:
    images = ec2.describe_images(Owners=[OWNER], Filters=[{"Name": "architecture", "Values": ["x86_64"]}])["Images"]
    return next(i["ImageId"] for i in images if "SAP" not in i["Name"] and "BETA" not in i["Name"])


def launch(ec2: Any, **more: Any) -> dict[str, Any]:
    arguments = {"ImageId": image_of(ec2), "InstanceType": "t3.micro", "MinCount": 1, "MaxCount": 1} | more
    return ec2.run_instances(**arguments)["Instances"][0]


def test_a_case_stays_open_however_often_one_looks(payer: Cloud, emulator: Emulator) -> None:
    emulator.config(case_seconds=3600)
    case_id = open_case(payer)
    seen = {(case["status"], case["severityCode"]) for case in (case_of(payer, case_id) for _ in range(8))}
    assert seen == {("opened", "high")}
    emulator.clock(advance_seconds=3601)
    assert case_of(payer, case_id)["status"] == "resolved"


def test_resolved_cases_are_hidden_unless_asked_for(payer: Cloud) -> None:
    case_id = open_case(payer)
    support = payer.client("support")
    assert support.describe_cases(caseIdList=[case_id])["cases"] == []
    assert case_id not in [case["caseId"] for case in support.describe_cases()["cases"]]
    assert case_of(payer, case_id)["status"] == "resolved"


def test_an_unknown_case_and_too_many_ids_are_errors(payer: Cloud) -> None:
    support = payer.client("support")
    assert error_of(lambda: support.describe_cases(caseIdList=[open_case(payer), "case-unknown"])) == "CaseIdNotFound"
    many = [open_case(payer)] * 101
    assert error_of(lambda: support.describe_cases(caseIdList=many)) == "ValidationException"


def test_a_case_is_resolved_by_hand_or_held_open(payer: Cloud, emulator: Emulator) -> None:
    emulator.config(case_seconds=60)
    resolved, held = open_case(payer), open_case(payer)
    emulator.resolve_case(resolved)
    emulator.hold_case(held)
    assert case_of(payer, resolved)["status"] == "resolved"
    emulator.clock(advance_seconds=3600)
    assert case_of(payer, held)["status"] == "opened"
    with pytest.raises(ControlRefusedError):
        emulator.resolve_case("case-unknown")


def test_too_many_open_cases_are_refused(payer: Cloud, emulator: Emulator) -> None:
    emulator.config(case_seconds=3600, case_limit=sum(c.status != "resolved" for c in emulator.world().cases) + 1)
    first = open_case(payer)
    assert error_of(lambda: open_case(payer)) == "CaseCreationLimitExceeded"
    emulator.resolve_case(first)
    open_case(payer)


def test_cases_are_paged_and_found_by_subject(payer: Cloud, emulator: Emulator) -> None:
    emulator.config(case_seconds=3600)
    opened = {open_case(payer, f"Add account {n}") for n in range(12)}
    pages = list(payer.client("support").get_paginator("describe_cases").paginate(maxResults=10))
    listed = [case["caseId"] for page in pages for case in page["cases"]]
    assert len(pages) > 1
    assert opened <= set(listed)
    assert len(listed) == len(set(listed))


def test_a_quota_request_goes_its_way_and_raises_the_quota(member: Cloud, emulator: Emulator) -> None:
    emulator.config(quota_pending_seconds=60, quota_case_seconds=60)
    quotas = member.client("service-quotas", "eu-west-1")
    assert quotas.get_service_quota(**VCPU)["Quota"]["Value"] == 5
    request = quotas.request_service_quota_increase(**VCPU, DesiredValue=64)["RequestedQuota"]
    again = error_of(lambda: quotas.request_service_quota_increase(**VCPU, DesiredValue=65))
    assert again == "ResourceAlreadyExistsException"

    def status() -> str:
        history = quotas.list_requested_service_quota_change_history_by_quota(**VCPU)["RequestedQuotas"]
        assert [(r["Id"], r["DesiredValue"]) for r in history] == [(request["Id"], 64.0)]
        return history[0]["Status"]

    assert status() == "PENDING"
    emulator.clock(advance_seconds=61)
    assert status() == "CASE_OPENED"
    assert quotas.get_service_quota(**VCPU)["Quota"]["Value"] == 5
    emulator.clock(advance_seconds=60)
    assert status() == "APPROVED"
    assert quotas.get_service_quota(**VCPU)["Quota"]["Value"] == 64
    elsewhere = member.client("service-quotas", "eu-west-2")
    assert elsewhere.get_service_quota(**VCPU)["Quota"]["Value"] == 5


@pytest.mark.parametrize("outcome", ["DENIED", "NOT_APPROVED", "INVALID_REQUEST"])
def test_a_quota_request_can_end_otherwise(member: Cloud, emulator: Emulator, outcome: str) -> None:
    emulator.config(quota_outcomes={"L-1216C47A": outcome})
    quotas = member.client("service-quotas")
    quotas.request_service_quota_increase(**VCPU, DesiredValue=64)
    history = quotas.list_requested_service_quota_change_history_by_quota(**VCPU)["RequestedQuotas"]
    assert history[0]["Status"] == outcome
    assert quotas.get_service_quota(**VCPU)["Quota"]["Value"] == 5


@pytest.mark.parametrize(
    ("service", "code"),
    [
        ("vpc", "L-0EA8095F"),
        ("ec2", "L-1216C47A"),
        ("elasticloadbalancing", "L-69A177A2"),
        ("ec2", "L-0263D0A3"),
        ("vpc", "L-2AEEBF1A"),
        ("ebs", "L-7A658B76"),
        ("iam", "L-FE177D64"),
    ],
)
def test_every_quota_that_a_pool_can_raise_is_known(payer: Cloud, service: str, code: str) -> None:
    quota = payer.client("service-quotas").get_service_quota(ServiceCode=service, QuotaCode=code)["Quota"]
    assert quota["Value"] > 0
    unknown = error_of(
        lambda: payer.client("service-quotas").get_service_quota(ServiceCode=service, QuotaCode="L-00000000")
    )
    assert unknown == "NoSuchResourceException"


def test_a_region_is_opted_in_to_and_then_answers(member: Cloud, emulator: Emulator) -> None:
    emulator.config(region_enable_seconds=60)
    account, region = member.client("account"), "af-south-1"

    def status() -> str:
        return account.get_region_opt_status(RegionName=region)["RegionOptStatus"]

    assert status() == "DISABLED"
    assert error_of(member.client("ec2", region).describe_instances) == "AuthFailure"
    account.enable_region(RegionName=region)
    assert status() == "ENABLING"
    account.enable_region(RegionName=region)
    assert error_of(lambda: account.disable_region(RegionName=region)) == "ConflictException"
    emulator.clock(advance_seconds=61)
    assert status() == "ENABLED"
    member.client("ec2", region).describe_instances()
    enabled = member.client("ec2").describe_regions(Filters=[{"Name": "opt-in-status", "Values": ["opted-in"]}])
    assert [r["RegionName"] for r in enabled["Regions"]] == [region]
    assert error_of(lambda: account.get_region_opt_status(RegionName="xx-east-9")) == "ValidationException"


def test_at_most_six_regions_are_under_way(member: Cloud, emulator: Emulator) -> None:
    emulator.config(region_enable_seconds=60)
    account = member.client("account")
    for region in DEFAULT_OPT_IN_REGIONS[:6]:
        account.enable_region(RegionName=region)
    seventh = error_of(lambda: account.enable_region(RegionName=DEFAULT_OPT_IN_REGIONS[6]))
    assert seventh == "TooManyRequestsException"
    under_way = account.list_regions(RegionOptStatusContains=["ENABLING"])["Regions"]
    assert len(under_way) == 6


def test_describe_regions_lists_enabled_ones_unless_asked_for_all(member: Cloud, emulator: Emulator) -> None:
    ec2 = member.client("ec2")
    assert {r["RegionName"] for r in ec2.describe_regions()["Regions"]} == set(DEFAULT_REGIONS)
    every = ec2.describe_regions(AllRegions=True)["Regions"]
    assert {r["RegionName"] for r in every if r["OptInStatus"] == "not-opted-in"} == set(DEFAULT_OPT_IN_REGIONS)
    emulator.config(regions=["us-east-1", "eu-west-1"])
    assert [r["RegionName"] for r in ec2.describe_regions()["Regions"]] == ["eu-west-1", "us-east-1"]


def test_a_young_account_launches_nothing_until_it_is_verified(payer: Cloud, emulator: Emulator) -> None:
    emulator.config(verification_seconds=600, activation_seconds=60)
    ec2 = payer.in_account(payer.new_account()).client("ec2")
    assert error_of(ec2.describe_regions) == "OptInRequired"
    emulator.clock(advance_seconds=61)
    ec2.describe_regions()
    assert error_of(lambda: launch(ec2)) == "PendingVerification"
    emulator.config(verification_error="OptInRequired")
    assert error_of(lambda: launch(ec2)) == "OptInRequired"
    emulator.clock(advance_seconds=600)
    launch(ec2)


def test_a_launch_is_idempotent_by_its_token(member: Cloud, emulator: Emulator) -> None:
    ec2 = member.client("ec2")
    first, second = (launch(ec2, ClientToken="token-1")["InstanceId"] for _ in range(2))
    assert first == second
    other = error_of(lambda: launch(ec2, ClientToken="token-1", InstanceType="t2.micro"))
    assert other == "IdempotentParameterMismatch"
    assert launch(ec2, ClientToken="token-2")["InstanceId"] != first
    account = member.client("sts").get_caller_identity()["Account"]
    assert len([i for i in emulator.world().instances if i.account == account]) == 2


def test_an_instance_is_pending_for_the_chosen_time(member: Cloud, emulator: Emulator) -> None:
    emulator.config(run_instances_seconds=30)
    ec2 = member.client("ec2")
    instance = launch(ec2)["InstanceId"]

    def states() -> list[str]:
        found = ec2.describe_instance_status(InstanceIds=[instance], IncludeAllInstances=True)["InstanceStatuses"]
        return [status["InstanceState"]["Name"] for status in found]

    assert states() == ["pending"]
    assert ec2.describe_instance_status(InstanceIds=[instance])["InstanceStatuses"] == []
    emulator.clock(advance_seconds=31)
    assert states() == ["running"]
    ec2.terminate_instances(InstanceIds=[instance])
    assert instance not in [i.id for i in emulator.world().instances]


def test_a_hundred_instances_at_most_report_their_status_at_once(member: Cloud) -> None:
    ec2, ids = member.client("ec2"), [f"i-{number:017x}" for number in range(101)]
    assert error_of(lambda: ec2.describe_instance_status(InstanceIds=ids)) == "InvalidParameterValue"


def test_images_of_red_hat_exist_in_every_region_under_ids_of_their_own(member: Cloud) -> None:
    ids = set()
    for region in DEFAULT_REGIONS:
        ec2 = member.client("ec2", region)
        images = ec2.describe_images(Owners=[OWNER], ExecutableUsers=["all"])["Images"]
        assert {i["Architecture"] for i in images} == {"x86_64", "arm64"}
        assert any("SAP" in i["Name"] for i in images)
        assert any("BETA" in i["Name"] for i in images)
        ids.add(image_of(ec2))
    assert len(ids) == len(DEFAULT_REGIONS)
    elsewhere = image_of(member.client("ec2", "eu-west-1"))
    assert error_of(lambda: launch(member.client("ec2"), ImageId=elsewhere)) == "InvalidAMIID.NotFound"


def test_a_region_can_lack_t3_micro(member: Cloud, emulator: Emulator) -> None:
    emulator.config(regions_without_t3_micro=["eu-west-1"])
    ec2 = member.client("ec2", "eu-west-1")
    assert error_of(lambda: ec2.describe_instance_types(InstanceTypes=["t3.micro"])) == "InvalidInstanceType"
    assert len(ec2.describe_instance_types(InstanceTypes=["t2.micro"])["InstanceTypes"]) == 1
    assert error_of(lambda: launch(ec2)) == "Unsupported"
    launch(ec2, InstanceType="t2.micro")
    member.client("ec2").describe_instance_types(InstanceTypes=["t3.micro"])


def test_own_snapshots_are_selected_by_owner(member: Cloud) -> None:
    ec2 = member.client("ec2")
    assert ec2.describe_snapshots(OwnerIds=["self"])["Snapshots"] == []
    volume = ec2.create_volume(AvailabilityZone="us-east-1a", Size=1)["VolumeId"]
    snapshot = ec2.create_snapshot(VolumeId=volume)["SnapshotId"]
    assert [s["SnapshotId"] for s in ec2.describe_snapshots(OwnerIds=["self"])["Snapshots"]] == [snapshot]
    assert ec2.describe_snapshots(OwnerIds=["amazon"])["Snapshots"] == []
    assert ec2.describe_snapshots(Filters=[{"Name": "owner-alias", "Values": ["self"]}])["Snapshots"] == []
    ec2.delete_snapshot(SnapshotId=snapshot)


def test_the_world_shows_what_a_clean_up_has_to_find(member: Cloud, emulator: Emulator) -> None:
    account = member.client("sts").get_caller_identity()["Account"]
    member.client("ec2", "eu-west-1").create_volume(AvailabilityZone="eu-west-1a", Size=1)
    member.client("s3").create_bucket(Bucket=f"bucket-{account}")
    member.client("route53").create_hosted_zone(Name="example.com.", CallerReference="1")
    world = emulator.world()

    def of(records: Any) -> list[str]:
        return [record.region for record in records if record.account == account]

    assert of(world.volumes) == ["eu-west-1"]
    assert [b.id for b in world.buckets if b.account == account] == [f"bucket-{account}"]
    assert len(of(world.hosted_zones)) == 1
    assert of(world.snapshots) == []
    assert [r.name for r in world.roles if r.account == account] == ["OrganizationAccountAccessRole"]


def test_a_versioned_bucket_is_not_deleted_while_it_has_versions(member: Cloud) -> None:
    s3 = member.client("s3")
    bucket = "versions-" + member.client("sts").get_caller_identity()["Account"]
    s3.create_bucket(Bucket=bucket)
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    s3.put_object(Bucket=bucket, Key="folder/key", Body=b"x" * 100_000)
    s3.delete_object(Bucket=bucket, Key="folder/key")
    assert error_of(lambda: s3.delete_bucket(Bucket=bucket)) == "BucketNotEmpty"
    listed = s3.list_object_versions(Bucket=bucket)
    for entry in [*listed["Versions"], *listed["DeleteMarkers"]]:
        s3.delete_object(Bucket=bucket, Key=entry["Key"], VersionId=entry["VersionId"])
    s3.delete_bucket(Bucket=bucket)
