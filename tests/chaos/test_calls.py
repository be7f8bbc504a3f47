"""Every call of AWS is answered late, loses its answer, is never heard, is throttled, and is denied.

The calls of an undisturbed life are broken in waves: the calls of one wave belong to different steps, so that each
meets its fault in its step's first attempt, which has not searched for what may exist already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from chaos_effects import AwsCall, Effect, Lifecycle
from chaos_lab import Lab, Record

from localcloud.aws.contract import FaultKind

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

Wave = tuple[Effect, ...]


def _wave(lifecycle: Lifecycle, *calls: str) -> Wave:
    return tuple(Effect(lifecycle, "", AwsCall(*call.split("."))) for call in calls)


_A, _C, _O = Lifecycle.ACCOUNT, Lifecycle.CLAIM, Lifecycle.ORGANIZATION
_R, _D = Lifecycle.RELEASE, Lifecycle.DELETION

TAKING: tuple[Wave, ...] = (
    _wave(_A, "organizations.CreateAccount", "organizations.TagResource", "iam.CreateRole", "iam.CreateUser")
    + _wave(_A, "ec2.DescribeRegions", "ec2.RunInstances", "support.CreateCase")
    + _wave(_C, "organizations.CreateOrganizationalUnit"),
    _wave(_A, "organizations.DescribeCreateAccountStatus", "iam.AttachRolePolicy", "iam.AttachUserPolicy")
    + _wave(_O, "support.DescribeCases")
    + _wave(_C, "organizations.MoveAccount"),
    _wave(_A, "sts.AssumeRole", "iam.CreateAccessKey", "ec2.TerminateInstances")
    + _wave(_O, "organizations.ListAccounts"),
    # What a worker asks once: a new worker takes this turn.
    _wave(_A, "sts.GetCallerIdentity", "ec2.DescribeImages", "ec2.DescribeInstances")
    + _wave(_O, "organizations.ListCreateAccountStatus"),
)
RETURNING: tuple[Wave, ...] = (
    _wave(_R, "iam.ListAccessKeys", "ec2.DescribeInstances", "s3.ListBuckets", "route53.ListHostedZones")
    + _wave(_D, "iam.ListUsers", "iam.DeleteUser", "iam.ListRoles"),
    _wave(_R, "iam.CreateAccessKey", "ec2.TerminateInstances", "s3.DeleteObjects", "route53.DeleteHostedZone")
    + _wave(_D, "iam.DeleteAccessKey", "iam.DetachUserPolicy", "iam.DeleteRole"),
    _wave(_R, "iam.DeleteAccessKey", "ec2.DeleteVolume", "s3.DeleteBucket", "route53.ChangeResourceRecordSets")
    + _wave(_D, "iam.DetachRolePolicy", "iam.DeleteLoginProfile", "iam.ListUserTags"),
    _wave(_R, "sts.GetCallerIdentity", "ec2.DeleteSnapshot", "s3.GetBucketLocation")
    + _wave(_R, "route53.ListResourceRecordSets")
    + _wave(_D, "iam.ListAccessKeys", "iam.ListRoleTags", "iam.ListUserPolicies"),
    _wave(_R, "ec2.DeleteVpcEndpointServiceConfigurations", "ec2.DescribeSnapshots", "s3.ListObjectVersions")
    + _wave(_D, "iam.ListAttachedUserPolicies", "iam.ListAttachedRolePolicies", "iam.ListInstanceProfilesForRole"),
    _wave(_R, "ec2.DescribeVolumes", "ec2.DescribeVpcEndpointServiceConfigurations", "ec2.DescribeImages")
    + _wave(_R, "s3.ListMultipartUploads")
    + _wave(_D, "iam.ListGroupsForUser", "iam.ListRolePolicies"),
)
_FRESH = TAKING[3]

# What the client repeats by itself once, because it changes nothing, is broken twice.
_READING = ("Describe", "List", "Get", "AssumeRole")


def _late(lab: Lab, call: Effect) -> None:
    lab.arm_aws(call, FaultKind.DELAY, 1, delay_seconds=3)


def _lost(lab: Lab, call: Effect) -> None:
    lab.arm_aws(call, FaultKind.AFTER, _twice_if_reading(call))


def _never(lab: Lab, call: Effect) -> None:
    lab.arm_aws(call, FaultKind.BEFORE, _twice_if_reading(call))


def _throttled(lab: Lab, call: Effect) -> None:
    lab.arm_aws(call, FaultKind.THROTTLE, 3)


def _denied(lab: Lab, call: Effect) -> None:
    lab.arm_aws(call, FaultKind.DENIED, 1)


def _too_late(lab: Lab, call: Effect) -> None:
    """Later than the client waits (30 s)."""
    lab.arm_aws(call, FaultKind.DELAY, 1, delay_seconds=32)


FAULTS: dict[str, Callable[[Lab, Effect], None]] = {
    "answered after 3 s": _late,
    "done, answer lost": _lost,
    "not received": _never,
    "throttled 3 times": _throttled,
    "denied once": _denied,
}


def _twice_if_reading(effect: Effect) -> int:
    assert isinstance(effect.call, AwsCall)
    return 2 if effect.call.action.startswith(_READING) else 1


def _cases(waves: Sequence[Wave]) -> list[object]:
    return [
        pytest.param(wave, fault, id=f"{number}-{fault.replace(',', '').replace(' ', '-')}")
        for number, wave in enumerate(waves, 1)
        for fault in FAULTS
    ]


def _broken(lab: Lab, wave: Wave, arm: Callable[[Lab, Effect], None], turn: Callable[[], None]) -> float:
    for call in wave:
        arm(lab, call)
    turn()
    took = lab.settle()
    untouched = [f"{fault.service}.{fault.action}" for fault in lab.emulator.faults() if not fault.hits]
    assert not untouched, f"never called, so nothing was tried: {', '.join(untouched)}"
    return took


@pytest.mark.chaos
@pytest.mark.turn("take")
@pytest.mark.parametrize(("wave", "fault"), _cases(TAKING))
def test_an_account_is_made_and_given_although_calls_fail(
    lab: Lab, record: Record, record_property: Callable[[str, object], None], wave: Wave, fault: str
) -> None:
    record(wave, fault)
    lab.ready_to("take")
    if wave is _FRESH:
        lab.worker.kill()
        lab.worker.start()
    record_property("seconds", round(_broken(lab, wave, FAULTS[fault], lab.take), 1))


@pytest.mark.chaos
@pytest.mark.turn("give back")
@pytest.mark.parametrize(("wave", "fault"), _cases(RETURNING))
def test_an_account_is_cleaned_and_freed_although_calls_fail(
    lab: Lab, record: Record, record_property: Callable[[str, object], None], wave: Wave, fault: str
) -> None:
    record(wave, fault)
    lab.ready_to_give_back_twice()
    record_property("seconds", round(_broken(lab, wave, FAULTS[fault], lab.give_back), 1))


@pytest.mark.chaos
@pytest.mark.parametrize("turn", ["take", "give back"])
def test_an_effect_whose_caller_has_given_up_is_not_repeated(lab: Lab, record: Record, turn: str) -> None:
    if turn == "take":
        wave = _wave(_A, "organizations.CreateAccount", "iam.CreateAccessKey", "ec2.RunInstances", "support.CreateCase")
        lab.ready_to("take")
        record(wave, "answered after 32 s")
        _broken(lab, wave, _too_late, lab.take)
    else:
        wave = _wave(_R, "iam.CreateAccessKey", "s3.DeleteBucket")
        lab.ready_to_give_back_twice()
        record(wave, "answered after 32 s")
        _broken(lab, wave, _too_late, lab.give_back)


@pytest.mark.chaos
def test_every_call_of_an_undisturbed_life_is_broken_above(lab: Lab) -> None:
    lab.ready_to_give_back_twice()
    lab.worker.kill()
    lab.worker.start()
    before = _calls(lab)
    lab.give_back()
    lab.settle()
    lab.take()
    lab.settle()
    covered = {(call.call.service, call.call.action) for wave in (*TAKING, *RETURNING) for call in wave}  # type: ignore[union-attr]
    made = {name for name, count in _calls(lab).items() if count > before.get(name, 0)}
    assert made - covered == set()


def _calls(lab: Lab) -> dict[tuple[str, str], int]:
    """Perdure's calls so far: those of the tenant and of who closes accounts are taken off by what they do."""
    ours: dict[tuple[str, str], int] = {}
    tenants = {"CreateVolume", "CreateSnapshot", "CreateLoadBalancer", "CreateVpcEndpointServiceConfiguration"}
    tenants |= {"CreateBucket", "PutBucketVersioning", "PutObject", "CreateHostedZone", "DescribeSubnets"}
    for count in lab.emulator.ledger().counts:
        if count.action not in tenants | {"CloseAccount"}:
            ours[count.service, count.action] = ours.get((count.service, count.action), 0) + count.count
    return ours


def test_calls_that_lose_their_answers_do_nothing_twice(lab: Lab) -> None:
    """What the default run holds of all this."""
    lab.ready_to("take")
    _broken(lab, TAKING[0], _lost, lab.take)
