"""Which lifecycles a watcher opens by itself, and that it does not give up."""

from __future__ import annotations

import os

import pytest
from temporalio.service import RPCError, RPCStatusCode

from domain.identity import Key
from engine.settings import Settings
from starters.watch import objectless_lifecycles
from starters.watch.main import identity
from starters.watch.objectless_lifecycles import open_objectless, opened_by_areas

QUEUES = ("123456789012/eu-central-1", "123456789012/eu-central-1/c1-queue")


def test_the_queues_and_rules_are_observed_where_perdure_manages_them() -> None:
    opened = opened_by_areas(Settings(instances_queues=QUEUES))
    names = ["eu-central-1.perdure-instance-events", "eu-central-1.c1-queue"]
    assert [(key.namespace, key.name) for key in opened] == [("123456789012", name) for name in names]
    assert opened_by_areas(Settings(instances_queues=QUEUES, instances_setup=False)) == ()
    assert opened_by_areas(Settings()) == ()


async def test_a_wake_that_fails_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objectless_lifecycles, "AGAIN_SECONDS", 0.0)
    woken: list[Key] = []

    async def wake(key: Key) -> None:
        woken.append(key)
        if len(woken) < 3:
            raise RPCError("away", RPCStatusCode.UNAVAILABLE, b"")

    keys = opened_by_areas(Settings(instances_queues=QUEUES))
    await open_objectless(keys, wake)
    assert woken == [keys[0], keys[0], keys[0], keys[1]]


def test_a_watcher_started_again_has_the_same_name_in_the_lease() -> None:
    assert identity(Settings(health_port=8080)).endswith("_8080")
    assert identity(Settings()).endswith(f"_{os.getpid()}")
