"""Liveness fails for loops that make no progress, and for nothing else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from aiohttp import web

from domain.accounts import ACCOUNT
from domain.identity import Key
from domain.operator_domain import DEFAULT
from engine.health import Health, Progress
from engine.kube import KubeApi
from engine.kube import reflector as reflectors
from engine.kube.connection import Connection
from engine.kube.informer_cache import Store
from engine.kube.json import JsonObject
from engine.kube.leader_election import LeaderElection
from engine.kube.reflector import Followed
from engine.reachability import api_server_reached
from starters.watch.main import stand_by
from starters.watch.wake_queue import WakeQueue

KEY = Key(kind="Account", namespace="n", name="a", uid="u")


@pytest.fixture
async def api() -> AsyncIterator[KubeApi]:
    """The client of a server that answers each list with a number in the place of the metadata, and a watch never."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/readyz":
            return web.Response(text="ok")
        return web.json_response(
            {"kind": "AccountList", "metadata": {"resourceVersion": "1"}, "items": [{"metadata": 7}]}
        )

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0]
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": f"http://{host}:{port}"}}],
        "users": [{"name": "u", "user": {}}],
    }
    connection = Connection(content=content)
    await connection.load()
    async with KubeApi(
        connection, process="tests", request_timeout=timedelta(seconds=20), operator_domain=DEFAULT
    ) as found:
        yield found
    await runner.cleanup()


async def test_a_watch_that_a_bug_ended_makes_the_process_dead(api: KubeApi) -> None:
    health = Health()

    def fail(before: JsonObject | None, after: JsonObject | None) -> None:
        raise RuntimeError("a listener's bug")

    async with api_server_reached(health, api, "test"), Store(api) as store:
        assert health.dead() == []
        store.follow(Followed(ACCOUNT)).listen(fail)
        async with asyncio.timeout(20):
            while not health.dead():  # noqa: ASYNC110 - health is asked, as kubelet does
                await asyncio.sleep(0.01)
        (reason,) = health.dead()
        assert "the watch of Account" in reason
        assert "a listener's bug" in reason


async def test_a_watch_that_makes_no_progress_makes_the_process_dead(
    api: KubeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    health = Health()
    async with api_server_reached(health, api, "test"), Store(api) as store:
        mirror = store.follow(Followed(ACCOUNT))
        await asyncio.wait_for(mirror.settled(), 20)
        assert health.dead() == []
        now = reflectors.time.monotonic()
        monkeypatch.setattr(reflectors.time, "monotonic", lambda: now + 400)
        assert "no progress" in " ".join(health.dead())
    monkeypatch.undo()
    assert health.dead() == []


async def test_wakes_that_are_never_tried_make_the_process_dead() -> None:
    async def refuse(key: Key) -> None:
        raise RuntimeError("Temporal is away")

    now = [0.0]
    queue = WakeQueue(refuse, clock=lambda: now[0])
    queue.put(KEY)
    assert list(queue.stalled()) == []
    now[0] += 400
    assert "1 wakes wait" in " ".join(queue.stalled())
    await queue.send(KEY)  # it fails, and is a try all the same
    assert list(queue.stalled()) == []


def test_a_loop_is_alive_while_it_has_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    progress = Progress("a loop", within=10)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 11)
    assert "a loop has made no progress for 11 s" in " ".join(progress.stalled())
    progress.made()
    assert list(progress.stalled()) == []


async def test_a_watcher_that_has_not_asked_for_the_lease_yet_is_not_ready(api: KubeApi) -> None:
    election, health = LeaderElection(api, "perdure", "perdure-watch", "second"), Health()
    stand_by(election, health)
    assert health.unready() == ["watch: trying to acquire the Lease"]
    assert health.notes() == []
    election.leader = "first"
    assert health.unready() == []
    assert health.notes() == ["watch: standing by: first leads"]
