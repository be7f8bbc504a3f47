"""Opt-in regions that Perdure may not enable at the moment."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest
from account_objects import AWS_ID
from temporalio.testing import ActivityEnvironment

from activities.aws.opt_in_regions import enable_regions
from activities.aws.session import Sessions
from domain.accounts.actions.opt_in_regions import EnableRegions
from domain.accounts.opt_in_regions import MANUAL_ACTION, TODO
from domain.refusal import OBSERVE_MODE
from engine.errors import Denied


class Member:
    """A member account's session, in which one region is disabled and EnableRegion is refused."""

    poll = timedelta(minutes=1)

    def __init__(self, code: str) -> None:
        self.code = code

    def member(self, *_: str, **__: object) -> Member:
        return self

    def account(self) -> Member:
        return self

    def get_paginator(self, _: str) -> Any:
        return self

    def paginate(self) -> list[dict[str, Any]]:
        return [{"Regions": [{"RegionName": "me-south-1", "RegionOptStatus": "DISABLED"}]}]

    def enable_region(self, **_: str) -> None:
        raise Denied("not sent", code=self.code)


def enabled(member: Member) -> dict[str, str]:
    action = EnableRegions(account_id=AWS_ID, seen={"me-south-1": TODO})
    environment = ActivityEnvironment()
    since = environment.info.started_time - timedelta(hours=1)
    environment.info = replace(environment.info, attempt=9, scheduled_time=since)
    return environment.run(enable_regions, cast("Sessions", member), action).statuses


def test_a_region_is_left_to_a_person_if_aws_refuses_to_enable_it() -> None:
    assert enabled(Member("AccessDeniedException")) == {"me-south-1": MANUAL_ACTION}


def test_no_region_is_left_to_a_person_because_of_observe_mode() -> None:
    with pytest.raises(Denied):
        enabled(Member(OBSERVE_MODE))
