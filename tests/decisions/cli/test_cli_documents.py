"""Every command that answers people answers programs as well: one document on standard output."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from cli_performing import performing
from memory_kube import MemoryKube
from typer.testing import CliRunner

from domain.accounts import ACCOUNT
from engine import temporal
from engine.settings import Settings
from engine.telemetry import version
from starters.cli import pause_areas, session, wake_lifecycles
from starters.cli.main import build
from starters.cli.session import Session

OBJECT = {"kind": "Account", "namespace": "ns", "name": "one"}
NO_AREA = {"area": ""}
NO_OBJECT = {"kind": "", "namespace": "", "name": ""}


@pytest.fixture(autouse=True)
def kube(monkeypatch: pytest.MonkeyPatch) -> MemoryKube:
    """A cluster with an Account that is on its way out, and a Temporal that hears every wake."""
    found = MemoryKube()
    metadata = {"name": "one", "finalizers": [ACCOUNT.finalizer]}

    async def make() -> None:
        await found.create(ACCOUNT, {"metadata": metadata}, "ns")
        await found.delete(ACCOUNT, "ns", "one")

    async def heard(*_: object) -> None:
        """It is."""

    asyncio.run(make())
    perform = performing(Session(Settings(), cast("Any", found), temporal=cast("Any", None)))
    for module, name in ((session, "perform"), (wake_lifecycles, "perform"), (session, "perform_on_cluster")):
        monkeypatch.setattr(module, name, perform)
    monkeypatch.setattr(pause_areas, "perform_on_cluster", perform)
    monkeypatch.setattr(temporal, "wake", heard)
    return found


def answer(*arguments: str, read: Callable[[str], Any]) -> Any:
    done = CliRunner().invoke(build(), arguments, env={"PERDURE_STATE": "", "KUBECONFIG": "/nowhere"})
    assert done.exit_code in (0, 1), done.output
    return read(done.stdout)


@pytest.mark.parametrize(("form", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
@pytest.mark.parametrize(
    ("command", "document"),
    [
        ("pause account ns/one", OBJECT | NO_AREA | {"paused": True}),
        ("resume account ns/one", OBJECT | NO_AREA | {"paused": False}),
        ("pause --all --reason fire", NO_OBJECT | {"area": "all", "paused": True}),
        ("resume --area claims", NO_OBJECT | {"area": "claims", "paused": False}),
        ("wake account ns/one", {"woken": 1, "failed": 0}),
        ("abandon --skip-cleanup account ns/one --reason closed", OBJECT | {"why": "closed"}),
        ("version", {"version": version()}),
    ],
)
def test_a_lever_answers_with_a_document(
    command: str, document: dict[str, object], form: str, read: Callable[[str], Any]
) -> None:
    assert answer(*command.split(), "-o", form, read=read) == document


def test_the_status_is_a_document_in_either_form(tmp_path: Path) -> None:
    status = ("status", "--state", str(tmp_path))
    found = answer(*status, "-o", "yaml", read=yaml.safe_load)
    assert found == answer(*status, "-o", "json", read=json.loads)
    assert found["running"] is False
