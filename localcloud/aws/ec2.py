"""EC2 for new accounts: not yet activated, under verification, with opt-in regions (docs/emulator.md).

A RunInstances that repeats a ClientToken with other parameters is refused with IdempotentParameterMismatch
(https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-idempotency.html). Terminated instances disappear after an
hour. Red Hat's images include some that clients must skip, as on AWS. DescribeInstanceStatus takes at most 100 ids
(https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceStatus.html).
"""

from __future__ import annotations

import hashlib
import time
from datetime import UTC, datetime
from functools import cache
from typing import Any, cast

import moto.ec2.urls as urls
from moto.core.responses import ActionResult
from moto.ec2.exceptions import InvalidInstanceTypeError
from moto.ec2.models import ec2_backends
from moto.ec2.models.amis import Ami
from moto.ec2.models.instances import Instance, InstanceState, Reservation
from moto.ec2.responses import EC2Response

from localcloud.aws import lives, organizations, regions, runtime
from localcloud.aws.contract import IMAGE_OWNER
from localcloud.aws.lives import LivingEC2
from localcloud.aws.regions import OptStatus
from localcloud.aws.wire import ErrorAnswer, Refusal

_IMAGES = (
    ("RHEL-SAP-9.4.0_HVM-20240605-x86_64-82-Hourly2-GP3", "x86_64"),
    ("RHEL-9.5.0_HVM_BETA-20240905-x86_64-2-Hourly2-GP3", "x86_64"),
    ("RHEL-9.4.0_HVM-20240605-arm64-82-Hourly2-GP3", "arm64"),
    ("RHEL-9.4.0_HVM-20240605-x86_64-82-Hourly2-GP3", "x86_64"),
)
_TERMINATED_VISIBLE_SECONDS = 3600.0
_MOST_STATUSES = 100
_VERIFICATION_MESSAGE = (
    "Your request for accessing resources in this region is being validated, and you will not be able to launch "
    "additional resources in this region until the validation is complete. We will notify you by email once your "
    "request has been validated. While normally resolved within minutes, please allow up to 4 hours for this process "
    "to complete."
)
_OPT_IN_MESSAGE = "You are not subscribed to this service. Please go to http://aws.amazon.com to subscribe."
_OPT_IN_STATUS = {OptStatus.ENABLED_BY_DEFAULT: "opt-in-not-required", OptStatus.ENABLED: "opted-in"}


def install() -> None:
    ec2_backends.backend = PerdureEC2
    urls.url_paths = {"{0}/": PerdureEC2Response.dispatch}
    lives.install()


class RedHatImage(Ami):
    def __init__(self, region: str, name: str, architecture: str) -> None:
        digest = hashlib.sha256(f"{region}/{name}".encode()).hexdigest()
        self.region, self.name, self.architecture = region, name, architecture
        self.id = f"ami-{digest[:17]}"
        self.snapshot_id = f"snap-{digest[17:34]}"
        self.state = "available"
        self.image_type = "machine"
        self.image_location = f"{IMAGE_OWNER}/{name}"
        self.owner_id, self.owner_alias = IMAGE_OWNER, None
        self.description = "Provided by Red Hat, Inc."
        self.virtualization_type, self.hypervisor = "hvm", "xen"
        self.kernel_id = self.platform = self.instance_id = None
        self.root_device_name, self.root_device_type = "/dev/sda1", "ebs"
        self.sriov, self.boot_mode = "simple", "uefi-preferred"
        self.creation_date = datetime(2024, 6, 5, tzinfo=UTC).replace(tzinfo=None)
        self.product_codes = set()
        self.launch_permissions = [{"Group": "all"}]

    def __reduce__(self) -> tuple[Any, tuple[str, str, str]]:
        return _image, (self.region, cast(str, self.name), cast(str, self.architecture))

    @property
    def block_device_mappings(self) -> list[dict[str, Any]]:
        ebs = {"SnapshotId": self.snapshot_id, "VolumeSize": 10, "DeleteOnTermination": True, "VolumeType": "gp3"}
        return [{"DeviceName": self.root_device_name, "Ebs": ebs}]

    def get_tags(self) -> list[dict[str, str]]:
        return []


class PerdureEC2(LivingEC2):
    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        self.launches: dict[str, tuple[str, Reservation]] = {}
        self.terminated: dict[str, float] = {}

    @property
    def _url_module(self) -> Any:
        return urls

    def _load_amis(self) -> None:
        for name, architecture in _IMAGES:
            image = _image(self.region_name, name, architecture)
            self.amis[image.id] = image

    def launched(self, token: str, fingerprint: str, reservation: Reservation) -> None:
        self._forget_terminated()
        if token:
            self.launches[token] = (fingerprint, reservation)

    def terminate_instances(self, instance_ids: list[str]) -> list[tuple[Instance, InstanceState]]:
        terminated = super().terminate_instances(instance_ids)
        for instance, _previous in terminated:
            self.terminated.setdefault(instance.id, time.time())
        return terminated

    def _forget_terminated(self) -> None:
        horizon = time.time() - _TERMINATED_VISIBLE_SECONDS
        gone = {instance_id for instance_id, at in self.terminated.items() if at < horizon}
        if not gone:
            return
        for reservation in list(self.reservations.values()):
            reservation.instances = [i for i in reservation.instances if i.id not in gone]
            if not reservation.instances:
                del self.reservations[reservation.id]
        self.launches = {token: seen for token, seen in self.launches.items() if seen[1].instances}
        for instance_id in gone:
            del self.terminated[instance_id]


class PerdureEC2Response(EC2Response):
    @property
    def _ours(self) -> PerdureEC2:
        return cast(PerdureEC2, self.ec2_backend)

    def call_action(self) -> Any:
        wait = runtime.config().activation_seconds
        if wait > 0 and organizations.age_seconds(self.current_account) < wait:
            refusal = _refusal("OptInRequired", _OPT_IN_MESSAGE, 401)
            return 401, dict(refusal.get_headers()), refusal.get_body()
        return super().call_action()

    def describe_regions(self) -> ActionResult:
        self.error_on_dryrun()
        names = self._get_param("RegionNames", [])
        filters = self._filters_from_querystring()
        every = self._get_bool_param("AllRegions", False) or names
        unknown = [name for name in names if name not in regions.known()]
        if unknown:
            raise _refusal("InvalidParameterValue", f"Invalid region name: {unknown[0]}")
        found = [self._describe_region(name) for name in names or sorted(regions.known())]
        found = [r for r in found if every or r["OptInStatus"] != "not-opted-in"]
        members = {"region-name": "RegionName", "endpoint": "Endpoint", "opt-in-status": "OptInStatus"}
        for name, values in filters.items():
            if name not in members:
                raise _refusal("InvalidParameterValue", f"The filter '{name}' is invalid")
            found = [region for region in found if region[members[name]] in values]
        return ActionResult({"Regions": found})

    def run_instances(self) -> ActionResult:
        if self._get_param("DryRun", False):
            return super().run_instances()
        token = self._get_param("ClientToken") or ""
        fingerprint = self._fingerprint()
        if token in self._ours.launches:
            known, reservation = self._ours.launches[token]
            if known != fingerprint:
                message = "The request uses the same client token as a previous, but non-identical request."
                raise _refusal("IdempotentParameterMismatch", message)
            return ActionResult(reservation)
        self._check_launch()
        result = super().run_instances()
        self._ours.launched(token, fingerprint, cast(Reservation, result.result))
        return result

    def describe_instance_status(self) -> ActionResult:
        if len(self._get_param("InstanceIds", [])) > _MOST_STATUSES:
            raise _refusal("InvalidParameterValue", f"at most {_MOST_STATUSES} instance ids may be given")
        return super().describe_instance_status()

    def describe_instance_types(self) -> ActionResult:
        if self._lacks_t3_micro():
            if "t3.micro" in self._get_param("InstanceTypes", []):
                raise InvalidInstanceTypeError({"t3.micro"}, error_type="InvalidInstanceType")
            result = super().describe_instance_types()
            types = cast(dict[str, Any], result.result)["InstanceTypes"]
            return ActionResult({"InstanceTypes": [t for t in types if t["InstanceType"] != "t3.micro"]})
        return super().describe_instance_types()

    def describe_instance_type_offerings(self) -> ActionResult:
        result = super().describe_instance_type_offerings()
        if not self._lacks_t3_micro():
            return result
        offerings = cast(dict[str, Any], result.result)["InstanceTypeOfferings"]
        return ActionResult({"InstanceTypeOfferings": [o for o in offerings if o["InstanceType"] != "t3.micro"]})

    def describe_snapshots(self) -> ActionResult:
        filters = self._filters_from_querystring()
        aliases = filters.pop("owner-alias", None)
        snapshots = self._ours.describe_snapshots(snapshot_ids=self._get_param("SnapshotIds", []), filters=filters)
        owners = [self.current_account if o == "self" else o for o in self._get_param("OwnerIds", [])]
        if owners:
            snapshots = [s for s in snapshots if s.owner_id in owners]
        if aliases is not None:
            # AWS documents `amazon` as the only owner alias; no snapshot here has that owner.
            snapshots = []
        return ActionResult({"Snapshots": snapshots})

    def _check_launch(self) -> None:
        settings = runtime.config()
        if organizations.age_seconds(self.current_account) < settings.verification_seconds:
            message = _OPT_IN_MESSAGE if settings.verification_error == "OptInRequired" else _VERIFICATION_MESSAGE
            raise _refusal(settings.verification_error, message)
        image = self._get_param("ImageId")
        if image and image not in self._ours.amis:
            raise _refusal("InvalidAMIID.NotFound", f"The image id '[{image}]' does not exist")
        if self._get_param("InstanceType") == "t3.micro" and self._lacks_t3_micro():
            message = (
                f"Your requested instance type (t3.micro) is not supported in your requested Region ({self.region})."
            )
            raise _refusal("Unsupported", message)

    def _lacks_t3_micro(self) -> bool:
        return self.region in runtime.config().regions_without_t3_micro

    def _describe_region(self, name: str) -> dict[str, str]:
        status = _OPT_IN_STATUS.get(regions.status(self.current_account, name), "not-opted-in")
        return {"RegionName": name, "Endpoint": f"ec2.{name}.amazonaws.com", "OptInStatus": status}

    def _fingerprint(self) -> str:
        parameters = sorted((key, value) for key, value in self.querystring.items() if key != "ClientToken")
        return hashlib.sha256(repr(parameters).encode()).hexdigest()


@cache
def _image(region: str, name: str, architecture: str) -> RedHatImage:
    return RedHatImage(region, name, architecture)


def _refusal(code: str, message: str, status: int = 400) -> Refusal:
    return Refusal("ec2", ErrorAnswer(code, message, status))
