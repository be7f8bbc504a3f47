"""With encryption on, Temporal's store holds nothing of what lifecycles receive, do, fail with and answer.

The store's file itself is searched for words that the lifecycle was given; without encryption every one of them is
found there, which shows that the search would see them.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from encryption_keys import add_key
from passing import Passes, new_key, until_phase, working
from temporal_server import TemporalServer, pointing_at, serving
from temporalio.client import Client
from waiting import eventually

from domain.identity import Key
from engine.backlog import of_objectless
from engine.errors import Denied, Unavailable
from engine.temporal import connect, wake
from starters.cli.lifecycle import attempts_of

# The content of a result and a query, a heartbeat and a summary; of a failure; of a signal.
WHY, FAILURE, REASON = "sentinel-of-results", "sentinel-of-failures", "sentinel-of-signals"


async def lived(client: Client) -> Key:
    """A lifecycle that has observed, was woken, got a person's signal, and cannot observe any more."""
    key, passes = new_key(), Passes(WHY)

    def refuse() -> None:
        raise Denied(f"aws: {FAILURE}")

    async with working(client, passes):
        await wake(client, key)
        await until_phase(client, key, "Waiting")
        passes.failing = refuse
        await wake(client, key)
        handle: Any = client.get_workflow_handle(key.workflow_id)

        async def hindered() -> Any:
            return (await handle.query("why"))["hindrances"]

        (hindrance,) = await eventually(hindered, "the failure reported")
        assert FAILURE in hindrance["message"]
        await handle.signal("retry_now", REASON)
    await handle.terminate("the test is over")
    return key


async def test_nothing_readable_is_in_the_store_unless_encryption_is_off(
    tmp_path: Path, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as server:
        await lived(await connect(pointing_at(server, monkeypatch, temporal_keys=str(keys)), "tests"))
        stored = server.stored()
        assert [word for word in (WHY, FAILURE, REASON) if word.encode() in stored] == []
        assert b"binary/encrypted" in stored
        assert b"AccountPool/aws-account-operator/default/" in stored  # ids stay readable, by decision

        await lived(await connect(pointing_at(server, monkeypatch), "tests"))
        stored = server.stored()
        assert [word for word in (WHY, FAILURE, REASON) if word.encode() not in stored] == []


async def test_encryption_is_turned_on_under_a_lifecycle_that_runs(
    temporal: TemporalServer, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written plainly at first, with the first key then, with the second at last: one history, read through."""
    key, passes = new_key(), Passes()
    (keys / "current").write_text("")
    for number, current in enumerate(("", "a", "b"), 1):
        if current == "b":
            add_key(keys, "b")
        (keys / "current").write_text(current)
        client = await connect(pointing_at(temporal, monkeypatch, temporal_keys=str(keys)), "tests")
        async with working(client, passes):
            await wake(client, key)

            async def looked(wanted: int = number) -> bool:
                return passes.of(key) >= wanted

            await eventually(looked, f"look {number}")
            await until_phase(client, key, "Waiting")
    handle: Any = client.get_workflow_handle(key.workflow_id)
    history = (await handle.fetch_history()).to_json()
    await handle.terminate("the test is over")
    written = {base64.b64encode(name).decode() for name in (b"a", b"b")}
    assert [name for name in written if name not in history] == []


async def test_people_read_why_an_action_is_retried_although_failures_are_encrypted(
    temporal: TemporalServer, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, key = pointing_at(temporal, monkeypatch, temporal_keys=str(keys)), new_key()
    client = await connect(settings, "tests")

    def hang() -> None:
        raise Unavailable(f"aws: {FAILURE}")

    async with working(client, Passes(WHY, hang)):
        await wake(client, key)
        tried: Any = await eventually(lambda: attempts_of(client, key), "the failed attempt")
        late: Any = await eventually(lambda: of_objectless(client, [key], datetime.now(UTC)), "the late action")
    assert tried[0].message == f"aws: {FAILURE}"
    assert late[0].why.endswith(f"the previous one: aws: {FAILURE}")
    without_keys = await connect(pointing_at(temporal, monkeypatch), "tests")
    assert FAILURE not in (await attempts_of(without_keys, key))[0].message
    await client.get_workflow_handle(key.workflow_id).terminate("the test is over")
