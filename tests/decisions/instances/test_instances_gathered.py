"""Questions about many instances: one call answers them, and one more the hooks of each group."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from typing import cast

import pytest
from temporalio.testing import ActivityEnvironment

from activities.aws.session import Services
from activities.instances import aws_queries
from activities.instances.aws_queries import AskActivities, ServedPlaces
from domain.identity import Key
from domain.instances.actions import Answer, AskInstance
from domain.instances.event_verification import Facts, Question
from domain.instances.hook_timeouts import DEFAULT_TIMING, HookTiming
from domain.instances.workflow_ids import InstanceKey
from engine.errors import Throttled

GROUPS = {"i-1": "a", "i-2": "a", "i-3": "b", "i-4": ""}
NOW = datetime(2026, 5, 4, 10, 0, tzinfo=UTC)


class Cloud:
    """Instances of two groups, and what was asked about them; hooks of one group may not be told."""

    def __init__(self) -> None:
        self.described: list[list[str]] = []
        self.hooks: list[str] = []
        self.refused = ""
        self.asks = AskActivities(cast(ServedPlaces, self))

    def caller(self, account: str, region: str) -> Services:
        return cast(Services, None)

    def describe(self, _: object, region: str, ids: Collection[str], *__: object) -> dict[str, Facts]:
        self.described.append(sorted(ids))
        return {each: Facts(at=NOW, asked=(Question.GROUP,), group=GROUPS[each]) for each in ids}

    def hook_timings(self, _: object, region: str, group: str) -> dict[str, HookTiming]:
        self.hooks.append(group)
        if group == self.refused:
            raise Throttled("slower")
        return {f"hook of {group}": DEFAULT_TIMING}

    async def answers(self) -> list[Answer | BaseException]:
        """What is answered of all instances, which are asked for at once."""
        keys = [InstanceKey(account="1", region="r", instance_id=each).lifecycle for each in GROUPS]
        return await asyncio.gather(*map(self._ask, keys), return_exceptions=True)

    async def _ask(self, key: Key) -> Answer:
        environment = ActivityEnvironment()
        environment.info = replace(environment.info, started_time=datetime.now(UTC))
        question = AskInstance(key=key, questions=(Question.GROUP,))
        return cast(Answer, await environment.run(self.asks.ask, question))


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Cloud:
    made = Cloud()
    monkeypatch.setattr(aws_queries, "describe", made.describe)
    monkeypatch.setattr(aws_queries, "hook_timings", made.hook_timings)
    return made


async def test_the_hooks_of_a_group_are_asked_for_once_for_all_of_its_instances(cloud: Cloud) -> None:
    answers = [each for each in await cloud.answers() if isinstance(each, Answer)]
    assert cloud.described == [sorted(GROUPS)]
    assert sorted(cloud.hooks) == ["a", "b"]
    assert [each.facts.group for each in answers] == list(GROUPS.values())
    assert [list(each.timings) for each in answers] == [["hook of a"], ["hook of a"], ["hook of b"], []]
    assert all(each.facts.at > NOW for each in answers)  # as of when it was asked


async def test_hooks_that_are_not_told_are_missing_to_their_own_group_alone(cloud: Cloud) -> None:
    cloud.refused = "a"
    answers = await cloud.answers()
    assert [isinstance(each, Throttled) for each in answers] == [True, True, False, False]
    cloud.refused = ""
    assert all(isinstance(each, Answer) for each in await cloud.answers())
