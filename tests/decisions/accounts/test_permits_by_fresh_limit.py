"""A permit is given by the current limit, and the ConfigMap is read again for nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from operator import attrgetter
from typing import Any, cast

import pytest
from account_objects import AWS_ID, CONFIG, NOW, account
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from activities.accounts import organization
from activities.accounts.cache import Reader
from activities.accounts.organization import OrganizationActivities
from activities.aws.session import Sessions
from domain.accounts.config import OperatorConfig
from domain.accounts.naming import email_of
from domain.accounts.observed import Permit, Verdict
from domain.accounts.organization import ORGANIZATION, Census, MemberAccount, OrganizationMemory
from domain.accounts.passes import OrganizationWorld, PassOrganization
from domain.accounts.pool import Room
from domain.accounts.resources import Account, AccountPool
from domain.identity import Key
from domain.resource import ObjectMeta, timestamp
from engine.settings import Settings

ROOMY = CONFIG.model_copy(update={"account_limit": 1000})
FREE = Room(active=0, limit=1000, free=1000, budget=100)


class Cluster:
    """These Accounts, and the ConfigMap: as a pass has it from the cache, and as it is now."""

    settings = Settings(accounts_email_domain="example.com")
    key = staticmethod(attrgetter("key"))

    def __init__(self, config: OperatorConfig, *accounts: Account) -> None:
        self._config = config
        self._accounts = accounts or (account(),)
        self.read = 0

    async def hold(self, meta: ObjectMeta) -> str:
        return ""

    async def accounts(self, seen: dict[str, str]) -> tuple[Account, ...]:
        return self._accounts

    async def config(self, seen: dict[str, str] | None = None) -> OperatorConfig:
        if seen is not None:
            return ROOMY
        self.read += 1
        return self._config

    async def all(self, *_: object) -> tuple[AccountPool, ...]:
        return ()


async def passed(cluster: Cluster, **known: Any) -> OrganizationMemory:
    return (await world_after_pass(cluster, **known)).known


async def world_after_pass(cluster: Cluster, **known: Any) -> OrganizationWorld:
    """A pass that begins with a ConfigMap read some seconds ago."""
    activities = OrganizationActivities(cast("Reader", cluster), cast("Sessions", None), cast("Client", None))
    memory = OrganizationMemory(**{"room": FREE, **known})
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, started_time=NOW)
    look = PassOrganization(key=ORGANIZATION, memory=memory)
    return await environment.run(activities.pass_organization, look)


@pytest.fixture(autouse=True)
def permits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Key, Permit]]:
    """The permits that are sent to Accounts, in an organization without accounts."""
    sent: list[tuple[Key, Permit]] = []

    async def signal(_: Client, key: Key, __: str, permit: Permit) -> None:
        sent.append((key, permit))

    monkeypatch.setattr(organization, "signal_with_start", signal)
    monkeypatch.setattr(organization, "census", lambda *_: Census(taken_at=NOW, accounts=(), attempts=()))
    return sent


def verdicts(permits: list[tuple[Key, Permit]]) -> list[Verdict]:
    return [permit.verdict for _, permit in permits]


async def test_a_limit_that_was_lowered_a_moment_ago_gives_no_permit(permits: list[tuple[Key, Permit]]) -> None:
    cluster = Cluster(CONFIG.model_copy(update={"account_limit": 0}))
    known = await passed(cluster)
    assert verdicts(permits) == [Verdict.LIMIT_REACHED]
    assert (known.granted, cluster.read) == ({}, 1)


async def test_an_open_permit_is_no_reason_to_read_the_limit_again(permits: list[tuple[Key, Permit]]) -> None:
    cluster = Cluster(ROOMY)
    given = (await passed(cluster)).granted
    assert list(given) == [account().metadata.name]
    assert cluster.read == 1
    await passed(cluster, granted={name: NOW + timedelta(minutes=1) for name in given})
    assert verdicts(permits) == [Verdict.GRANTED] * 2
    assert cluster.read == 1


@pytest.mark.parametrize("domain", ["example.com", "Example.COM"])
async def test_whose_an_account_is_that_is_about_to_be_adopted_is_asked_once(
    permits: list[tuple[Key, Permit]], monkeypatch: pytest.MonkeyPatch, domain: str
) -> None:
    name = account().metadata.name
    there = MemberAccount(id=AWS_ID, name=name, email=email_of(name, domain), state="ACTIVE")
    monkeypatch.setattr(organization, "census", lambda *_: Census(taken_at=NOW, accounts=(there,), attempts=()))
    requests: list[set[str]] = []
    monkeypatch.setattr(organization, "foreign", lambda _, ids: requests.append(set(ids)) or set(ids))
    found = await passed(Cluster(ROOMY))
    assert found.strangers == (AWS_ID,)
    await passed(Cluster(ROOMY), strangers=found.strangers, granted=found.granted)
    await passed(Cluster(ROOMY), reported={name: "a permit"})
    assert [permit.account_id for _, permit in permits] == ["", "", AWS_ID]
    assert requests == [{AWS_ID}]


async def test_each_of_two_accounts_of_one_name_gets_its_own_verdict_once(permits: list[tuple[Key, Permit]]) -> None:
    accounts = [account(), account(meta={"namespace": "other", "creationTimestamp": timestamp(NOW)})]
    known = await passed(Cluster(ROOMY, *accounts))
    assert [key for key, _ in permits] == [each.key for each in accounts]
    assert verdicts(permits) == [Verdict.GRANTED, Verdict.QUEUED]
    assert (await passed(Cluster(ROOMY, *accounts), **dict(known))).reported == known.reported
    assert len(permits) == 2


@pytest.mark.parametrize(("creating", "limit", "gathers"), [(4, 1000, False), (5, 1000, True), (4, 4, True)])
async def test_changes_gather_only_while_aws_would_create_no_further_account(
    creating: int, limit: int, gathers: bool
) -> None:
    accounts = [account(meta={"name": f"osd-creds-mgmt-{number}"}) for number in range(creating)]
    rest = (await world_after_pass(Cluster(CONFIG.model_copy(update={"account_limit": limit}), *accounts))).rest
    assert rest == (organization.LET_CHANGES_GATHER if gathers else organization.BRISK)
