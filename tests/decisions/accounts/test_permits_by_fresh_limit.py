"""A permit is given by the limit as it is then, and the ConfigMap is read anew for nothing else."""

from __future__ import annotations

from datetime import timedelta
from operator import attrgetter
from types import SimpleNamespace
from typing import cast

import pytest
from account_objects import AWS_ID, CONFIG, NOW, account
from temporalio.client import Client

from activities.accounts import organization
from activities.accounts.cache import Reader
from activities.accounts.organization import OrganizationActivities
from activities.aws.session import Sessions
from domain.accounts.config import OperatorConfig
from domain.accounts.creation_permits import Verdicts
from domain.accounts.naming import email_of
from domain.accounts.observed import Permit, Verdict
from domain.accounts.organization import Budget, Census, MemberAccount, OrganizationMemory
from domain.accounts.resources import AccountPool
from domain.identity import Key
from domain.resource import timestamp

ROOMY = CONFIG.model_copy(update={"account_limit": 1000})


class Cluster:
    """The ConfigMap as it is now."""

    settings = SimpleNamespace(accounts_email_domain="example.com")
    key = staticmethod(attrgetter("key"))

    def __init__(self, config: OperatorConfig) -> None:
        self._config = config
        self.read = 0

    async def config(self) -> OperatorConfig:
        self.read += 1
        return self._config

    async def all(self, *_: object) -> tuple[AccountPool, ...]:
        return ()


async def judged(cluster: Cluster, known: OrganizationMemory) -> Verdicts:
    """The verdicts of a pass that begins with a ConfigMap read some seconds ago."""
    activities = OrganizationActivities(cast("Reader", cluster), cast("Sessions", None), cast("Client", None))
    return await activities._verdicts(known, [account()], ROOMY, Budget(), NOW)


@pytest.fixture(autouse=True)
def nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(organization, "census", lambda *_: Census(taken_at=NOW, accounts=(), attempts=()))


async def test_a_limit_that_was_lowered_a_moment_ago_gives_no_permit() -> None:
    cluster = Cluster(CONFIG.model_copy(update={"account_limit": 0}))
    found = await judged(cluster, OrganizationMemory())
    assert [permit.verdict for permit in found.permits.values()] == [Verdict.LIMIT_REACHED]
    assert (found.granted, cluster.read) == ({}, 1)


async def test_an_open_permit_is_no_reason_to_read_the_limit_again() -> None:
    cluster = Cluster(ROOMY)
    given = (await judged(cluster, OrganizationMemory())).granted
    assert list(given) == [account().metadata.name]
    assert cluster.read == 1
    found = await judged(cluster, OrganizationMemory(granted={name: NOW + timedelta(minutes=1) for name in given}))
    assert [permit.verdict for permit in found.permits.values()] == [Verdict.GRANTED]
    assert cluster.read == 1


async def test_whose_an_account_is_that_is_about_to_be_adopted_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    name = account().metadata.name
    there = MemberAccount(id=AWS_ID, name=name, email=email_of(name, "example.com"), state="ACTIVE")
    monkeypatch.setattr(organization, "census", lambda *_: Census(taken_at=NOW, accounts=(there,), attempts=()))
    asked: list[set[str]] = []
    monkeypatch.setattr(organization, "foreign", lambda _, ids: asked.append(set(ids)) or set(ids))
    found = await judged(Cluster(ROOMY), OrganizationMemory())
    assert (found.permits[name].account_id, found.strangers) == ("", (AWS_ID,))
    again = await judged(Cluster(ROOMY), OrganizationMemory(strangers=found.strangers, granted=found.granted))
    assert again.permits[name].account_id == ""
    own = await judged(Cluster(ROOMY), OrganizationMemory(told={name: "a permit"}))
    assert own.permits[name].account_id == AWS_ID
    assert asked == [{AWS_ID}]


async def test_each_of_two_accounts_of_one_name_is_told_its_own_verdict_once(monkeypatch: pytest.MonkeyPatch) -> None:
    accounts = [account(), account(meta={"namespace": "other", "creationTimestamp": timestamp(NOW)})]
    told: list[tuple[Key, Verdict]] = []

    async def tell(_: Client, key: Key, __: str, permit: Permit) -> None:
        told.append((key, permit.verdict))

    monkeypatch.setattr(organization, "tell", tell)
    activities = OrganizationActivities(cast("Reader", Cluster(ROOMY)), cast("Sessions", None), cast("Client", None))
    found = await activities._verdicts(OrganizationMemory(), accounts, ROOMY, Budget(), NOW)
    words = await activities._tell(accounts, found, {})
    assert told == [(accounts[0].key, Verdict.GRANTED), (accounts[1].key, Verdict.QUEUED)]
    assert await activities._tell(accounts, found, words) == words
    assert len(told) == 2
