"""Queries of EC2 and Auto Scaling about many instances, and calls that answer lifecycle hooks or terminate instances.

Instances are selected by a filter of up to 200 ids: an unknown id in a parameter would make EC2 refuse the whole call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Protocol, cast

from activities.aws.clients import Answer
from activities.aws.session import Services
from domain.instances.event_verification import Facts, Question, ScheduledEvent
from domain.instances.events import InstanceState
from domain.instances.hook_timeouts import DEFAULT_TIMING, HookTiming
from domain.instances.machine_pool_labels import GroupRecord, LastResult
from domain.model import Model
from engine.errors import Invalid, Unavailable
from engine.kube.json import at, sequence, text

MOST_AT_ONCE = 200
MOST_GROUPS = 100
_MOST_STATUSES = 100
_MOST_IN_GROUPS = 50
_MOST_ACTIVITIES = 20
# Parts of the messages that report a missing lifecycle action: Auto Scaling gives every invalid request the same code.
_NO_ACTION = ("No active Lifecycle Action found", "not found")
_ENDING = (InstanceState.SHUTTING_DOWN, InstanceState.TERMINATED)


class _AutoScaling(Protocol):
    def describe_auto_scaling_instances(self, *, InstanceIds: Sequence[str]) -> Answer: ...  # noqa: N803

    def describe_auto_scaling_groups(
        self,
        *,
        AutoScalingGroupNames: Sequence[str],  # noqa: N803
        MaxRecords: int,  # noqa: N803
    ) -> Answer: ...

    def describe_lifecycle_hooks(self, *, AutoScalingGroupName: str) -> Answer: ...  # noqa: N803

    def describe_scaling_activities(self, *, AutoScalingGroupName: str, MaxRecords: int) -> Answer: ...  # noqa: N803

    def record_lifecycle_action_heartbeat(self, **what: str) -> Answer: ...

    def complete_lifecycle_action(self, **what: str) -> Answer: ...


class _Ec2(Protocol):
    def describe_instances(self, **what: object) -> Answer: ...

    def describe_spot_instance_requests(self, **what: object) -> Answer: ...

    def describe_instance_status(self, **what: object) -> Answer: ...

    def terminate_instances(self, *, InstanceIds: Sequence[str]) -> Answer: ...  # noqa: N803


class GroupFound(Model):
    """A group: the lifecycle states of its instances by id, and how its latest scaling activities ended."""

    instances: dict[str, str] = {}
    record: GroupRecord = GroupRecord()


def describe(
    caller: Services, region: str, ids: Collection[str], questions: Collection[Question], moment: datetime
) -> dict[str, Facts]:
    """AWS's answers to `questions`, by instance id. At most 200 ids; `moment` is the time of the query. Raises
    Unavailable for an empty answer about the instances' status.
    """
    ec2, wanted = _ec2(caller, region), sorted(set(ids))
    distinct = tuple(sorted(set(questions)))
    unknown = Facts(at=moment, asked=distinct, found=False, tags={} if Question.TAGS in distinct else None)
    found = dict.fromkeys(wanted, unknown)
    for instance in _instances(ec2, wanted):
        found[text(instance, "InstanceId")] = _facts(instance, moment, distinct)
    known = [each for each, facts in found.items() if facts.found]
    if Question.SPOT in distinct and known:
        for each, facts in _spot(ec2, known).items():
            found[each] = found[each].model_copy(update=facts)
    living = [each for each in known if not found[each].gone]
    if Question.STATUS in distinct and living:
        statuses = _status(ec2, living)
        if not statuses:  # it would withdraw every scheduled event
            raise Unavailable(f"EC2 gave the status of none of {len(living)} instances in {region}", code="NoStatus")
        for each, facts in statuses.items():
            found[each] = found[each].model_copy(update=facts)
    if Question.GROUP in distinct:
        for each, facts in _membership(_auto_scaling(caller, region), wanted).items():
            found[each] = found[each].model_copy(update=facts)
    return {each: found[each] for each in wanted}


def hook_timings(caller: Services, region: str, group: str) -> dict[str, HookTiming]:
    answer = _auto_scaling(caller, region).describe_lifecycle_hooks(AutoScalingGroupName=group)
    return {text(hook, "LifecycleHookName"): _timing(hook) for hook in sequence(answer, "LifecycleHooks")}


def describe_group(caller: Services, region: str, group: str) -> GroupFound | None:
    """The group; None if Auto Scaling does not know it."""
    found = describe_groups(caller, region, [group])
    if group not in found:
        return None
    client = _auto_scaling(caller, region)
    activities = client.describe_scaling_activities(AutoScalingGroupName=group, MaxRecords=_MOST_ACTIVITIES)
    return GroupFound(instances=found[group], record=_results(sequence(activities, "Activities")))


def describe_groups(caller: Services, region: str, groups: Sequence[str]) -> dict[str, dict[str, str]]:
    """Lifecycle states by group and instance id, of at most 100 groups; unknown groups are left out."""
    client = _auto_scaling(caller, region)
    answers = _parts(client.describe_auto_scaling_groups, AutoScalingGroupNames=groups, MaxRecords=MOST_GROUPS)
    return {
        text(group, "AutoScalingGroupName"): {
            text(each, "InstanceId"): text(each, "LifecycleState") for each in sequence(group, "Instances")
        }
        for answer in answers
        for group in sequence(answer, "AutoScalingGroups")
    }


def send_heartbeat(caller: Services, region: str, group: str, hook: str, token: str) -> bool:
    """Returns whether the lifecycle action was still waiting."""
    return _answer_hook(
        lambda: _auto_scaling(caller, region).record_lifecycle_action_heartbeat(
            AutoScalingGroupName=group, LifecycleHookName=hook, LifecycleActionToken=token
        )
    )


def complete_hook(caller: Services, region: str, group: str, hook: str, token: str, result: str) -> bool:
    """Returns whether the lifecycle action was still waiting."""
    return _answer_hook(
        lambda: _auto_scaling(caller, region).complete_lifecycle_action(
            AutoScalingGroupName=group,
            LifecycleHookName=hook,
            LifecycleActionToken=token,
            LifecycleActionResult=result,
        )
    )


def terminate(caller: Services, region: str, account: str, instance_id: str) -> bool:
    """Returns False if the instance is absent or already terminating. Raises Invalid if it is in another account or
    region.
    """
    ec2 = _ec2(caller, region)
    for answer in _parts(ec2.describe_instances, Filters=[{"Name": "instance-id", "Values": [instance_id]}]):
        for reservation in sequence(answer, "Reservations"):
            for each in sequence(reservation, "Instances"):
                if text(each, "InstanceId") != instance_id:
                    continue
                zone, owner = text(each, "Placement", "AvailabilityZone"), text(reservation, "OwnerId")
                if owner != account or not zone.startswith(region):
                    where = f"in account {owner} and zone {zone}, not in account {account} and region {region}"
                    raise Invalid(f"{instance_id} is {where}: it is not terminated", code="NotTheInstance")
                if text(each, "State", "Name") in _ENDING:
                    return False
                ec2.terminate_instances(InstanceIds=[instance_id])
                return True
    return False


def _answer_hook(call: Callable[[], Answer]) -> bool:
    try:
        call()
    except Invalid as error:
        if error.code != "ValidationError" or not any(words in error.message for words in _NO_ACTION):
            raise
        return False
    return True


# --- EC2 ---


def _instances(ec2: _Ec2, ids: Sequence[str]) -> Iterator[object]:
    for answer in _parts(ec2.describe_instances, Filters=[{"Name": "instance-id", "Values": list(ids)}]):
        for reservation in sequence(answer, "Reservations"):
            yield from sequence(reservation, "Instances")


def _facts(instance: object, moment: datetime, questions: tuple[Question, ...]) -> Facts:
    state = text(instance, "State", "Name")
    tags = {text(tag, "Key"): text(tag, "Value") for tag in sequence(instance, "Tags")}
    return Facts(
        at=moment,
        asked=questions,
        state=InstanceState(state) if state in set(InstanceState) else None,
        spot=text(instance, "InstanceLifecycle") == "spot",
        tags=tags if Question.TAGS in questions else None,
    )


def _spot(ec2: _Ec2, ids: Sequence[str]) -> dict[str, dict[str, object]]:
    return {
        text(each, "InstanceId"): {"spot": True, "spot_code": text(each, "Status", "Code")}
        for answer in _parts(
            ec2.describe_spot_instance_requests, Filters=[{"Name": "instance-id", "Values": list(ids)}]
        )
        for each in sequence(answer, "SpotInstanceRequests")
        if text(each, "InstanceId") in ids
    }


def _status(ec2: _Ec2, ids: Sequence[str]) -> dict[str, dict[str, object]]:
    return {
        text(each, "InstanceId"): {"scheduled": tuple(_scheduled(event) for event in sequence(each, "Events"))}
        for first in range(0, len(ids), _MOST_STATUSES)
        for answer in _parts(
            ec2.describe_instance_status, InstanceIds=ids[first : first + _MOST_STATUSES], IncludeAllInstances=True
        )
        for each in sequence(answer, "InstanceStatuses")
        if text(each, "InstanceId") in ids
    }


def _scheduled(event: object) -> ScheduledEvent:
    begin = at(event, "NotBefore")
    return ScheduledEvent(
        id=text(event, "InstanceEventId"),
        code=text(event, "Code"),
        not_before=begin if isinstance(begin, datetime) else None,
        description=text(event, "Description"),
    )


# --- Auto Scaling ---


def _membership(client: _AutoScaling, ids: Sequence[str]) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = {}
    for first in range(0, len(ids), _MOST_IN_GROUPS):
        some = ids[first : first + _MOST_IN_GROUPS]
        for answer in _parts(client.describe_auto_scaling_instances, InstanceIds=some):
            for each in sequence(answer, "AutoScalingInstances"):
                facts = {"group": text(each, "AutoScalingGroupName"), "lifecycle": text(each, "LifecycleState")}
                found[text(each, "InstanceId")] = dict(facts)
    return {each: facts for each, facts in found.items() if each in ids}


def _timing(hook: object) -> HookTiming:
    heartbeat, limit = at(hook, "HeartbeatTimeout"), at(hook, "GlobalTimeout")
    return HookTiming(
        heartbeat_timeout=timedelta(seconds=heartbeat)
        if isinstance(heartbeat, int)
        else DEFAULT_TIMING.heartbeat_timeout,
        global_timeout=timedelta(seconds=limit) if isinstance(limit, int) else None,
    )


def _results(activities: Sequence[object]) -> GroupRecord:
    results: dict[str, LastResult] = {}
    for each in activities:
        what = _activity(text(each, "Description"))
        ended, code = at(each, "EndTime"), text(each, "StatusCode")
        if what and what not in results and isinstance(ended, datetime) and code in ("Successful", "Failed"):
            detail = text(each, "StatusMessage")
            results[what] = LastResult(time=ended, failed=code == "Failed", detail=detail, key=text(each, "ActivityId"))
    return GroupRecord(results=results)


def _activity(description: str) -> str:
    for begin, what in (("Launching", "launch"), ("Terminating", "terminate")):
        if description.startswith(begin):
            return what
    return ""


def _parts(call: Callable[..., Answer], **question: object) -> Iterator[Answer]:
    following: dict[str, object] = {}
    while True:
        answer = call(**question, **following)
        yield answer
        if not (token := text(answer, "NextToken")):
            return
        following = {"NextToken": token}


def _ec2(caller: Services, region: str) -> _Ec2:
    return cast("_Ec2", caller.client("ec2", region))


def _auto_scaling(caller: Services, region: str) -> _AutoScaling:
    return cast("_AutoScaling", caller.client("autoscaling", region))
