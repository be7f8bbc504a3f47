"""Which regions an account can use, asked in the default region of its partition."""

from __future__ import annotations

from typing import Any

import pytest
from account_objects import AWS_ID
from temporalio.testing import ActivityEnvironment

from activities.aws.clients import Clients
from activities.aws.session import Services
from activities.aws.usable_regions import list_regions, usable_regions
from domain.accounts.actions.region_initialization import ListRegions
from engine.errors import Unavailable


class Account(Services):
    """A member account as its session, which notes where EC2 is asked; it has the regions named in `states`."""

    def __init__(self, **states: str) -> None:
        super().__init__(Clients(connections=1), AWS_ID, observing=False)
        self.states = states
        self.asked: list[str] = []

    def member(self, _: str, partition: str, **__: Any) -> Account:
        self.partition = partition
        return self

    def ec2(self, region: str) -> Any:
        self.asked.append(region)
        return self

    def describe_regions(self, **_: object) -> dict[str, Any]:
        return {"Regions": [{"RegionName": region, "OptInStatus": state} for region, state in self.states.items()]}


@pytest.mark.parametrize(("partition", "region"), [("aws", "us-east-1"), ("aws-us-gov", "us-gov-east-1")])
def test_the_regions_are_listed_in_the_default_region_of_the_partition(partition: str, region: str) -> None:
    account, action = Account(a="opted-in"), ListRegions(account_id=AWS_ID, partition=partition)
    found = ActivityEnvironment().run(lambda: list_regions(account, action))  # type: ignore[arg-type]
    assert (account.asked, found.regions) == ([region], ("a",))


def test_a_region_that_was_not_opted_in_to_is_not_usable() -> None:
    account = Account(a="opt-in-not-required", b="opted-in", c="not-opted-in").member(AWS_ID, "aws")
    assert usable_regions(account) == ("a", "b")  # type: ignore[arg-type]


@pytest.mark.parametrize("states", [{}, {"a": "not-opted-in"}])
def test_an_answer_without_a_usable_region_is_not_believed(states: dict[str, str]) -> None:
    with pytest.raises(Unavailable):
        usable_regions(Account(**states).member(AWS_ID, "aws"))  # type: ignore[arg-type]
