"""What is asked of EC2 and Auto Scaling about instances, by clients that are as narrow as AWS."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast

import pytest

from activities.aws.instances import MOST_AT_ONCE, complete_hook, describe, describe_groups, send_heartbeat
from activities.aws.session import Services
from domain.instances.event_verification import Question
from domain.instances.events import InstanceState
from engine.errors import Invalid, Unavailable

NOW = datetime(2026, 5, 4, 10, 0, tzinfo=UTC)
REGION = "eu-central-1"
IDS = [f"i-{number:017x}" for number in range(MOST_AT_ONCE)]
# So many things at most in one part of an answer.
PART = 30

Json = dict[str, Any]


class Aws:
    """Knows every instance; each runs on Spot, has a scheduled event, and is in the group."""

    def client(self, service: str, region: str) -> Aws:
        assert region == REGION
        return self

    def describe_instances(self, *, Filters: list[Json], **more: Any) -> Json:  # noqa: N803
        ids = _values(Filters)
        return self._parts(ids, more, lambda some: {"Reservations": [{"Instances": _states(some)}]})

    def describe_spot_instance_requests(self, *, Filters: list[Json], **more: Any) -> Json:  # noqa: N803
        status = {"Code": "marked-for-termination"}
        return self._parts(
            _values(Filters),
            more,
            lambda some: {"SpotInstanceRequests": [{"InstanceId": each, "Status": status} for each in some]},
        )

    def describe_instance_status(self, *, InstanceIds: list[str], IncludeAllInstances: bool, **more: Any) -> Json:  # noqa: N803
        assert len(InstanceIds) <= 100, "Maximum 100 explicitly specified instance IDs"
        events = [{"InstanceEventId": "e", "Code": "instance-stop"}]
        return self._parts(
            InstanceIds,
            more,
            lambda some: {"InstanceStatuses": [{"InstanceId": each, "Events": events} for each in some]},
        )

    def describe_auto_scaling_instances(self, *, InstanceIds: list[str], **more: Any) -> Json:  # noqa: N803
        assert len(InstanceIds) <= 50
        group = {"AutoScalingGroupName": "g", "LifecycleState": "InService"}
        return self._parts(
            InstanceIds,
            more,
            lambda some: {"AutoScalingInstances": [{"InstanceId": each, **group} for each in some]},
        )

    def describe_auto_scaling_groups(self, *, AutoScalingGroupNames: list[str], MaxRecords: int, **more: Any) -> Json:  # noqa: N803
        assert len(AutoScalingGroupNames) <= MaxRecords <= 100
        instances = [{"InstanceId": IDS[0], "LifecycleState": "InService"}]
        return self._parts(
            AutoScalingGroupNames,
            more,
            lambda some: {
                "AutoScalingGroups": [{"AutoScalingGroupName": each, "Instances": instances} for each in some]
            },
        )

    def _parts(self, requested: Sequence[str], more: Json, answer: Callable[[Sequence[str]], Json]) -> Json:
        first = int(more.get("NextToken", 0))
        rest = {"NextToken": str(first + PART)} if first + PART < len(requested) else {}
        return {**answer(requested[first : first + PART]), **rest}


def _values(filters: Sequence[Mapping[str, Any]]) -> list[str]:
    (one,) = filters
    assert one["Name"] == "instance-id"
    assert len(one["Values"]) <= 200
    return list(one["Values"])


def _states(ids: Sequence[str]) -> list[Json]:
    return [{"InstanceId": each, "State": {"Name": "running"}} for each in ids]


def test_all_that_is_asked_about_at_once_is_answered() -> None:
    aws = Aws()
    found = describe(cast(Services, aws), REGION, IDS, tuple(Question), NOW)
    assert set(found) == set(IDS)
    for facts in found.values():
        assert (facts.found, facts.state, facts.spot_code) == (True, InstanceState.RUNNING, "marked-for-termination")
        assert [event.code for event in facts.scheduled] == ["instance-stop"]
        assert (facts.group, facts.lifecycle) == ("g", "InService")


def test_an_empty_answer_about_statuses_withdraws_no_scheduled_event(monkeypatch: pytest.MonkeyPatch) -> None:
    aws, ended = Aws(), [{"InstanceId": IDS[0], "State": {"Name": "terminated"}}]
    monkeypatch.setattr(aws, "describe_instance_status", lambda **_: {})
    with pytest.raises(Unavailable, match="the status of none of 1 instances"):
        describe(cast(Services, aws), REGION, IDS[:1], (Question.STATUS,), NOW)
    monkeypatch.setattr(aws, "describe_instances", lambda **_: {"Reservations": [{"Instances": ended}]})
    assert describe(cast(Services, aws), REGION, IDS[:1], (Question.STATUS,), NOW)[IDS[0]].gone


def test_groups_that_come_in_parts_are_all_found() -> None:
    names = [f"group-{number}" for number in range(100)]
    assert describe_groups(cast(Services, Aws()), REGION, names) == {name: {IDS[0]: "InService"} for name in names}


class Scaling:
    """Auto Scaling, which refuses every answer to a hook."""

    def __init__(self, error: Invalid) -> None:
        self._error = error

    def client(self, service: str, region: str) -> Scaling:
        return self

    def complete_lifecycle_action(self, **what: str) -> Json:
        raise self._error

    record_lifecycle_action_heartbeat = complete_lifecycle_action


@pytest.mark.parametrize("answer", [send_heartbeat, partial(complete_hook, result="CONTINUE")])
@pytest.mark.parametrize(
    ("message", "gone"),
    [
        ("No active Lifecycle Action found with token t", True),
        ("AutoScalingGroup name not found - no such group", True),
        ("Value 't' at 'lifecycleActionToken' failed to satisfy constraint", False),
    ],
)
def test_only_an_action_that_waits_no_more_counts_as_answered(
    answer: Callable[..., bool], message: str, *, gone: bool
) -> None:
    scaling = cast(Services, Scaling(Invalid(message, code="ValidationError")))
    if gone:
        assert not answer(scaling, REGION, "g", "drain", "t")
        return
    with pytest.raises(Invalid, match="failed to satisfy constraint"):
        answer(scaling, REGION, "g", "drain", "t")
