"""Deletes a released account's instances, storage, endpoint services and hosted zones, in the order of dependencies.

They are deleted regardless of who created them. An object that cannot be deleted does not stop the rest: at the end the
activity fails and lists such objects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from activities import attempt
from activities.aws.error_codes import error_class
from activities.aws.session import Member, Sessions
from activities.aws.usable_regions import usable_regions
from domain.accounts.actions.account_cleanup import Cleaned, CleanGlobal, CleanRegion
from domain.refusal import RETRIED_BY_SERVER
from engine.errors import Absent, ApiError, Conflict, Denied, Invalid, Pending, Unavailable

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client
    from mypy_boto3_ec2.type_defs import ModifyInstanceAttributeRequestTypeDef, UnsuccessfulItemErrorTypeDef
    from mypy_boto3_route53.client import Route53Client
    from mypy_boto3_route53.type_defs import ChangeTypeDef, ResourceRecordSetOutputTypeDef
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_s3.type_defs import ErrorTypeDef, ObjectIdentifierTypeDef

T = TypeVar("T")

NOT_CLEAN = "NotClean"

_ENDING_SECONDS = (0.5, 1, 2, 3, 5, *([10] * 60))  # ten minutes for instances to terminate
_DETACHING_SECONDS = (0, 1, 2, 5, 10, 20, 30)  # a volume stays attached a little longer than its instance runs
_INSTANCES_PER_CALL = 100
_RECORDS_PER_CHANGE = 100
_VALUES_PER_CHANGE = 1000  # Route 53's limits
_CHARACTERS_PER_CHANGE = 32000
_BUCKET_ROUNDS = 3
_MOST_NAMED = 10
_PROTECTED_INSTANCE = "OperationNotPermitted"
_CONNECTED = "ExistingVpcEndpointConnections"


def clean_region(sessions: Sessions, action: CleanRegion) -> Cleaned:
    member = sessions.confirmed(action.account_id, action.partition)
    sweep = Sweep(f"account {action.account_id}, {action.region}")
    try:
        ec2 = member.ec2(action.region)
        ended = _end_instances(ec2, sweep)
    except (Denied, Invalid, Pending, Unavailable):
        if action.region in usable_regions(member):
            raise
        return Cleaned(report=f"{action.region} is not enabled in the account")
    with sweep.category("snapshots"):
        _delete_snapshots(ec2, sweep, action.account_id)
    with sweep.category("volumes"):
        _delete_volumes(ec2, sweep, patient=ended)
    with sweep.category("endpoint services"):
        _delete_endpoint_services(ec2, sweep)
    return sweep.finished()


def clean_global(sessions: Sessions, action: CleanGlobal) -> Cleaned:
    member = sessions.confirmed(action.account_id, action.partition)
    sweep = Sweep(f"account {action.account_id}")
    with sweep.category("buckets"):
        _delete_buckets(member, sweep)
    with sweep.category("hosted zones"):
        _delete_hosted_zones(member.route53(), sweep)
    return sweep.finished()


class Left(NamedTuple):
    kind: str
    name: str
    error: ApiError


class Sweep:
    def __init__(self, where: str) -> None:
        self._where = where
        self._deleted: Counter[str] = Counter()
        self._left: list[Left] = []

    @contextmanager
    def removing(self, kind: str, name: str) -> Iterator[None]:
        attempt.checkpoint()
        try:
            yield
        except Absent:
            return
        except ApiError as error:
            self._left.append(Left(kind, name, error))
        else:
            self._deleted[kind] += 1

    @contextmanager
    def category(self, kinds: str) -> Iterator[None]:
        try:
            yield
        except ApiError as error:
            self._left.append(Left(kinds, "all", error))

    def leave(self, kind: str, name: str, error: ApiError) -> None:
        self._left.append(Left(kind, name, error))

    def count(self, kind: str, number: int) -> None:
        self._deleted[kind] += number

    def names_left(self, kind: str) -> frozenset[str]:
        return frozenset(item.name for item in self._left if item.kind == kind)

    def try_again(self, kind: str) -> None:
        self._left = [item for item in self._left if item.kind != kind]

    def finished(self) -> Cleaned:
        """Raises Unavailable if a retry may delete what is left, Conflict if a person has to check it."""
        if self._left:
            named = "; ".join(f"{item.kind} {item.name}: {item.error.message}" for item in self._left[:_MOST_NAMED])
            more = f"; and {len(self._left) - _MOST_NAMED} more" if len(self._left) > _MOST_NAMED else ""
            message = f"{self._where}: {len(self._left)} not deleted. {named}{more}"
            if all(item.error.type in RETRIED_BY_SERVER for item in self._left):
                raise Unavailable(message, code=self._left[0].error.code, delay=attempt.growing((5, 15, 30, 60)))
            raise Conflict(message, code=NOT_CLEAN)
        deleted = sorted(self._deleted.items())
        counted = ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in deleted)
        return Cleaned(report=f"deleted {counted}" if counted else "nothing was left")


def _end_instances(ec2: EC2Client, sweep: Sweep) -> bool:
    states = _instance_states(ec2)
    if not states:
        return False
    living = [instance for instance, state in states.items() if state != "shutting-down"]
    for some in _chunks(living, _INSTANCES_PER_CALL):
        try:
            attempt.checkpoint()
            ec2.terminate_instances(InstanceIds=some)
        except ApiError:
            # One instance may make AWS refuse the whole call, so each is terminated by a call of its own.
            for instance in some:
                with sweep.removing("instance", instance):
                    _terminate(ec2, instance)
        else:
            sweep.count("instance", len(some))
    refused = sweep.names_left("instance")
    for seconds in _ENDING_SECONDS:
        left = set(_instance_states(ec2)) - refused
        if not left & states.keys():
            break
        attempt.pause(seconds)
    for instance in left:
        if instance in states:
            error: ApiError = Unavailable("it has not terminated within ten minutes", code="StillEnding")
        else:
            error = Conflict("it was launched during the clean-up, perhaps by an Auto Scaling group", code="Relaunched")
        sweep.leave("instance", instance, error)
    return True


def _terminate(ec2: EC2Client, instance: str) -> None:
    # Either protection makes EC2 refuse the termination. The second is removed only if necessary, because not every
    # instance supports it.
    unprotected: list[ModifyInstanceAttributeRequestTypeDef] = [
        {"InstanceId": instance, "DisableApiTermination": {"Value": False}},
        {"InstanceId": instance, "DisableApiStop": {"Value": False}},
    ]
    for change in unprotected:
        try:
            ec2.terminate_instances(InstanceIds=[instance])
        except Denied as error:
            if error.code != _PROTECTED_INSTANCE:
                raise
            ec2.modify_instance_attribute(**change)
        else:
            return
    ec2.terminate_instances(InstanceIds=[instance])


def _instance_states(ec2: EC2Client) -> dict[str, str]:
    states = ["pending", "running", "stopping", "stopped", "shutting-down"]
    pages = ec2.get_paginator("describe_instances").paginate(
        Filters=[{"Name": "instance-state-name", "Values": states}]
    )
    return {
        instance["InstanceId"]: instance["State"]["Name"]
        for page in pages
        for reservation in page["Reservations"]
        for instance in reservation["Instances"]
    }


def _delete_snapshots(ec2: EC2Client, sweep: Sweep, account_id: str) -> None:
    """The replaced operator's filter `owner-alias` matches only Amazon's snapshots, so the account's id is used."""
    pages = ec2.get_paginator("describe_snapshots").paginate(OwnerIds=[account_id])
    found = [item["SnapshotId"] for page in pages for item in page["Snapshots"] if item["OwnerId"] == account_id]
    if not found:
        return
    _deregister_images(ec2, sweep, account_id)
    for snapshot in found:
        with sweep.removing("snapshot", snapshot):
            ec2.delete_snapshot(SnapshotId=snapshot)


def _deregister_images(ec2: EC2Client, sweep: Sweep, account_id: str) -> None:
    pages = ec2.get_paginator("describe_images").paginate(Owners=[account_id], IncludeDisabled=True)
    for image in [item["ImageId"] for page in pages for item in page["Images"]]:
        with sweep.removing("image", image):
            ec2.deregister_image(ImageId=image)


def _delete_volumes(ec2: EC2Client, sweep: Sweep, *, patient: bool) -> None:
    for seconds in _DETACHING_SECONDS if patient else (0,):
        if seconds:
            attempt.pause(seconds)
        sweep.try_again("volume")
        for volume in _volumes(ec2):
            with sweep.removing("volume", volume):
                ec2.delete_volume(VolumeId=volume)
        if not sweep.names_left("volume"):
            return


def _volumes(ec2: EC2Client) -> list[str]:
    pages = ec2.get_paginator("describe_volumes").paginate()
    found = (item for page in pages for item in page["Volumes"])
    return [item["VolumeId"] for item in found if item["State"] not in ("deleting", "deleted")]


def _delete_endpoint_services(ec2: EC2Client, sweep: Sweep) -> None:
    pages = ec2.get_paginator("describe_vpc_endpoint_service_configurations").paginate()
    services = [item["ServiceId"] for page in pages for item in page["ServiceConfigurations"]]
    for service in services:
        with sweep.removing("endpoint service", service):
            _delete_endpoint_service(ec2, service)


def _delete_endpoint_service(ec2: EC2Client, service: str) -> None:
    """Raises an ApiError also if AWS's call succeeds but lists the service as unsuccessful."""
    error = _deletion_error(ec2, service)
    if error is not None and error.code == _CONNECTED:
        _reject_connections(ec2, service)
        error = _deletion_error(ec2, service)
    if error is not None:
        raise error


def _reject_connections(ec2: EC2Client, service: str) -> None:
    pages = ec2.get_paginator("describe_vpc_endpoint_connections").paginate(
        Filters=[{"Name": "service-id", "Values": [service]}]
    )
    endpoints = [item["VpcEndpointId"] for page in pages for item in page["VpcEndpointConnections"]]
    if endpoints:
        ec2.reject_vpc_endpoint_connections(ServiceId=service, VpcEndpointIds=endpoints)


def _deletion_error(ec2: EC2Client, service: str) -> ApiError | None:
    answer = ec2.delete_vpc_endpoint_service_configurations(ServiceIds=[service])
    for item in answer.get("Unsuccessful", []):
        return _listed_error(item.get("Error", {}))
    return None


def _delete_buckets(member: Member, sweep: Sweep) -> None:
    for bucket in _buckets(member.s3()):
        with sweep.removing("bucket", bucket):
            _delete_bucket(_client_of(member, bucket), bucket)


def _buckets(s3: S3Client) -> list[str]:
    return [item["Name"] for page in s3.get_paginator("list_buckets").paginate() for item in page.get("Buckets", [])]


def _client_of(member: Member, bucket: str) -> S3Client:
    """GetBucketLocation reports us-east-1 as null, and may report eu-west-1 as EU."""
    location = member.s3().get_bucket_location(Bucket=bucket).get("LocationConstraint")
    return member.s3("eu-west-1" if location == "EU" else location or "us-east-1")


def _delete_bucket(s3: S3Client, bucket: str) -> None:
    """A few attempts are made, because logs and replication may still write to the bucket."""
    for _ in range(_BUCKET_ROUNDS - 1):
        _empty_bucket(s3, bucket)
        try:
            s3.delete_bucket(Bucket=bucket)
        except Conflict as error:
            if error.code != "BucketNotEmpty":
                raise
        else:
            return
    _empty_bucket(s3, bucket)
    s3.delete_bucket(Bucket=bucket)


def _empty_bucket(s3: S3Client, bucket: str) -> None:
    for uploads in s3.get_paginator("list_multipart_uploads").paginate(Bucket=bucket):
        for upload in uploads.get("Uploads", []):
            attempt.checkpoint()
            with suppress(Absent):
                s3.abort_multipart_upload(Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])
    refused, example = 0, None
    for versions in s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
        attempt.checkpoint()
        found = [*versions.get("Versions", []), *versions.get("DeleteMarkers", [])]
        if found:
            objects: list[ObjectIdentifierTypeDef] = [
                {"Key": item["Key"], "VersionId": item["VersionId"]} for item in found
            ]
            answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": objects, "Quiet": True})
            errors = answer.get("Errors", [])
            refused, example = refused + len(errors), example or next(iter(errors), None)
    if example is not None:
        raise _objects_left(refused, example)


def _objects_left(count: int, example: ErrorTypeDef) -> ApiError:
    """One error for a whole bucket, since millions of objects may be left."""
    return _listed_error(example, f"{count} objects could not be deleted, e.g. {example.get('Key', '')}: ")


def _listed_error(listed: ErrorTypeDef | UnsuccessfulItemErrorTypeDef, what: str = "") -> ApiError:
    """The error that an answer lists for an object, although the call succeeded."""
    code = listed.get("Code", "Unsuccessful")
    return error_class(code, 400)(f"{what}{code}: {listed.get('Message', 'no message')}", code=code)


def _delete_hosted_zones(route53: Route53Client, sweep: Sweep) -> None:
    pages = route53.get_paginator("list_hosted_zones").paginate()
    for zone in [(item["Id"], item["Name"]) for page in pages for item in page["HostedZones"]]:
        with sweep.removing("hosted zone", f"{zone[1]} ({zone[0]})"):
            _delete_hosted_zone(route53, *zone)


def _delete_hosted_zone(route53: Route53Client, zone: str, name: str) -> None:
    pages = route53.get_paginator("list_resource_record_sets").paginate(HostedZoneId=zone)
    records = [item for page in pages for item in page["ResourceRecordSets"] if not own_record(item, name)]
    for some in _record_batches(records):
        attempt.checkpoint()
        changes: list[ChangeTypeDef] = [{"Action": "DELETE", "ResourceRecordSet": record} for record in some]
        route53.change_resource_record_sets(HostedZoneId=zone, ChangeBatch={"Changes": changes})
    route53.delete_hosted_zone(Id=zone)


def _record_batches(
    records: Iterable[ResourceRecordSetOutputTypeDef],
) -> Iterator[list[ResourceRecordSetOutputTypeDef]]:
    batch: list[ResourceRecordSetOutputTypeDef] = []
    values = characters = 0
    for record in records:
        each = [len(item["Value"]) for item in record.get("ResourceRecords", [])]
        values, characters = values + len(each), characters + sum(each)
        if batch and (
            len(batch) == _RECORDS_PER_CHANGE or values > _VALUES_PER_CHANGE or characters > _CHARACTERS_PER_CHANGE
        ):
            yield batch
            batch, values, characters = [], len(each), sum(each)
        batch.append(record)
    if batch:
        yield batch


def own_record(record: ResourceRecordSetOutputTypeDef, zone_name: str) -> bool:
    """Whether the record is the zone's own NS or SOA, which is deleted with the zone. False for a subdomain's NS."""
    return record["Type"] in ("NS", "SOA") and record["Name"] == zone_name


def _chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    every = list(items)
    for start in range(0, len(every), size):
        yield every[start : start + size]
