"""`perdure abandon`: which finalizers it takes off, of which object, and what it says of an unreadable object."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import pytest
import typer
from claim_domain import NAMES
from cli_performing import performing
from memory_kube import MemoryKube
from typer.testing import CliRunner, Result

from domain.accounts import ACCOUNT
from domain.claims import RESOURCE_CLAIM
from domain.control_annotations import ABANDONED
from domain.identity import Kind
from engine.errors import Absent, Denied
from engine.kube import EVENT
from engine.kube.json import text
from engine.settings import Settings
from starters.cli import session, wake_lifecycles
from starters.cli.main import build
from starters.cli.session import Session


@pytest.fixture
def kube(monkeypatch: pytest.MonkeyPatch) -> MemoryKube:
    """The cluster of the commands; there is no Temporal to wake."""
    found = MemoryKube()
    opened = Session(Settings(), cast("Any", found), temporal=cast("Any", None))

    perform = performing(opened)

    async def nobody(opened: Session, key: object) -> None:
        """There is none."""

    monkeypatch.setattr(session, "perform_on_cluster", perform)
    monkeypatch.setattr(wake_lifecycles, "perform", perform)
    monkeypatch.setattr(wake_lifecycles, "wake_one", nobody)
    return found


def stuck(kube: MemoryKube, kind: Kind, *finalizers: str, **parts: object) -> None:
    """An object on its way out that these hold."""

    async def make() -> None:
        await kube.create(kind, {"metadata": {"name": "one", "finalizers": list(finalizers)}, **parts}, "ns")
        await kube.delete(kind, "ns", "one")

    asyncio.run(make())


def stored(kube: MemoryKube, kind: Kind) -> Mapping[str, Any] | None:
    try:
        return asyncio.run(kube.get(kind, "ns", "one"))
    except Absent:
        return None


def events(kube: MemoryKube) -> list[str]:
    found = asyncio.run(kube.list(EVENT, "ns")).items
    return [text(each, "reason") for each in found]


def abandon(kind: Kind, *arguments: str) -> Result:
    command = ["abandon", kind.name, "ns/one", "--reason", "it is over", *(arguments or ("--yes",))]
    return CliRunner().invoke(build(), command, env={"PERDURE_STATE": "", "KUBECONFIG": "/nowhere"})


@pytest.mark.parametrize(
    "held", [(NAMES.finalizer, NAMES.former_finalizer), (NAMES.former_finalizer,), (NAMES.finalizer,)]
)
def test_finalizers_of_former_installations_are_taken_off_as_well(kube: MemoryKube, held: tuple[str, ...]) -> None:
    stuck(kube, RESOURCE_CLAIM, "example.com/other", *held)
    done = abandon(RESOURCE_CLAIM)
    assert done.exit_code == 0, done.output
    left = stored(kube, RESOURCE_CLAIM)
    assert left is not None
    assert left["metadata"]["finalizers"] == ["example.com/other"]
    assert ABANDONED in left["metadata"]["annotations"]
    assert events(kube) == ["Abandoned"]


def test_an_account_is_not_held_by_what_held_claims(kube: MemoryKube) -> None:
    stuck(kube, ACCOUNT, NAMES.former_finalizer)
    assert abandon(ACCOUNT).exit_code == 1


def test_an_object_that_cannot_be_read_is_abandoned_without_showing_its_values(kube: MemoryKube) -> None:
    stuck(kube, ACCOUNT, ACCOUNT.finalizer, "example.com/other", spec={"awsAccountID": ["s3cret"]})
    done = abandon(ACCOUNT)
    assert done.exit_code == 0, done.output
    assert "unknown objects: its custom resource cannot be read (spec.awsAccountID: " in done.stderr
    assert "s3cret" not in done.output
    left = stored(kube, ACCOUNT)
    assert left is not None
    assert left["metadata"]["finalizers"] == ["example.com/other"]


def during_the_prompt(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], Awaitable[object]]) -> None:
    """Something happens while the person thinks, who then agrees."""

    def confirm(*_: object, **__: object) -> bool:
        asyncio.run(cast("Any", happens()))
        return True

    monkeypatch.setattr(typer, "confirm", confirm)


def test_changes_made_while_a_person_confirms_survive(kube: MemoryKube, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck(kube, ACCOUNT, ACCOUNT.finalizer)
    held = {"metadata": {"finalizers": [ACCOUNT.finalizer, "example.com/other"]}}
    during_the_prompt(monkeypatch, lambda: kube.patch(ACCOUNT, "ns", "one", held))
    done = abandon(ACCOUNT, "-o", "text")
    assert done.exit_code == 0, done.output
    left = stored(kube, ACCOUNT)
    assert left is not None
    assert left["metadata"]["finalizers"] == ["example.com/other"]


def test_another_object_of_the_name_is_left_alone(kube: MemoryKube, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck(kube, ACCOUNT, ACCOUNT.finalizer)

    async def recreated() -> None:
        await kube.patch(ACCOUNT, "ns", "one", {"metadata": {"finalizers": []}})
        await kube.create(ACCOUNT, {"metadata": {"name": "one", "finalizers": [ACCOUNT.finalizer]}}, "ns")
        await kube.delete(ACCOUNT, "ns", "one")

    during_the_prompt(monkeypatch, recreated)
    assert abandon(ACCOUNT, "-o", "text").exit_code == 1
    left = stored(kube, ACCOUNT)
    assert left is not None
    assert left["metadata"]["finalizers"] == [ACCOUNT.finalizer]
    assert events(kube) == []


def test_a_failed_abandoning_is_not_recorded(kube: MemoryKube, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck(kube, ACCOUNT, ACCOUNT.finalizer)

    async def patch(*_: object, **__: object) -> None:
        raise Denied("patch account ns/one: forbidden")

    monkeypatch.setattr(kube, "patch", patch)
    assert abandon(ACCOUNT).exit_code == 1
    assert events(kube) == []
