"""What a tenant left is gone after the release, in its account only, whatever is interrupted or refused."""

from __future__ import annotations

from datetime import timedelta

import pytest
from aws_lab import REGION, Lab, marks

from activities.aws.account_cleanup import own_record
from domain.accounts.actions.account_cleanup import CleanGlobal, CleanRegion
from domain.accounts.actions.region_initialization import EndLaunches
from domain.accounts.iam_and_instance_tags import REGION_INIT_TAG_NAME
from engine.errors import Conflict, Denied, Unavailable
from localcloud.aws.contract import InstanceRecord, ResourceRecord
from localcloud.instance_groups import image_of

pytestmark = pytest.mark.integration

ELSEWHERE = "eu-west-1"


def region(account_id: str, name: str = REGION) -> CleanRegion:
    return CleanRegion(account_id=account_id, region=name)


def everywhere(account_id: str) -> CleanGlobal:
    return CleanGlobal(account_id=account_id, region=REGION)


def launch(lab: Lab, account_id: str, **more: object) -> str:
    ec2 = lab.tenants_ec2(account_id)
    return ec2.run_instances(ImageId=image_of(ec2), MinCount=1, MaxCount=1, **more)["Instances"][0]["InstanceId"]  # type: ignore[arg-type]


def left(lab: Lab, account_id: str) -> dict[str, int]:
    """How much of each kind the account still has."""
    world = lab.emulator.world()
    kinds: dict[str, tuple[InstanceRecord, ...] | tuple[ResourceRecord, ...]] = {
        "instances": world.instances,
        "volumes": world.volumes,
        "snapshots": world.snapshots,
        "endpoint services": world.endpoint_services,
        "buckets": world.buckets,
        "zones": world.hosted_zones,
    }
    counts = {kind: sum(item.account == account_id for item in items) for kind, items in kinds.items()}
    return {kind: count for kind, count in counts.items() if count}


def test_an_empty_account_costs_six_calls(lab: Lab) -> None:
    account_id, _ = lab.account()
    lab.sessions.member(account_id).confirm()
    lab.emulator.reset_ledger()
    assert lab.run(lab.activities.clean_region, region(account_id)).report == "nothing was left"
    assert lab.run(lab.activities.clean_global, everywhere(account_id)).report == "nothing was left"
    assert lab.emulator.ledger().total() == 6


def test_a_tenants_region_is_emptied(lab: Lab) -> None:
    account_id, _ = lab.account()
    ec2 = lab.tenants_ec2(account_id)
    instance = launch(lab, account_id, DisableApiTermination=True)
    launch(lab, account_id)
    volume = ec2.create_volume(AvailabilityZone=f"{REGION}a", Size=1)["VolumeId"]
    ec2.create_volume(AvailabilityZone=f"{REGION}a", Size=1)
    ec2.attach_volume(InstanceId=instance, VolumeId=volume, Device="/dev/sdf")
    ec2.create_snapshot(VolumeId=volume)
    ec2.create_image(InstanceId=instance, Name="theirs")
    report = lab.run(lab.activities.clean_region, region(account_id)).report
    assert left(lab, account_id) == {}
    assert "2 instances" in report
    assert ec2.describe_images(Owners=[account_id])["Images"] == []


def test_of_a_launch_that_was_cut_short_nothing_goes_but_what_carries_our_marks(lab: Lab) -> None:
    account_id, name = lab.account()
    ec2 = lab.tenants_ec2(account_id)
    theirs = launch(lab, account_id)
    ec2.create_snapshot(VolumeId=ec2.create_volume(AvailabilityZone=f"{REGION}a", Size=1)["VolumeId"])
    before = left(lab, account_id)
    ours = [{"Key": key, "Value": value} for key, value in {**marks(name), "Name": REGION_INIT_TAG_NAME}.items()]
    launch(lab, account_id, TagSpecifications=[{"ResourceType": "instance", "Tags": ours}])
    lab.run(lab.activities.end_launches, EndLaunches(account_id=account_id, region=REGION, tags=marks(name)))
    assert [instance.id for instance in lab.instances(account_id)] == [theirs]
    assert left(lab, account_id) == before


def test_other_accounts_and_other_regions_are_left_alone(lab: Lab) -> None:
    account_id, _ = lab.account()
    other, _ = lab.account()
    for tenant, place in ((account_id, REGION), (account_id, ELSEWHERE), (other, REGION)):
        lab.tenants_ec2(tenant, place).create_volume(AvailabilityZone=f"{place}a", Size=1)
    lab.run(lab.activities.clean_region, region(account_id))
    places = {(item.account, item.region) for item in lab.emulator.world().volumes}
    assert (account_id, REGION) not in places
    assert {(account_id, ELSEWHERE), (other, REGION)} <= places


def test_an_endpoint_service_is_deleted(lab: Lab) -> None:
    account_id, _ = lab.account()
    ec2 = lab.tenants_ec2(account_id)
    subnet = ec2.describe_subnets()["Subnets"][0]["SubnetId"]
    elb = lab.sessions.member(account_id).client("elbv2", REGION)
    made = elb.create_load_balancer(Name="theirs", Type="network", Subnets=[subnet])  # type: ignore[attr-defined]
    balancer = made["LoadBalancers"][0]["LoadBalancerArn"]
    ec2.create_vpc_endpoint_service_configuration(NetworkLoadBalancerArns=[balancer])
    assert lab.run(lab.activities.clean_region, region(account_id)).report == "deleted 1 endpoint service"
    assert left(lab, account_id) == {}


def test_buckets_go_with_every_version_upload_and_region(lab: Lab) -> None:
    account_id, name = lab.account()
    member = lab.sessions.member(account_id)
    member.s3().create_bucket(Bucket=f"{name}-a")
    far = member.s3(ELSEWHERE)
    far.create_bucket(Bucket=f"{name}-b", CreateBucketConfiguration={"LocationConstraint": ELSEWHERE})  # type: ignore[typeddict-item]
    far.put_bucket_versioning(Bucket=f"{name}-b", VersioningConfiguration={"Status": "Enabled"})
    for content in (b"1", b"2"):
        far.put_object(Bucket=f"{name}-b", Key="x", Body=content)
    far.delete_object(Bucket=f"{name}-b", Key="x")
    far.create_multipart_upload(Bucket=f"{name}-b", Key="half")
    report = lab.run(lab.activities.clean_global, everywhere(account_id)).report
    assert report == "deleted 2 buckets"
    assert left(lab, account_id) == {}


@pytest.mark.complete
def test_a_bucket_of_more_than_a_page_is_emptied(lab: Lab) -> None:
    account_id, name = lab.account()
    s3 = lab.sessions.member(account_id).s3()
    s3.create_bucket(Bucket=name)
    for number in range(1003):
        s3.put_object(Bucket=name, Key=f"k{number}", Body=b"")
    lab.run(lab.activities.clean_global, everywhere(account_id))
    assert left(lab, account_id) == {}


def test_hosted_zones_go_with_their_records_and_delegations(lab: Lab) -> None:
    account_id, name = lab.account()
    route53 = lab.sessions.member(account_id).route53()
    zone = route53.create_hosted_zone(Name=f"{name}.example.com", CallerReference=name)["HostedZone"]["Id"]
    for kind, prefix, value in (("A", "www", "10.0.0.1"), ("NS", "sub", "ns.example.com"), ("TXT", "t", '"x"')):
        record = {
            "Name": f"{prefix}.{name}.example.com",
            "Type": kind,
            "TTL": 60,
            "ResourceRecords": [{"Value": value}],
        }
        batch = {"Changes": [{"Action": "CREATE", "ResourceRecordSet": record}]}
        route53.change_resource_record_sets(HostedZoneId=zone, ChangeBatch=batch)  # type: ignore[arg-type]
    assert lab.run(lab.activities.clean_global, everywhere(account_id)).report == "deleted 1 hosted zone"
    assert left(lab, account_id) == {}


def test_only_the_zones_own_records_stay_for_its_deletion() -> None:
    records = [("NS", "z."), ("SOA", "z."), ("NS", "sub.z."), ("A", "z.")]
    own = [own_record({"Type": kind, "Name": name}, "z.") for kind, name in records]  # type: ignore[typeddict-item]
    assert own == [True, True, False, False]


def test_a_refusal_stops_no_other_deletion_and_is_reported(lab: Lab) -> None:
    account_id, _ = lab.account()
    ec2 = lab.tenants_ec2(account_id)
    remaining = ec2.create_volume(AvailabilityZone=f"{REGION}a", Size=1)["VolumeId"]
    gone = ec2.create_volume(AvailabilityZone=f"{REGION}a", Size=1)["VolumeId"]
    lab.emulator.fault("ec2", "DeleteVolume", kind="denied", containing=remaining)
    with pytest.raises(Conflict) as refused:
        lab.run(lab.activities.clean_region, region(account_id))
    assert refused.value.code == "NotClean"
    assert remaining in str(refused.value)
    assert gone not in str(refused.value)
    assert left(lab, account_id) == {"volumes": 1}
    lab.emulator.clear()
    lab.run(lab.activities.clean_region, region(account_id), attempt=2)
    assert left(lab, account_id) == {}


def test_a_kind_that_cannot_be_listed_stops_no_other(lab: Lab) -> None:
    account_id, name = lab.account()
    lab.sessions.member(account_id).route53().create_hosted_zone(Name=f"{name}.org", CallerReference=name)
    lab.emulator.fault("s3", "ListBuckets", kind="denied")
    with pytest.raises(Conflict):
        lab.run(lab.activities.clean_global, everywhere(account_id))
    assert left(lab, account_id) == {}


@pytest.mark.parametrize("kind", ["before", "after", "throttle"])
@pytest.mark.parametrize("operation", ["DeleteVolume", "DeleteSnapshot", "TerminateInstances"])
def test_a_passing_refusal_is_retried_and_then_succeeds(lab: Lab, operation: str, kind: str) -> None:
    account_id, _ = lab.account()
    ec2 = lab.tenants_ec2(account_id)
    launch(lab, account_id)
    volume = ec2.create_volume(AvailabilityZone=f"{REGION}a", Size=1)["VolumeId"]
    ec2.create_snapshot(VolumeId=volume)
    lab.emulator.fault("ec2", operation, kind=kind, count=1)
    try:
        lab.run(lab.activities.clean_region, region(account_id))
    except Unavailable:
        lab.run(lab.activities.clean_region, region(account_id), attempt=2)
    assert left(lab, account_id) == {}


def test_a_region_that_is_not_enabled_holds_nothing(lab: Lab) -> None:
    account_id, name = lab.account()
    lab.emulator.fault("ec2", "DescribeInstances", kind="error", code="AuthFailure", region="me-south-1")
    assert "not enabled" in lab.run(lab.activities.clean_region, region(account_id, "me-south-1")).report
    lab.run(lab.activities.end_launches, EndLaunches(account_id=account_id, region="me-south-1", tags=marks(name)))


@pytest.mark.parametrize("hostile", ["", "no region", "../../x", "a" * 300])
def test_a_region_that_cannot_exist_holds_nothing(lab: Lab, hostile: str) -> None:
    account_id, _ = lab.account()
    assert "not enabled" in lab.run(lab.activities.clean_region, region(account_id, hostile)).report


def test_a_usable_region_that_does_not_answer_is_not_taken_for_clean(lab: Lab) -> None:
    account_id, _ = lab.account()
    lab.emulator.fault("ec2", "DescribeInstances", kind="before")
    with pytest.raises(Unavailable):
        lab.run(lab.activities.clean_region, region(account_id))


def test_the_payer_is_never_cleaned(lab: Lab) -> None:
    for effect, action in (
        (lab.activities.clean_region, region("123456789012")),
        (lab.activities.clean_global, everywhere("123456789012")),
    ):
        with pytest.raises(Denied) as refused:
            lab.run(effect, action, age=timedelta(hours=1))  # type: ignore[arg-type]
        assert refused.value.code == "ProtectedAccount"
    assert lab.calls("sts", "AssumeRole") == 0


def test_a_session_in_another_account_deletes_nothing(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    account_id, _ = lab.account()
    other, _ = lab.account()
    member = lab.sessions.member(account_id)
    lab.tenants_ec2(other).create_volume(AvailabilityZone=f"{REGION}a", Size=1)
    monkeypatch.setattr(member, "assume", lab.sessions.member(other).credential)
    member.refused(member.credential(), Denied("", code="ExpiredToken"))
    with pytest.raises(Denied) as refused:
        lab.run(lab.activities.clean_region, region(account_id))
    assert refused.value.code == "IdentityMismatch"
    assert left(lab, other) == {"volumes": 1}
