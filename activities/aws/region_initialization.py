"""Initialises a region: launches a micro instance, proves that it ran, and terminates it in any case. If an attempt
leaves the instance behind, a later attempt finds it by its tags.

    RunInstances ─► wait ─► TerminateInstances, whose answer has the previous state
      ├─► running: initialised
      └─► not running ─► DescribeInstances ─► ended by EC2: refused
                           └─► ended by Perdure ─► second launch, polled until it runs
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from activities import attempt
from activities.aws.boot_times import BootTimes, Unknown
from activities.aws.clients import held
from activities.aws.customer_account_access import entered
from activities.aws.error_codes import UNAUTHENTICATED
from activities.aws.service_quotas import ask_for_vcpus
from activities.aws.session import Sessions
from activities.aws.usable_regions import usable_regions
from domain.accounts.actions.region_initialization import EndLaunches, InitializeRegion
from domain.accounts.iam_and_instance_tags import REGION_INIT_TAG_NAME
from domain.accounts.initialization_instance import ARCHITECTURE, MicroType, first_image, instance_type, type_refused
from domain.accounts.observed import RegionOutcome
from engine.errors import Absent, ApiError, Conflict, Denied, Invalid, Pending, Throttled, Unavailable

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client
    from mypy_boto3_ec2.type_defs import (
        EbsBlockDeviceTypeDef,
        FilterTypeDef,
        InstanceTypeDef,
        RunInstancesRequestTypeDef,
        TagSpecificationTypeDef,
    )

T = TypeVar("T")

VOLUME_GIB = 10

_LIVE = ("pending", "running", "stopping", "stopped")
_ENDED_BY_US = "Client.UserInitiatedShutdown"
# An instance that EC2 has not described for this long is gone: EC2 describes a new instance within seconds, and a
# terminated instance for about an hour.
_FORGOTTEN_SECONDS = 30
_LISTED_AFTER_SECONDS = 0.5
_OVER = frozenset({"shutting-down", "terminated"})
_RAN = frozenset({"running", "stopping", "stopped"})
_ASKED_AGAIN_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 5.0
_LOOKS_SECONDS = (0.3, 0.7, 1, 2, 3, 5)
_LONGEST_PENDING = timedelta(minutes=10)
_TERMINATE_SECONDS = (0, 1, 2, 4, 8, 15)
_ATTEMPTS_BEFORE_AUTH_FAILURE_COUNTS = 4
# In an account that is seconds old a denial may be temporary; a service control policy denies every attempt.
_ATTEMPTS_BEFORE_DENIAL_COUNTS = 3
_LOOK_UPS_KEPT_SECONDS = 3600.0
# The replaced operator's limit: ten launches, the last after 1500 s.
_LONGEST_REGION = timedelta(seconds=1500)
CREATION_TIMEOUT_CODE = "EC2CreationTimeout"
_PENDING_LONGEST_STEP = 9  # 2**9 = 512 s


class Launched(NamedTuple):
    """`at` is the time of the launch by the monotonic clock; None if unknown."""

    ids: list[str]
    at: float | None = None


class RegionInitializer:
    """A definite refusal, or no success for 25 minutes, is a result, not an error."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._images: LookUps[tuple[str, str, str], str] = LookUps()
        self._boots = BootTimes()
        self._without_t3: set[str] = set()

    def initialize(self, action: InitializeRegion) -> RegionOutcome:
        member = entered(self._sessions, action, settle=attempt.SETTLING)
        ec2 = member.ec2(action.region)
        attempt.checkpoint()
        requested = False
        try:
            requested = bool(action.vcpu_quota) and ask_for_vcpus(
                member.service_quotas(action.region), action.vcpu_quota
            )
            outcome = self._outcome(ec2, action)
        except (Pending, Throttled, Unavailable) as error:
            if attempt.age() < _LONGEST_REGION or error.ours:
                raise
            outcome = _given_up(ec2, action, error)
        return outcome.model_copy(update={"vcpus_asked": requested})

    def _outcome(self, ec2: EC2Client, action: InitializeRegion) -> RegionOutcome:
        try:
            return self._initialize(ec2, action)
        except Pending as error:
            error.delay = error.delay or timedelta(seconds=2 ** min(attempt.number(), _PENDING_LONGEST_STEP))
            raise
        except (Absent, Conflict, Denied, Invalid) as error:
            raise_unless_definite(error)
            return RegionOutcome(region=action.region, ok=False, message=error.message)

    def _initialize(self, ec2: EC2Client, action: InitializeRegion) -> RegionOutcome:
        again = attempt.repeated()
        if action.search or again:
            left = [instance["InstanceId"] for instance in instances_of(ec2, action.tags)]
            if left and (outcome := self._see_through(ec2, action, Launched(left))):
                return outcome
        attempt.checkpoint()
        first = self._launch(ec2, action, client_token(action))
        if outcome := self._see_through(ec2, action, first, timed=not again):
            return outcome
        attempt.checkpoint()
        second = self._launch(ec2, action, client_token(action, second=True))
        # The second instance is described before it is terminated, in every attempt: if it has ended, it ran.
        over = RegionOutcome(region=action.region, ok=True, message=f"{second.ids[0]} was launched before")
        return self._see_through(ec2, action, second) or over

    def _launch(self, ec2: EC2Client, action: InitializeRegion, token: str) -> Launched:
        key = (action.partition, action.region, action.ami_owner)
        image = self._images.get(key, lambda: _image(ec2, action))
        kind = instance_type(offers_t3=action.region not in self._without_t3)
        attempt.checkpoint()
        try:
            answer = ec2.run_instances(**_run_instances(action, image, kind, token))
        except (Absent, Invalid) as error:
            if error.code.startswith("InvalidAMIID"):
                # The image was withdrawn: look it up again.
                self._images.forget(key)
                raise Unavailable(error.message, code=error.code) from error
            if not type_refused(kind, error.code) or _is_offered(ec2, kind):
                raise
            self._without_t3.add(action.region)
            return self._launch(ec2, action, token)
        except Unavailable:
            # The launch may have succeeded. Check now, because no attempt follows if the action is cancelled meanwhile.
            attempt.pause_regardless(_LISTED_AFTER_SECONDS)
            found = [instance["InstanceId"] for instance in instances_of(ec2, action.tags)]
            if not found:
                raise
            return Launched(found)
        return Launched([answer["Instances"][0]["InstanceId"]], time.monotonic())

    def _see_through(
        self, ec2: EC2Client, action: InitializeRegion, launched: Launched, *, timed: bool = False
    ) -> RegionOutcome | None:
        """Prove that one of the instances ran, and terminate all of them. None without a proof: Perdure had terminated
        the instances already, or EC2 no longer knows them.

        EC2 is polled before the termination. With `timed` and a known boot time, EC2 is polled only after the
        termination, and only if the previous states in the termination's answer prove nothing.
        """
        outcome: RegionOutcome | None = None
        try:
            described = not (timed and self._await_boot(action.region, launched))
            if described:
                outcome = self._await_running(ec2, action, launched)
        finally:
            ended_at = time.monotonic()
            states = _terminate(ec2, launched.ids)
        if described:
            return outcome
        if states & _RAN:
            return _ran(action.region, launched.ids[0])
        if "pending" in states and launched.at is not None:
            self._boots.terminated_early(action.region, ended_at - launched.at)
        return self._see_through(ec2, action, launched)

    def _await_boot(self, region: str, launched: Launched) -> bool:
        """Wait until the instance has probably booted. False if EC2 must be polled, as no usable boot time is known."""
        while launched.at is not None:
            wait = self._boots.wait(region, launched.at, time.monotonic())
            if wait is Unknown.DESCRIBE:
                break
            left = _ASKED_AGAIN_SECONDS if wait is Unknown.ASK_AGAIN else launched.at + wait - time.monotonic()
            if left <= 0:
                return True
            attempt.pause(min(left, _LONGEST_PAUSE_SECONDS), launched.ids)
        return False

    def _await_running(self, ec2: EC2Client, action: InitializeRegion, launched: Launched) -> RegionOutcome | None:
        """Poll EC2 until an instance runs. None if Perdure has terminated all instances, or EC2 no longer knows any."""
        started = time.monotonic()
        looks, ran_after = 0, None
        try:
            while (polled_at := time.monotonic()) < started + _LONGEST_PENDING.total_seconds():
                attempt.checkpoint(launched.ids)
                found = _describe(ec2, launched.ids)
                running = [instance["InstanceId"] for instance in found if instance["State"]["Name"] in _RAN]
                if running:
                    ran_after = polled_at - launched.at if launched.at is not None else None
                    return _ran(action.region, running[0])
                if found and all(instance["State"]["Name"] in _OVER for instance in found):
                    return _over(action.region, found[0])
                if not found and attempt.repeated() and time.monotonic() > started + _FORGOTTEN_SECONDS:
                    return None
                attempt.pause(_LOOKS_SECONDS[min(looks, len(_LOOKS_SECONDS) - 1)], launched.ids)
                looks += 1
        finally:
            self._boots.described(action.region, ran_after)
        waited = f"{_LONGEST_PENDING.total_seconds() / 60:.0f} minutes"
        message = f"{', '.join(launched.ids)} stayed pending for {waited}"
        return RegionOutcome(region=action.region, ok=False, message=message)


def raise_unless_definite(error: ApiError) -> None:
    """Raise the error if it may be temporary, or if this process refused the call without asking AWS."""
    if error.ours:
        raise error
    if error.code in UNAUTHENTICATED and attempt.number() < _ATTEMPTS_BEFORE_AUTH_FAILURE_COUNTS:
        raise attempt.settling(error)
    if attempt.age() < attempt.SETTLING and not attempt.definite(error, _ATTEMPTS_BEFORE_DENIAL_COUNTS):
        raise attempt.settling(error)
    if error.code == "IdempotentParameterMismatch":
        raise Unavailable(error.message, code=error.code)


def _given_up(ec2: EC2Client, action: InitializeRegion, error: ApiError) -> RegionOutcome:
    minutes = f"{_LONGEST_REGION.total_seconds() / 60:.0f} minutes"
    message = f"{CREATION_TIMEOUT_CODE}: no instance ran within {minutes}: {error.message}"
    try:
        end_marked(ec2, action.tags)
    except ApiError as unended:
        if unended.ours:
            raise
        message = f"{message} An instance of ours may still run in the region: {unended.message}"
    return RegionOutcome(region=action.region, ok=False, message=message, given_up=True)


def client_token(action: InitializeRegion, *, second: bool = False) -> str:
    """The client token of a launch, equal in all attempts; EC2 accepts at most 64 ASCII characters."""
    what = f"{action.owner.uid}/{action.region}/{action.round}{'/second' if second else ''}"
    return hashlib.sha256(what.encode()).hexdigest()


def instances_of(ec2: EC2Client, tags: dict[str, str]) -> list[InstanceTypeDef]:
    filters: list[FilterTypeDef] = [
        {"Name": "tag:clusterAccountName", "Values": [tags["clusterAccountName"]]},
        {"Name": "tag:clusterNamespace", "Values": [tags["clusterNamespace"]]},
        {"Name": "tag-key", "Values": ["clusterClaimLink"]},
        {"Name": "tag-key", "Values": ["clusterClaimLinkNamespace"]},
        {"Name": "tag:Name", "Values": [REGION_INIT_TAG_NAME]},
        {"Name": "instance-state-name", "Values": list(_LIVE)},
    ]
    pages = ec2.get_paginator("describe_instances").paginate(Filters=filters)
    return [instance for page in pages for reservation in page["Reservations"] for instance in reservation["Instances"]]


def end_launches(sessions: Sessions, action: EndLaunches) -> None:
    member = entered(sessions, action)
    try:
        end_marked(member.ec2(action.region), action.tags)
    except (Denied, Invalid, Pending, Unavailable):
        if action.region in usable_regions(member):
            raise


def end_marked(ec2: EC2Client, tags: dict[str, str]) -> None:
    attempt.checkpoint()
    _terminate(ec2, [instance["InstanceId"] for instance in instances_of(ec2, tags)])


def _describe(ec2: EC2Client, ids: list[str]) -> list[InstanceTypeDef]:
    try:
        answer = ec2.describe_instances(InstanceIds=ids)
    except Absent:
        return []
    return [instance for reservation in answer["Reservations"] for instance in reservation["Instances"]]


def _ran(region: str, instance_id: str) -> RegionOutcome:
    return RegionOutcome(region=region, ok=True, message=f"{instance_id} ran")


def _over(region: str, instance: InstanceTypeDef) -> RegionOutcome | None:
    reason = instance.get("StateReason", {})
    if reason.get("Code") == _ENDED_BY_US:
        return None
    why = reason.get("Message") or instance.get("StateTransitionReason") or "no reason given"
    return RegionOutcome(region=region, ok=False, message=f"{instance['InstanceId']} ended before it ran: {why}")


def _terminate(ec2: EC2Client, ids: list[str]) -> set[str]:
    """Terminate the instances, even if the activity is cancelled. Returns their previous states. Raises Unavailable if
    AWS refuses for half a minute.
    """
    if not ids:
        return set()
    for seconds in _TERMINATE_SECONDS:
        if seconds:
            attempt.pause_regardless(seconds)
        try:
            answer = ec2.terminate_instances(InstanceIds=ids)
        except Absent:
            return set()
        except ApiError as error:
            failure = error
            if error.ours:
                break
        else:
            return {instance["PreviousState"]["Name"] for instance in answer["TerminatingInstances"]}
    message = f"{failure.message} The instance may still run; the next attempt terminates it."
    raise Unavailable(message, code=failure.code, delay=failure.delay)


def _image(ec2: EC2Client, action: InitializeRegion) -> str:
    pages = ec2.get_paginator("describe_images").paginate(
        Owners=[action.ami_owner],
        ExecutableUsers=["all"],
        Filters=[{"Name": "architecture", "Values": [ARCHITECTURE]}],
    )
    images = (each for page in pages for each in page["Images"] if each.get("State", "available") == "available")
    if image := first_image((each["ImageId"], each.get("Name", "")) for each in images):
        return image
    owner = f"owner {action.ami_owner} (ami-owner of the ConfigMap)"
    raise Invalid(f"{action.region}: {owner} has no public {ARCHITECTURE} image there", code="NoImage")


def _is_offered(ec2: EC2Client, kind: MicroType) -> bool:
    try:
        ec2.describe_instance_types(InstanceTypes=[kind])
    except Invalid as error:
        if error.code != "InvalidInstanceType":
            raise
        return False
    return True


def _run_instances(action: InitializeRegion, image: str, kind: MicroType, token: str) -> RunInstancesRequestTypeDef:
    disk: EbsBlockDeviceTypeDef = {"VolumeSize": VOLUME_GIB, "Encrypted": True, "DeleteOnTermination": True}
    if action.kms_key_id:
        disk["KmsKeyId"] = action.kms_key_id
    tags = {**action.tags, "Name": REGION_INIT_TAG_NAME}
    marked: list[TagSpecificationTypeDef] = [
        {"ResourceType": each, "Tags": [{"Key": name, "Value": value} for name, value in sorted(tags.items())]}
        for each in ("instance", "volume")
    ]
    return {
        "ImageId": image,
        "InstanceType": kind,
        "MinCount": 1,
        "MaxCount": 1,
        "ClientToken": token,
        "BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": disk}],
        "TagSpecifications": marked,
    }


K = TypeVar("K")


class LookUps(Generic[K, T]):
    """Look-ups whose results all callers share for an hour."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locks: dict[K, threading.Lock] = {}
        self._found: dict[K, tuple[float, T]] = {}

    def get(self, key: K, look: Callable[[], T]) -> T:
        with self._guard:
            lock = self._locks.setdefault(key, threading.Lock())
        with held(lock, f"the look-up of {key}"):
            at, found = self._found.get(key, (0.0, None))
            if found is not None and time.monotonic() < at + _LOOK_UPS_KEPT_SECONDS:
                return found
            found = look()
            self._found[key] = (time.monotonic(), found)
            return found

    def forget(self, key: K) -> None:
        with self._guard:
            self._found.pop(key, None)
