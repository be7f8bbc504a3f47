"""Launches of a region initialisation that EC2, or Perdure itself, refuses."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest
from account_objects import AWS_ID, account
from temporalio.testing import ActivityEnvironment

from activities.aws.region_initialization import RegionInitializer
from activities.aws.session import Sessions
from domain.accounts.actions.region_initialization import InitializeRegion
from domain.accounts.observed import RegionOutcome
from domain.refusal import AREA_PAUSED, OBSERVE_MODE
from engine.errors import ApiError, Denied, Invalid, Throttled, Unavailable


class Region:
    """A member account's session in which EC2 has these images, by id. It refuses other ones with `refusal`."""

    def __init__(self, refusal: ApiError, **states: str) -> None:
        self.refusal = refusal
        self.states = states
        self.launched: list[str] = []

    def member(self, *_: str, **__: object) -> Region:
        return self

    def ec2(self, _: str) -> Region:
        return self

    def get_paginator(self, operation: str) -> Any:
        if operation == "describe_instances":
            return SimpleNamespace(paginate=lambda **_: [{"Reservations": []}])
        images = [{"ImageId": image, "Name": image, "State": state} for image, state in self.states.items()]
        return SimpleNamespace(paginate=lambda **_: [{"Images": images}])

    def run_instances(self, ImageId: str, **_: object) -> dict[str, Any]:  # noqa: N803 - boto's spelling
        if self.states.get(ImageId) != "available":
            raise self.refusal
        self.launched.append(ImageId)
        return {"Instances": [{"InstanceId": "i-1"}]}

    def describe_instances(self, **_: object) -> dict[str, Any]:
        return {"Reservations": [{"Instances": [{"InstanceId": "i-1", "State": {"Name": "running"}}]}]}

    def terminate_instances(self, **_: object) -> dict[str, Any]:
        return {"TerminatingInstances": [{"PreviousState": {"Name": "running"}}]}


def initialize(initializer: RegionInitializer, number: int, *, minutes: int = 0) -> RegionOutcome:
    """An attempt of an action that was scheduled so many minutes ago."""
    action = InitializeRegion(
        account_id=AWS_ID,
        owner=account().key,
        region="us-east-1",
        round=str(number),
        ami_owner="309956199498",
        tags={"clusterAccountName": "a", "clusterNamespace": "b"},
        search=False,
    )
    environment = ActivityEnvironment()
    since = environment.info.started_time - timedelta(minutes=minutes)
    environment.info = replace(environment.info, scheduled_time=since)
    return environment.run(initializer.initialize, action)


@pytest.mark.parametrize("code", ["InvalidAMIID.Unavailable", "InvalidAMIID.NotFound"])
def test_an_image_that_ec2_reports_as_unavailable_is_looked_up_again(code: str) -> None:
    region = Region(Invalid("the image is gone", code=code), first="available", second="available")
    initializer = RegionInitializer(cast("Sessions", region))
    assert initialize(initializer, 1).ok
    region.states = {"first": "deregistered", "second": "available"}
    with pytest.raises(Unavailable):
        initialize(initializer, 2)
    assert initialize(initializer, 3).ok
    assert region.launched == ["first", "second"]


@pytest.mark.parametrize(
    "error",
    [Unavailable("not sent", code=AREA_PAUSED), Denied("not sent", code=OBSERVE_MODE)],
    ids=["pause", "observe"],
)
def test_a_region_has_no_outcome_while_perdure_may_not_launch(error: ApiError) -> None:
    region = Region(error, first="available")
    initializer = RegionInitializer(cast("Sessions", region))
    assert initialize(initializer, 1).ok
    region.states = {}
    with pytest.raises(type(error)) as refused:
        initialize(initializer, 2, minutes=90)
    assert refused.value is error


def test_a_region_that_gives_no_answer_for_25_minutes_is_given_up() -> None:
    region = Region(Unavailable("no answer"), first="available")
    initializer = RegionInitializer(cast("Sessions", region))
    assert initialize(initializer, 1).ok
    region.states = {}
    assert initialize(initializer, 2, minutes=26).given_up


class Untouchable(Region):
    """A region in which an instance of ours runs, and Perdure may not terminate it."""

    def __init__(self, refusal: ApiError) -> None:
        super().__init__(refusal, first="available")
        self.asked = 0

    def get_paginator(self, operation: str) -> Any:
        if operation == "describe_instances":
            return SimpleNamespace(paginate=lambda **_: [self.describe_instances()])
        return super().get_paginator(operation)

    def terminate_instances(self, **_: object) -> dict[str, Any]:
        self.asked += 1
        raise self.refusal


@pytest.mark.parametrize(
    "error",
    [Unavailable("not sent", code=AREA_PAUSED, delay=timedelta(minutes=1)), Denied("not sent", code=OBSERVE_MODE)],
    ids=["pause", "observe"],
)
def test_an_instance_is_terminated_by_a_later_attempt_if_perdure_may_not_write(error: ApiError) -> None:
    region = Untouchable(error)
    with pytest.raises(Unavailable) as refused:
        initialize(RegionInitializer(cast("Sessions", region)), 2, minutes=90)
    assert (refused.value.code, refused.value.delay, region.asked) == (error.code, error.delay, 1)


def test_a_region_is_not_given_up_while_its_instance_may_not_be_terminated() -> None:
    region = Untouchable(Unavailable("not sent", code=AREA_PAUSED))
    region.run_instances = Mock(side_effect=Throttled("slow down"))  # type: ignore[method-assign]
    with pytest.raises(Unavailable) as refused:
        initialize(RegionInitializer(cast("Sessions", region)), 1, minutes=26)
    assert refused.value.code == AREA_PAUSED
