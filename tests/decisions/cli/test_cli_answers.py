"""What commands answer, without a server: of many where one is refused, and to programs."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
import typer
from auditors import PORT, Auditor
from cli_performing import performing
from temporalio.service import RPCError, RPCStatusCode
from typer.testing import CliRunner, Result

from domain.accounts import ACCOUNT, ACCOUNT_CLAIM
from domain.identity import Key, Kind
from engine import temporal
from engine.errors import ApiError, Denied, Unavailable
from engine.kube.api import Listing
from engine.settings import Settings
from starters.cli import audits, bulk_retry, lifecycle, session, wake_lifecycles
from starters.cli.listing import Row
from starters.cli.main import build
from starters.cli.object_reference import Target
from starters.cli.output import CommandError, Format
from starters.cli.session import Session

NO_SERVER = {"PERDURE_STATE": "", "KUBECONFIG": "/nowhere"}
NOT_NOW = RPCError("slow down", RPCStatusCode.RESOURCE_EXHAUSTED, b"")


class Cluster:
    """A cluster with two objects of each kind, some of which may not be listed."""

    def __init__(self) -> None:
        self.refused: dict[str, ApiError] = {}
        self.settings = Settings()

    async def list(self, kind: Kind, namespace: str = "") -> Listing:
        if kind.name in self.refused:
            raise self.refused[kind.name]
        known = kind in (ACCOUNT, ACCOUNT_CLAIM)
        names = ("one", "two") if known else ()
        return Listing([{"metadata": {"namespace": "ns", "name": name, "uid": f"{name}-1"}} for name in names], "1")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """What commands talk to, without a server."""
    found = Cluster()

    def perform(work: Callable[[Session], Awaitable[Any]]) -> Any:
        return performing(Session(found.settings, cast("Any", found), temporal=cast("Any", None)))(work)

    for module in (session, bulk_retry):
        monkeypatch.setattr(module, "perform", perform)
    return found


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that were woken; of accounts called `one` Temporal will hear nothing."""
    found: list[str] = []

    async def wake(client: object, key: Key) -> None:
        if key.path == "Account/ns/one":
            raise NOT_NOW
        found.append(key.path)

    monkeypatch.setattr(temporal, "wake", wake)
    monkeypatch.setattr(wake_lifecycles, "objectless", lambda kind, cluster, domain: ())
    return found


def wake(*arguments: str) -> tuple[int, str, str]:
    answer = CliRunner().invoke(build(), ["wake", *arguments], env=NO_SERVER)
    return answer.exit_code, answer.stdout, answer.stderr


def test_a_lifecycle_that_cannot_be_woken_blocks_no_other(cluster: Cluster, woken: list[str]) -> None:
    code, output, warned = wake("--all")
    assert (code, output) == (1, "3 lifecycles woken\n")
    assert sorted(woken) == ["Account/ns/two", "AccountClaim/ns/one", "AccountClaim/ns/two"]
    assert "Account/ns/one is not woken: Temporal at" in warned
    assert "RESOURCE_EXHAUSTED: slow down" in warned


def test_of_areas_that_this_installation_does_not_serve_only_what_is_named_is_woken(
    cluster: Cluster, woken: list[str]
) -> None:
    cluster.settings = Settings(areas=("claims",))
    assert wake("--all") == (0, "0 lifecycles woken\n", "")
    assert wake("accountclaim", "--all")[1] == "2 lifecycles woken\n"


def test_an_area_that_there_is_none_of_is_no_choice(cluster: Cluster, woken: list[str]) -> None:
    cluster.settings = Settings(areas=("acounts",))
    done = CliRunner().invoke(build(), ["wake", "--all"], env=NO_SERVER)
    assert isinstance(done.exception, CommandError)
    assert "PERDURE_AREAS names acounts" in done.exception.message


def test_kinds_that_may_not_be_read_are_left_out_with_a_warning(cluster: Cluster, woken: list[str]) -> None:
    cluster.refused[ACCOUNT.name] = Denied("list accounts: forbidden")
    assert wake("--all") == (
        0,
        "2 lifecycles woken\n",
        "warning: accounts are not woken: list accounts: forbidden\n",
    )


def test_a_kind_that_was_asked_for_and_may_not_be_read_is_a_failure(cluster: Cluster, woken: list[str]) -> None:
    cluster.refused[ACCOUNT.name] = Denied("list accounts: forbidden")
    assert wake("account", "--all")[0] == 1


def test_a_kind_that_cannot_be_listed_keeps_no_other(cluster: Cluster, woken: list[str]) -> None:
    cluster.refused[ACCOUNT.name] = Unavailable("list accounts: no answer")
    code, output, warned = wake("--all")
    assert (code, output) == (1, "2 lifecycles woken\n")
    assert "accounts are not woken: list accounts: no answer" in warned


def test_a_malformed_query_is_the_users_to_correct(monkeypatch: pytest.MonkeyPatch) -> None:
    async def connect(*_: object) -> None:
        return None

    async def refused(*_: object) -> None:
        raise RPCError("invalid query: unable to parse", RPCStatusCode.INVALID_ARGUMENT, b"")

    monkeypatch.setattr(session, "connect", connect)
    with pytest.raises(CommandError) as found:
        session.perform_on_temporal(refused)
    assert "unable to parse" in found.value.message
    assert "--query" in found.value.advice


@pytest.mark.parametrize(("error", "text"), [(Denied("patch: forbidden"), "patch: forbidden"), (NOT_NOW, "slow down")])
def test_a_lifecycle_that_cannot_be_retried_blocks_no_other(
    cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    text: str,
) -> None:
    rows = [
        Row(kind="Account", namespace="ns", name=name, phase=phase, workflow_id=f"Account/ns/{name}/1")
        for name, phase in (("one", "Failed"), ("two", "Failed"), ("three", "Ready"))
    ]

    async def found(opened: Session, query: str) -> list[Row]:
        return rows

    async def retry(opened: Session, key: Key, reason: str) -> str:
        if key.name == "one":
            raise error
        return "tried again"

    monkeypatch.setattr(bulk_retry, "found_lifecycles", found)
    monkeypatch.setattr(lifecycle, "retry", retry)
    with pytest.raises(typer.Exit) as ended:
        bulk_retry.retry_all(
            bulk_retry.selection(phase="failed"), "failed", "", dry_run=False, yes=True, form=Format.TEXT
        )
    assert ended.value.exit_code == 1
    _, first, second = capsys.readouterr().out.splitlines()
    assert text in first
    assert second.split() == ["Account", "ns/two", "Failed", "tried", "again"]


def test_a_refusal_among_many_names_the_object_once(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = Row(kind="Account", namespace="ns", name="one", phase="Ready", workflow_id="Account/ns/one/1")

    async def found(opened: Session, query: str) -> list[Row]:
        return [row]

    async def retry(opened: Session, key: Key, reason: str) -> str:
        raise CommandError(f"retry refused: {key.path} is Ready (all done): there is nothing to retry")

    monkeypatch.setattr(bulk_retry, "found_lifecycles", found)
    monkeypatch.setattr(lifecycle, "retry", retry)
    bulk_retry.retry_all(bulk_retry.selection(phase="Ready"), "Ready", "", dry_run=False, yes=True, form=Format.TEXT)
    _, output = capsys.readouterr().out.splitlines()
    assert output.endswith("refused: Ready (all done): there is nothing to retry")
    assert output.count("ns/one") == 1


def audit(monkeypatch: pytest.MonkeyPatch, *arguments: str, **known: Auditor) -> Result:
    monkeypatch.setattr(audits, "audits", lambda: known)
    return CliRunner().invoke(build(), ["audit", *arguments], env=NO_SERVER)


def test_an_area_that_cannot_be_audited_keeps_no_others_findings(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    denied = Auditor(error=Denied("list accounts: forbidden"))
    done = audit(monkeypatch, "-o", "json", accounts=denied, loadbalancers=Auditor(PORT))
    assert done.exit_code == 1
    assert [each["subject"] for each in json.loads(done.stdout)] == ["port 1"]
    assert done.stderr == "warning: accounts could not be audited: list accounts: forbidden\n"


def test_where_an_area_could_not_be_audited_nothing_is_said_to_agree(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    down = Auditor(error=Unavailable("list projects: no answer"))
    done = audit(monkeypatch, accounts=Auditor(), loadbalancers=down)
    assert (done.exit_code, done.stdout) == (1, "")
    done = audit(monkeypatch, accounts=Auditor())
    assert (done.exit_code, done.stdout) == (0, "nothing found: clouds and custom resources agree\n")


# To programs.


def test_a_retry_of_one_answers_with_a_document(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    async def find_key(opened: Session, reference: Target) -> Key:
        return Key(kind=reference.kind.name, namespace=reference.namespace, name=reference.name, uid="one-1")

    async def retry(opened: Session, key: Key, reason: str) -> str:
        return "tried again"

    monkeypatch.setattr(lifecycle, "find_key", find_key)
    monkeypatch.setattr(lifecycle, "retry", retry)
    done = CliRunner().invoke(build(), ["retry", "account", "ns/one", "-o", "json"], env=NO_SERVER)
    assert done.exit_code == 0, done.output
    answer = bulk_retry.Retried.model_validate_json(done.stdout)
    assert (answer.kind, answer.namespace, answer.name, answer.retried) == ("Account", "ns", "one", True)
    assert answer.said == "tried again"
    done = CliRunner().invoke(build(), ["retry", "account", "ns/one"], env=NO_SERVER)
    assert done.stdout == "Account ns/one: tried again\n"


def test_a_dry_run_of_a_retry_of_one_retries_nothing(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    async def find_key(opened: Session, reference: Target) -> Key:
        return Key(kind=reference.kind.name, namespace=reference.namespace, name=reference.name, uid="one-1")

    async def retry(opened: Session, key: Key, reason: str) -> str:
        raise AssertionError(key)

    monkeypatch.setattr(lifecycle, "find_key", find_key)
    monkeypatch.setattr(lifecycle, "retry", retry)
    done = CliRunner().invoke(build(), ["retry", "account", "ns/one", "--dry-run", "-o", "json"], env=NO_SERVER)
    assert done.exit_code == 0, done.output
    answer = bulk_retry.Retried.model_validate_json(done.stdout)
    assert (answer.retried, answer.said) == (False, "would be asked for a retry")


def test_nothing_to_retry_is_a_document_too(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    async def found(opened: Session, query: str) -> list[Row]:
        return []

    monkeypatch.setattr(bulk_retry, "found_lifecycles", found)
    done = CliRunner().invoke(build(), ["retry", "--phase", "Failed", "-o", "json"], env=NO_SERVER)
    assert (done.exit_code, json.loads(done.stdout)) == (0, [])
    done = CliRunner().invoke(build(), ["retry", "--phase", "Failed"], env=NO_SERVER)
    assert done.stdout == "no lifecycle matches\n"
