"""`perdure temporal move`: one wake that Temporal refuses does not end it."""

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
    """Two lifecycles are on an older version; so many wakes are refused."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.woken = False

    async def older(self, *_: object) -> list[Version]:
        return [] if self.woken else [OLD]

    async def wake(self, *_: object) -> int:
        if self.refusals:
            self.refusals -= 1
            raise RPCError("too many signals", RPCStatusCode.RESOURCE_EXHAUSTED, b"")
        self.woken = True
        return 2


def serving(refusals: int, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(refusals)
    monkeypatch.setattr(temporal, "older_versions", server.older)
    monkeypatch.setattr(temporal, "wake_older", server.wake)
    monkeypatch.setattr(temporal, "BETWEEN_LOOKS", 0.0)


async def test_a_refused_wake_is_reported_and_repeated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    serving(2, monkeypatch)

    assert await temporal.moved(CLIENT, "perdure", 60.0, 20.0) == ()
    assert capsys.readouterr().err == "too many signals; trying again\n" * 2


async def test_a_server_that_refuses_to_the_end_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    serving(1_000_000, monkeypatch)

    with pytest.raises(RPCError, match="too many signals"):
        await temporal.moved(CLIENT, "perdure", 0.05, 20.0)
