"""Region initialisation: whatever happens, no instance stays running, and one round launches once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from aws_lab import REGION, Lab, marks, region_init
from temporalio.exceptions import CancelledError

from activities.aws.activities import AwsActivities
from activities.aws.region_initialization import instances_of
from domain.accounts.actions.region_initialization import InitializeRegion, ListRegions
from engine.errors import Denied, Pending, Throttled, Unavailable
from localcloud.instance_groups import image_of

pytestmark = pytest.mark.integration

LATE = timedelta(minutes=10)
GIVEN_UP = timedelta(seconds=1500)
SECOND = timedelta(seconds=1)


@pytest.fixture
def lab(lab: Lab) -> Lab:
    """The lab in a process that has not initialised any region yet."""
    lab.activities = AwsActivities(lab.sessions)
    return lab


def ec2_calls(lab: Lab) -> dict[str, int]:
    """The calls to EC2 without the image's look-up, which is made once per region and process."""
    calls = lab.emulator.ledger().by_action()
    return {name: n for name, n in calls.items() if name.startswith("ec2:") and name != "ec2:DescribeImages"}


def knowing_boot_times(lab: Lab) -> None:
    """The process has seen an instance run, which took it no time."""
    account_id, name = lab.account()
    assert lab.run(lab.activities.initialize_region, region_init(account_id, name, region="us-west-1")).ok
    lab.emulator.reset_ledger()


def launched(lab: Lab, account_id: str, name: str) -> int:
    """How many instances were launched for the account, ended ones included."""
    pages = (
        lab.sessions.member(account_id)
        .ec2(REGION)
        .get_paginator("describe_instances")
        .paginate(Filters=[{"Name": "tag:clusterAccountName", "Values": [name]}])
    )
    return sum(len(reservation["Instances"]) for page in pages for reservation in page["Reservations"])


def launch_and_die(lab: Lab, action: InitializeRegion) -> None:
    """What a process leaves that is killed after RunInstances: nothing more of it is heard."""
    lab.emulator.fault("ec2", "RunInstances", kind="after", count=1)
    blind = lab.emulator.fault("ec2", "DescribeInstances", kind="before")
    with pytest.raises(Unavailable):
        lab.run(lab.activities.initialize_region, action)
    lab.emulator.clear(blind.id)
    assert len(lab.instances(action.account_id)) == 1


def test_only_usable_regions_are_listed(lab: Lab) -> None:
    account_id, _ = lab.account()
    regions = lab.run(lab.activities.list_regions, ListRegions(account_id=account_id))
    assert regions.regions == tuple(sorted(lab.emulator.config().regions))


def test_an_account_that_is_not_active_yet_is_observed_again(lab: Lab) -> None:
    account_id, _ = lab.account()
    lab.emulator.config(activation_seconds=3600)
    with pytest.raises(Pending) as pending:
        lab.run(lab.activities.list_regions, ListRegions(account_id=account_id))
    assert pending.value.code == "OptInRequired"
    assert pending.value.delay is None  # the pauses are the action's
    assert (ListRegions.first_retry, ListRegions.longest_retry) == (timedelta(seconds=5), timedelta(minutes=1))


def test_a_region_costs_two_calls_and_leaves_nothing(lab: Lab) -> None:
    knowing_boot_times(lab)
    account_id, name = lab.account()
    outcome = lab.run(lab.activities.initialize_region, region_init(account_id, name))
    assert (outcome.region, outcome.ok) == (REGION, True)
    assert lab.instances(account_id) == []
    assert ec2_calls(lab) == {"ec2:RunInstances": 1, "ec2:TerminateInstances": 1}


def test_the_first_instance_of_a_process_is_described_until_it_runs(lab: Lab) -> None:
    lab.emulator.config(run_instances_seconds=1)
    account_id, name = lab.account()
    assert lab.run(lab.activities.initialize_region, region_init(account_id, name)).ok
    assert lab.calls("ec2", "DescribeInstances") > 1
    lab.emulator.reset_ledger()
    account_id, name = lab.account()
    assert lab.run(lab.activities.initialize_region, region_init(account_id, name, region="eu-west-1")).ok
    assert ec2_calls(lab) == {"ec2:RunInstances": 1, "ec2:TerminateInstances": 1}


def test_instances_launched_at_the_same_time_wait_for_the_described_one(lab: Lab) -> None:
    lab.emulator.config(run_instances_seconds=1)
    account_id, name = lab.account()
    regions = ("us-east-1", "us-east-2", "us-west-1", "us-west-2")
    actions = [region_init(account_id, name, region=region) for region in regions]
    with ThreadPoolExecutor(len(actions)) as pool:
        outcomes = list(pool.map(lambda action: lab.run(lab.activities.initialize_region, action), actions))
    assert all(outcome.ok for outcome in outcomes)
    assert lab.instances(account_id) == []
    assert lab.calls("ec2", "RunInstances") == len(actions)
    described = {count.region for count in lab.emulator.ledger().counts if count.action == "DescribeInstances"}
    assert len(described) == 1


def test_an_instance_terminated_before_it_ran_leads_to_another_launch(lab: Lab) -> None:
    knowing_boot_times(lab)
    lab.emulator.config(run_instances_seconds=2)
    account_id, name = lab.account()
    outcome = lab.run(lab.activities.initialize_region, region_init(account_id, name))
    assert (outcome.ok, outcome.message.endswith(" ran")) == (True, True)
    assert launched(lab, account_id, name) == 2
    assert lab.instances(account_id) == []
    lab.emulator.reset_ledger()
    account_id, name = lab.account()
    assert lab.run(lab.activities.initialize_region, region_init(account_id, name)).ok
    assert ec2_calls(lab) == {"ec2:RunInstances": 1, "ec2:TerminateInstances": 1}


@pytest.mark.parametrize("kind", ["before", "after"])
def test_a_proof_that_was_lost_is_made_again(lab: Lab, kind: str) -> None:
    knowing_boot_times(lab)
    account_id, name = lab.account()
    lab.emulator.fault("ec2", "TerminateInstances", kind=kind, count=1)
    assert lab.run(lab.activities.initialize_region, region_init(account_id, name)).ok
    assert launched(lab, account_id, name) == (1 if kind == "before" else 2)
    assert lab.instances(account_id) == []


def test_the_image_is_looked_up_once_per_region(lab: Lab) -> None:
    for _ in range(2):
        account_id, name = lab.account()
        lab.run(lab.activities.initialize_region, region_init(account_id, name, region="eu-west-3"))
    assert lab.calls("ec2", "DescribeImages") == 1
    assert lab.calls("ec2", "DescribeInstanceTypes") == 0


def test_the_launch_is_as_upstream_makes_it(lab: Lab) -> None:
    account_id, name = lab.account()
    launch_and_die(lab, region_init(account_id, name).model_copy(update={"tags": {**marks(name), "managed": "yes"}}))
    (instance,) = instances_of(lab.sessions.member(account_id).ec2(REGION), marks(name))
    assert instance["InstanceType"] == "t3.micro"
    assert {tag["Key"]: tag["Value"] for tag in instance["Tags"]} == {
        **marks(name),
        "managed": "yes",
        "Name": "red-hat-region-init",
    }
    volume = lab.sessions.member(account_id).ec2(REGION).describe_volumes()["Volumes"][0]
    assert (volume["Size"], volume["Encrypted"]) == (10, True)
    assert {tag["Key"] for tag in volume["Tags"]} == {*marks(name), "managed", "Name"}


def test_an_older_type_serves_where_there_is_no_t3(lab: Lab) -> None:
    region = "eu-north-1"
    lab.emulator.config(regions_without_t3_micro=[region])
    account_id, name = lab.account()
    outcome = lab.run(lab.activities.initialize_region, region_init(account_id, name, region=region))
    assert outcome.ok
    assert lab.calls("ec2", "DescribeInstanceTypes") == 1
    assert lab.instances(account_id) == []
    account_id, name = lab.account()
    lab.emulator.reset_ledger()
    assert lab.run(lab.activities.initialize_region, region_init(account_id, name, region=region)).ok
    assert (lab.calls("ec2", "RunInstances"), lab.calls("ec2", "DescribeInstanceTypes")) == (1, 0)


def test_a_refusal_that_is_not_about_the_type_is_the_regions_outcome(lab: Lab) -> None:
    account_id, name = lab.account()
    lab.emulator.fault("ec2", "RunInstances", kind="error", code="Unsupported")
    assert not lab.run(lab.activities.initialize_region, region_init(account_id, name)).ok
    assert lab.calls("ec2", "RunInstances") == 1


@pytest.mark.parametrize("operation", ["RunInstances", "DescribeInstances", "TerminateInstances"])
@pytest.mark.parametrize("kind", ["before", "after"])
def test_a_lost_answer_leaves_nothing_running(lab: Lab, operation: str, kind: str) -> None:
    account_id, name = lab.account()
    # A read is repeated at once, a termination within the attempt: only a lost launch needs the next attempt.
    lab.emulator.fault("ec2", operation, kind=kind, count=2 if operation == "DescribeInstances" else 1)
    try:
        outcome = lab.run(lab.activities.initialize_region, region_init(account_id, name))
    except Unavailable:
        outcome = lab.run(lab.activities.initialize_region, region_init(account_id, name), attempt=2)
    assert outcome.ok
    assert lab.instances(account_id) == []


def test_instances_left_by_a_killed_process_are_terminated_by_the_next_attempt(lab: Lab) -> None:
    account_id, name = lab.account()
    launch_and_die(lab, region_init(account_id, name))
    outcome = lab.run(lab.activities.initialize_region, region_init(account_id, name), attempt=2)
    assert outcome.ok
    assert lab.instances(account_id) == []
    assert lab.calls("ec2", "RunInstances") == 1


def test_instances_left_by_an_earlier_lifecycle_count_as_initialised(lab: Lab) -> None:
    account_id, name = lab.account()
    launch_and_die(lab, region_init(account_id, name))
    again = region_init(account_id, name, search=True).model_copy(update={"round": "2"})
    assert lab.run(lab.activities.initialize_region, again).ok
    assert lab.instances(account_id) == []
    assert lab.calls("ec2", "RunInstances") == 1


def test_a_lost_launch_is_found_within_the_attempt(lab: Lab) -> None:
    account_id, name = lab.account()
    lab.emulator.fault("ec2", "RunInstances", kind="after", count=1)
    assert lab.run(lab.activities.initialize_region, region_init(account_id, name)).ok
    assert lab.instances(account_id) == []


def test_a_key_that_does_not_exist_is_a_definite_refusal(lab: Lab) -> None:
    account_id, name = lab.account()
    lab.emulator.fault("ec2", "RunInstances", kind="error", code="InvalidKMSKey.NotFound")
    assert not lab.run(lab.activities.initialize_region, region_init(account_id, name)).ok


def test_an_image_that_was_withdrawn_is_looked_up_again(lab: Lab) -> None:
    account_id, name = lab.account()
    lab.run(lab.activities.initialize_region, region_init(account_id, name, region="us-west-2"))
    lab.emulator.reset_ledger()
    lab.emulator.fault("ec2", "RunInstances", kind="error", code="InvalidAMIID.NotFound", count=1)
    with pytest.raises(Unavailable):
        lab.run(lab.activities.initialize_region, region_init(account_id, name, region="us-west-2"))
    again = region_init(account_id, name, region="us-west-2").model_copy(update={"round": "2"})
    assert lab.run(lab.activities.initialize_region, again, attempt=2).ok
    assert lab.calls("ec2", "DescribeImages") == 1


def test_instances_of_others_are_left_alone(lab: Lab) -> None:
    account_id, name = lab.account()
    ec2 = lab.sessions.member(account_id).ec2(REGION)
    ec2.run_instances(ImageId=image_of(ec2), MinCount=1, MaxCount=1)
    lab.run(lab.activities.initialize_region, region_init(account_id, name, search=True))
    assert len(lab.instances(account_id)) == 1


def test_a_round_launches_twice_at_the_most(lab: Lab) -> None:
    """What an attempt knew is lost with its process: the next one proves it again, once."""
    knowing_boot_times(lab)
    account_id, name = lab.account()
    counts = []
    for attempt in (1, 2, 3, 4):
        outcome = lab.run(lab.activities.initialize_region, region_init(account_id, name), attempt=attempt)
        assert outcome.ok
        assert lab.instances(account_id) == []
        counts.append(launched(lab, account_id, name))
    assert counts == [1, 2, 2, 2]
    assert "launched before" in outcome.message


def test_verification_is_waited_for_ever_longer(lab: Lab) -> None:
    account_id, name = lab.account()
    lab.emulator.config(verification_seconds=3600)
    delays = []
    for attempt in (1, 2, 5, 9, 30):
        with pytest.raises(Pending) as pending:
            lab.run(lab.activities.initialize_region, region_init(account_id, name), attempt=attempt)
        assert pending.value.code == "PendingVerification"
        delays.append(pending.value.delay)
    assert delays == [timedelta(seconds=n) for n in (2, 4, 32, 512, 512)]


@pytest.mark.parametrize("kind", ["before", "throttle"])
def test_a_region_that_gives_no_answer_for_25_minutes_is_given_up(lab: Lab, kind: str) -> None:
    """Sixteen good regions are not lost with it."""
    account_id, name = lab.account()
    lab.emulator.fault("ec2", "RunInstances", kind=kind)
    with pytest.raises((Throttled, Unavailable)):
        lab.run(lab.activities.initialize_region, region_init(account_id, name), attempt=9, age=GIVEN_UP - SECOND)
    outcome = lab.run(lab.activities.initialize_region, region_init(account_id, name), attempt=10, age=GIVEN_UP)
    assert not outcome.ok
    assert outcome.message.startswith("EC2CreationTimeout: no instance ran within 25 minutes")


def test_a_region_that_is_not_verified_for_25_minutes_is_given_up(lab: Lab) -> None:
    account_id, name = lab.account()
    lab.emulator.config(verification_seconds=3600)
    outcome = lab.run(lab.activities.initialize_region, region_init(account_id, name), attempt=10, age=GIVEN_UP)
    assert (outcome.ok, outcome.given_up, "PendingVerification" in outcome.message) == (False, True, True)


def test_instances_launched_in_a_region_that_is_given_up_are_terminated(lab: Lab) -> None:
    account_id, name = lab.account()
    launch_and_die(lab, region_init(account_id, name))
    lab.emulator.fault("ec2", "DescribeInstances", kind="before", count=2)  # a read is repeated at once
    outcome = lab.run(lab.activities.initialize_region, region_init(account_id, name), attempt=10, age=GIVEN_UP)
    assert not outcome.ok
    assert lab.instances(account_id) == []


def test_a_region_that_cannot_even_be_looked_into_is_given_up_and_says_so(lab: Lab) -> None:
    account_id, name = lab.account()
    lab.emulator.fault("ec2", "DescribeInstances", kind="before")
    outcome = lab.run(lab.activities.initialize_region, region_init(account_id, name), attempt=10, age=GIVEN_UP)
    assert "An instance of ours may still run in the region" in outcome.message


def test_a_definite_refusal_is_the_regions_outcome(lab: Lab) -> None:
    account_id, name = lab.account()
    lab.emulator.fault("ec2", "RunInstances", kind="denied")
    for attempt in (1, 2):
        with pytest.raises(Unavailable, match="UnauthorizedOperation"):
            lab.run(lab.activities.initialize_region, region_init(account_id, name), attempt=attempt)
    outcome = lab.run(lab.activities.initialize_region, region_init(account_id, name), attempt=3)
    assert not outcome.ok
    assert "UnauthorizedOperation" in outcome.message
    lab.emulator.clear()
    lab.emulator.fault("ec2", "RunInstances", kind="error", code="VcpuLimitExceeded")
    assert not lab.run(lab.activities.initialize_region, region_init(account_id, name)).ok


def test_throttling_is_no_refusal(lab: Lab) -> None:
    account_id, name = lab.account()
    lab.emulator.fault("ec2", "RunInstances", kind="throttle")
    with pytest.raises(Throttled):
        lab.run(lab.activities.initialize_region, region_init(account_id, name))


def test_a_session_that_the_region_does_not_know_yet_is_tried_again(lab: Lab) -> None:
    account_id, name = lab.account()
    lab.emulator.fault("ec2", "RunInstances", kind="error", code="AuthFailure")
    with pytest.raises(Unavailable):
        lab.run(lab.activities.initialize_region, region_init(account_id, name))
    assert not lab.run(lab.activities.initialize_region, region_init(account_id, name), attempt=4).ok


def test_an_account_that_cannot_be_entered_is_no_outcome(lab: Lab) -> None:
    account_id, name = lab.account()
    lab.emulator.fault("sts", "AssumeRole", kind="denied")
    with pytest.raises(Denied):
        lab.run(lab.activities.initialize_region, region_init(account_id, name), age=LATE)


def test_a_cancelled_wait_terminates_what_it_launched(lab: Lab) -> None:
    account_id, name = lab.account()
    lab.emulator.config(run_instances_seconds=3600)
    launched = lab.run_and_cancel(
        lab.activities.initialize_region,
        region_init(account_id, name),
        when=lambda: len(lab.instances(account_id)) == 1,
    )
    assert isinstance(launched, CancelledError)
    assert lab.instances(account_id) == []


def test_nothing_is_launched_once_cancelled(lab: Lab) -> None:
    account_id, name = lab.account()
    with pytest.raises(CancelledError):
        lab.run(lab.activities.initialize_region, region_init(account_id, name), cancelled=True)
    assert lab.calls("ec2", "RunInstances") == 0
