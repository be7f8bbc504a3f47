"""The clean-up of a released account, against answers that the emulator does not give."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from account_objects import AWS_ID
from temporalio.testing import ActivityEnvironment

from activities.aws.account_cleanup import clean_global, clean_region
from activities.aws.session import Sessions
from domain.accounts.actions.account_cleanup import Cleaned, CleanGlobal, CleanRegion
from engine.errors import Conflict, Denied, Invalid


class Tenant:
    """A released account as its session, and as every client of it. The listings are by boto's operation names."""

    def __init__(self, **listed: list[dict[str, Any]]) -> None:
        self.listed = {"list_buckets": [{}], **listed}

    def confirmed(self, *_: str) -> Tenant:
        return self

    def ec2(self, _: str = "") -> Tenant:
        return self

    route53 = s3 = ec2

    def get_paginator(self, operation: str) -> Any:
        empty = {"Reservations": [], "Snapshots": [], "Volumes": [], "ServiceConfigurations": [], "Images": []}
        pages = self.listed.get(operation, [{**empty, "HostedZones": []}])
        return SimpleNamespace(paginate=lambda **asked: self.pages(operation, pages, asked))

    def pages(self, _operation: str, pages: list[dict[str, Any]], _asked: dict[str, Any]) -> list[dict[str, Any]]:
        return pages

    def clean_region(self) -> Cleaned:
        action = CleanRegion(account_id=AWS_ID, region="us-east-1")
        return ActivityEnvironment().run(clean_region, cast("Sessions", self), action)

    def clean_global(self) -> Cleaned:
        action = CleanGlobal(account_id=AWS_ID, region="us-east-1")
        return ActivityEnvironment().run(clean_global, cast("Sessions", self), action)


class Protecting(Tenant):
    """An account with an instance that has these protections."""

    def __init__(self, *protections: str) -> None:
        super().__init__()
        self.protections = {*protections}
        self.living = ["i-1"]

    def pages(self, operation: str, pages: list[dict[str, Any]], _asked: dict[str, Any]) -> list[dict[str, Any]]:
        if operation != "describe_instances":
            return pages
        return [
            {"Reservations": [{"Instances": [{"InstanceId": i, "State": {"Name": "running"}} for i in self.living]}]}
        ]

    def modify_instance_attribute(self, **attributes: object) -> None:
        (attribute,) = attributes.keys() - {"InstanceId"}
        if attribute == "DisableApiStop" and attribute not in self.protections:
            raise Invalid("an instance without EBS has no such protection", code="UnsupportedOperation")
        self.protections.discard(attribute)

    def terminate_instances(self, **_: object) -> None:
        if self.protections:
            raise Denied(f"modify its {self.protections} and try again", code="OperationNotPermitted")
        self.living = []


@pytest.mark.parametrize(
    "protections", [("DisableApiStop",), ("DisableApiTermination",), ("DisableApiStop", "DisableApiTermination")]
)
def test_a_protected_instance_is_terminated(protections: tuple[str, ...]) -> None:
    account = Protecting(*protections)
    assert account.clean_region().report == "deleted 1 instance"
    assert account.living == []


class WithDisabledImage(Tenant):
    """An account with a disabled image, which EC2 lists only on request, and the image's snapshot."""

    def __init__(self) -> None:
        super().__init__(describe_snapshots=[{"Snapshots": [{"SnapshotId": "snap-1", "OwnerId": AWS_ID}]}])
        self.images = ["ami-1"]

    def pages(self, operation: str, pages: list[dict[str, Any]], asked: dict[str, Any]) -> list[dict[str, Any]]:
        if operation != "describe_images":
            return pages
        return [{"Images": [{"ImageId": image} for image in self.images if asked.get("IncludeDisabled")]}]

    def deregister_image(self, **_: object) -> None:
        self.images = []

    def delete_snapshot(self, **_: object) -> None:
        if self.images:
            raise Conflict("in use by ami-1", code="InvalidSnapshot.InUse")


def test_the_snapshot_of_a_disabled_image_is_deleted() -> None:
    assert WithDisabledImage().clean_region().report == "deleted 1 image, 1 snapshot"


class WithZone(Tenant):
    """An account with a hosted zone; Route 53 accepts at most 1,000 values and 32,000 characters in a change."""

    def __init__(self, records: list[list[str]]) -> None:
        super().__init__(
            list_hosted_zones=[{"HostedZones": [{"Id": "Z1", "Name": "z."}]}],
            list_resource_record_sets=[
                {
                    "ResourceRecordSets": [
                        {"Name": f"r{n}.z.", "Type": "TXT", "ResourceRecords": [{"Value": value} for value in values]}
                        for n, values in enumerate(records)
                    ]
                }
            ],
        )
        self.records = len(records)

    def change_resource_record_sets(self, ChangeBatch: dict[str, Any], **_: object) -> None:  # noqa: N803 - boto's
        changes = [change["ResourceRecordSet"] for change in ChangeBatch["Changes"]]
        values = [item["Value"] for record in changes for item in record["ResourceRecords"]]
        if len(values) > 1000 or sum(map(len, values)) > 32000:
            raise Invalid("too large", code="InvalidChangeBatch")
        self.records -= len(changes)

    def delete_hosted_zone(self, **_: object) -> None:
        if self.records:
            raise Conflict("it has records", code="HostedZoneNotEmpty")


@pytest.mark.parametrize(
    "records", [[["10.0.0.1"] * 40] * 60, [["x" * 400]] * 100, [["x" * 255] * 400] * 2, [["x" * 31999]], [["x"]] * 250]
)
def test_a_zone_with_many_or_long_values_is_deleted(records: list[list[str]]) -> None:
    records = [values[: 32000 // len(values[0])] for values in records]
    assert WithZone(records).clean_global().report == "deleted 1 hosted zone"


class WithLockedObject(Tenant):
    """An account with a bucket whose object is locked in governance mode."""

    def __init__(self) -> None:
        super().__init__(
            list_buckets=[{"Buckets": [{"Name": "b"}]}],
            list_multipart_uploads=[{}],
            list_object_versions=[{"Versions": [{"Key": "k", "VersionId": "v"}]}],
        )
        self.bypassed = False

    def get_bucket_location(self, **_: object) -> dict[str, str]:
        return {}

    def delete_objects(self, Delete: dict[str, Any], **more: object) -> dict[str, Any]:  # noqa: N803 - boto's
        self.bypassed |= "BypassGovernanceRetention" in more
        return {"Errors": [{**each, "Code": "AccessDenied", "Message": "locked"} for each in Delete["Objects"]]}


def test_a_locked_object_is_kept_and_reported() -> None:
    account = WithLockedObject()
    with pytest.raises(Conflict) as left:
        account.clean_global()
    assert "bucket b: 1 objects could not be deleted, e.g. k: AccessDenied: locked" in left.value.message
    assert not account.bypassed


class WithEndpointService(Tenant):
    """An account with an endpoint service, whose deletion is answered without a list of failures."""

    def __init__(self) -> None:
        super().__init__(
            describe_vpc_endpoint_service_configurations=[{"ServiceConfigurations": [{"ServiceId": "vpce-svc-1"}]}]
        )

    def delete_vpc_endpoint_service_configurations(self, **_: object) -> dict[str, Any]:
        return {}


def test_an_answer_without_a_list_of_failures_is_a_success() -> None:
    assert WithEndpointService().clean_region().report == "deleted 1 endpoint service"


class Scaling(Protecting):
    """An account in which another instance is launched for each one that ends."""

    def terminate_instances(self, InstanceIds: list[str], **_: object) -> None:  # noqa: N803 - boto's
        self.living = [f"{instance}0" for instance in InstanceIds]


def test_instances_that_come_back_are_reported_for_a_person() -> None:
    with pytest.raises(Conflict) as left:
        Scaling().clean_region()
    assert "instance i-10: it was launched during the clean-up" in left.value.message
