"""`perdure temporal move`: one refusal by Temporal does not end it."""

from __future__ import annotations

from typing import cast

import pytest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from engine.worker_versions import Version, VersionStatus
from starters.cli import temporal

CLIENT = cast("Client", None)
OLD = Version(deployment="perdure", build_id="v1", status=VersionStatus.DRAINING, open=3)


class Server:
    """Two lifecycles are on an older version; so many wakes, or lists, are refused."""

    def __init__(self, wakes: int, lists: int = 0) -> None:
        self.wakes = wakes
        self.lists = lists
        self.woken = False

    async def older(self, *_: object) -> list[Version]:
        if self.lists:
            self.lists -= 1
            raise RPCError("too many requests", RPCStatusCode.RESOURCE_EXHAUSTED, b"")
        return [] if self.woken else [OLD]

    async def wake(self, *_: object) -> int:
        if self.wakes:
            self.wakes -= 1
            raise RPCError("too many signals", RPCStatusCode.RESOURCE_EXHAUSTED, b"")
        self.woken = True
        return 2


def serving(monkeypatch: pytest.MonkeyPatch, *, wakes: int = 0, lists: int = 0) -> None:
    server = Server(wakes, lists)
    monkeypatch.setattr(temporal, "older_versions", server.older)
    monkeypatch.setattr(temporal, "wake_older", server.wake)
    monkeypatch.setattr(temporal, "BETWEEN_LOOKS", 0.0)


async def test_a_refused_wake_is_reported_and_repeated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    serving(monkeypatch, wakes=2)

    assert await temporal.moved(CLIENT, "perdure", 60.0, 20.0) == []
    assert capsys.readouterr().err == "too many signals; trying again\n" * 2


async def test_a_refused_list_is_reported_and_repeated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    serving(monkeypatch, lists=1)

    assert await temporal.moved(CLIENT, "perdure", 60.0, 20.0) == []
    assert capsys.readouterr().err == "too many requests; trying again\n"


async def test_a_server_that_refuses_to_the_end_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    serving(monkeypatch, wakes=1_000_000)

    with pytest.raises(RPCError, match="too many signals"):
        await temporal.moved(CLIENT, "perdure", 0.05, 20.0)
