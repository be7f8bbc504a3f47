"""In which region an account is asked for its regions: its partition's region for services without one."""

from __future__ import annotations

from typing import Any

import pytest
from account_objects import AWS_ID
from temporalio.testing import ActivityEnvironment

from activities.aws.clients import Clients
from activities.aws.region_initialization import list_regions
from activities.aws.session import Services
from domain.accounts.actions.region_initialization import ListRegions


class Account(Services):
    """A member account as its session, which notes where EC2 is asked."""

    def __init__(self) -> None:
        super().__init__(Clients(connections=1), AWS_ID, observing=False)
        self.asked: list[str] = []

    def member(self, _: str, partition: str, **__: Any) -> Account:
        self.partition = partition
        return self

    def ec2(self, region: str) -> Any:
        self.asked.append(region)
        return self

    def describe_regions(self, **_: object) -> dict[str, Any]:
        return {"Regions": [{"RegionName": region} for region in self.asked]}


@pytest.mark.parametrize(("partition", "region"), [("aws", "us-east-1"), ("aws-us-gov", "us-gov-east-1")])
def test_the_regions_are_listed_in_the_default_region_of_the_partition(partition: str, region: str) -> None:
    account, action = Account(), ListRegions(account_id=AWS_ID, partition=partition)
    found = ActivityEnvironment().run(lambda: list_regions(account, action))  # type: ignore[arg-type]
    assert (account.asked, found.regions) == ([region], (region,))
