"""What is written into the cluster alone is written while Temporal is down, and its lifecycle hears of it later."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

import pytest
from memory_kube import MemoryKube
from typer.testing import CliRunner, Result

from domain.accounts import ACCOUNT, ACCOUNT_CLAIM
from domain.accounts.constants import CLAIM_UID_ANNOTATION, OPERATOR_NAMESPACE
from domain.accounts.force_release import FORCE_RELEASE
from domain.control_annotations import ABANDONED, PAUSED
from domain.pauses import CONFIG_MAP_NAME, pauses_in
from engine.kube import CONFIG_MAP
from engine.kube.json import text
from engine.settings import Settings
from engine.temporal_connection import TemporalRefused
from starters.cli import session
from starters.cli.main import build
from starters.cli.output import CommandError

NO_SERVER = {"PERDURE_STATE": "", "KUBECONFIG": "/nowhere", "PERDURE_USER": "mia"}
DOWN = "Temporal at nowhere:7233 does not answer"


class Cluster(MemoryKube):
    """A cluster that a command may open and close."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is held."""


@pytest.fixture
def kube(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster that answers, beside a Temporal that does not."""
    found = Cluster()

    async def open_cluster(*_: object) -> Cluster:
        return found

    @asynccontextmanager
    async def no_other(*_: object) -> AsyncIterator[None]:
        yield None

    async def connect(*_: object) -> None:
        raise TemporalRefused(DOWN)

    monkeypatch.setattr(session.KubeApi, "open", open_cluster)
    monkeypatch.setattr(session, "served_cluster", no_other)
    monkeypatch.setattr(session, "connect", connect)
    return found


def perdure(*arguments: str) -> Result:
    return CliRunner().invoke(build(), arguments, env=NO_SERVER)


def account(kube: Cluster, *, deleted: bool = False) -> None:
    """An Account with a finalizer of another client as well."""
    held = [ACCOUNT.finalizer, "example.com/other"]

    async def make() -> None:
        await kube.create(ACCOUNT, {"metadata": {"name": "one", "finalizers": held}}, "ns")
        if deleted:
            await kube.delete(ACCOUNT, "ns", "one")

    asyncio.run(make())


def annotation(kube: Cluster, name: str) -> str:
    return text(asyncio.run(kube.get(ACCOUNT, "ns", "one")), "metadata", "annotations", name)


def paused(kube: Cluster) -> set[str]:
    found = asyncio.run(kube.get(CONFIG_MAP, Settings().watch_lease_namespace, CONFIG_MAP_NAME))
    return set(pauses_in(found))


def warned_of_no_wake(done: Result) -> bool:
    """Whether a command succeeded, and warned that the lifecycle was not woken."""
    assert done.exit_code == 0, done.output
    return done.stderr.endswith(
        f"warning: Account ns/one: the change is written, but its lifecycle could not be woken: {DOWN}\n"
    )


@pytest.mark.parametrize(("named", "what"), [(("--all",), "all"), (("--area", "accounts"), "accounts")])
def test_everything_and_areas_are_paused_and_resumed(kube: Cluster, named: tuple[str, ...], what: str) -> None:
    done = perdure("pause", *named, "--reason", "they are on fire")
    assert done.exit_code == 0, done.output
    assert done.stderr == ""
    assert paused(kube) == {what}
    done = perdure("resume", *named)
    assert done.exit_code == 0, done.output
    assert done.stderr == ""
    assert paused(kube) == set()


def test_an_object_is_paused_and_resumed(kube: Cluster) -> None:
    account(kube)
    done = perdure("pause", "account", "ns/one")
    assert annotation(kube, PAUSED) == "true"
    assert warned_of_no_wake(done)
    assert done.stdout == "Account ns/one: paused\n"
    done = perdure("resume", "account", "ns/one")
    assert annotation(kube, PAUSED) == ""
    assert warned_of_no_wake(done)


def test_an_object_is_abandoned(kube: Cluster) -> None:
    account(kube, deleted=True)
    done = perdure("abandon", "account", "ns/one", "--reason", "it is over", "--yes")
    assert '"who": "mia"' in annotation(kube, ABANDONED)
    assert warned_of_no_wake(done)


def test_an_account_is_released(kube: Cluster) -> None:
    account(kube, deleted=True)
    done = perdure("abandon", "--skip-cleanup", "account", "ns/one", "--reason", "closed by AWS")
    assert annotation(kube, FORCE_RELEASE) == "closed by AWS"
    assert warned_of_no_wake(done)


def test_the_account_of_a_released_claim_is_found_by_its_link(kube: Cluster) -> None:
    """What the claim itself names is its tenant's text, and may be another's Account."""

    async def make() -> None:
        spec = {"accountLink": "anothers", "legalEntity": {"id": "x", "name": "x"}}
        made = await kube.create(
            ACCOUNT_CLAIM, {"metadata": {"name": "c", "finalizers": ["f"]}, "spec": spec}, "tenant"
        )
        await kube.delete(ACCOUNT_CLAIM, "tenant", "c")
        uid = {CLAIM_UID_ANNOTATION: text(made, "metadata", "uid")}
        for name, link, noted in (("own", ("tenant", "c"), uid), ("anothers", ("other", "c"), {})):
            held = {"claimLinkNamespace": link[0], "claimLink": link[1]}
            obj = {"metadata": {"name": name, "annotations": noted}, "spec": held}
            await kube.create(ACCOUNT, obj, OPERATOR_NAMESPACE)

    asyncio.run(make())
    perdure("abandon", "--skip-cleanup", "accountclaim", "tenant/c", "--reason", "closed by AWS")
    annotations = {
        name: text(asyncio.run(kube.get(ACCOUNT, OPERATOR_NAMESPACE, name)), "metadata", "annotations", FORCE_RELEASE)
        for name in ("own", "anothers")
    }
    assert annotations == {"own": "closed by AWS", "anothers": ""}


@pytest.mark.parametrize("command", ["why", "plan", "retry", "wake"])
def test_a_command_that_needs_temporal_says_that_it_does_not_answer(kube: Cluster, command: str) -> None:
    account(kube)
    refused = perdure(command, "account", "ns/one").exception
    assert isinstance(refused, CommandError)
    assert refused.message == DOWN
