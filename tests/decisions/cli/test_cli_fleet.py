"""The command line for those who look after many: top, retries of many, what the shell fills in, forms of output."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import typer
import yaml
from rich.console import Console
from typer.testing import CliRunner

from domain.accounts import ACCOUNT
from starters.cli import output, top
from starters.cli.bulk_retry import selection
from starters.cli.completion import candidates, complete_areas, complete_kinds, for_kubectl
from starters.cli.listing import Row
from starters.cli.main import build, program_name
from starters.cli.output import Format

NOW = datetime(2026, 11, 22, 7, tzinfo=UTC)
ROW = Row(
    kind="Account",
    namespace="ns",
    name="one",
    phase="Failed",
    waits_for=("a person",),
    created=NOW - timedelta(hours=3),
    workflow_id="Account/ns/one/42",
)


def drawn(glance: top.Glance) -> str:
    console = Console(width=160, file=None)
    with console.capture() as shown:
        console.print(top.drawn(glance))
    return shown.get()


def test_top_shows_what_needs_a_person_below_the_areas() -> None:
    area = top.AreaAtAGlance(area="accounts", open=12, waiting=3, failing=1, overdue=2)
    first, second, _, third, fourth = drawn(top.Glance(at=NOW, areas=(area,), worst=(ROW,))).splitlines()
    assert first.split() == ["AREA", "OPEN", "WAITING", "FAILING", "STUCK", "OVERDUE", "PAUSED"]
    assert second.split() == ["accounts", "12", "3", "1", "0", "2"]
    assert third.split() == ["KIND", "OBJECT", "PHASE", "WAITS", "FOR", "OPEN", "FOR"]
    assert fourth.split() == ["Account", "ns/one", "Failed", "a", "person", "3h"]


def test_top_says_who_paused_an_area() -> None:
    area = top.AreaAtAGlance(area="claims", open=0, paused="claims is paused by mia: she is on it")
    assert "claims is paused by mia: she is on it" in drawn(top.Glance(at=NOW, areas=(area,)))


def test_top_of_nothing_says_so() -> None:
    assert drawn(top.Glance(at=NOW, areas=())).strip() == "no lifecycles"


def test_an_area_is_counted_by_all_its_kinds() -> None:
    requested = top.queried("north", "accounts")
    assert "'north/Account/'" in requested
    assert "'north/AccountClaim/'" in requested
    assert "ResourceClaim" not in requested


def test_many_are_sought_by_what_limits_them() -> None:
    assert selection(ACCOUNT, "ns", "Failed", "OpOwner = 'AccountPool/ns/p' OR OpName = 'x'") == (
        "ExecutionStatus = 'Running' AND OpKind = 'Account' AND OpNamespace = 'ns' "
        "AND (OpOwner = 'AccountPool/ns/p' OR OpName = 'x')"
    )


@pytest.mark.parametrize("named", [(), (ACCOUNT,), (None, "ns")])
def test_everything_is_only_sought_when_it_is_said(named: tuple[Any, ...]) -> None:
    with pytest.raises(typer.BadParameter, match="--all"):
        selection(*named)


def test_kinds_are_filled_in_in_any_case() -> None:
    assert complete_kinds("AccountC") == ["accountclaim"]
    assert "loadbalancer" in complete_kinds("")
    assert "node" not in complete_kinds("")


def test_areas_are_filled_in() -> None:
    assert complete_areas("c") == ["claims"]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["wh"], "why"),
        (["why", "accountcl"], "accountclaim"),
        (["pause", "--area", "load"], "loadbalancers"),
        (["audit", "thr"], "threescale"),
        (["list", "resourcec"], "resourceclaim"),
        (["list", "-o", "y"], "yaml"),
    ],
)
def test_typed_prefixes_are_completed(typed: list[str], offered: str) -> None:
    assert candidates(typed) == [offered]


def test_no_cluster_fills_in_no_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_STATE", "")
    monkeypatch.setenv("KUBECONFIG", "/nowhere/at/all")
    assert candidates(["why", "account", ""]) == []


def test_kubectl_completion_offers_no_files(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-perdure", "why", "accountcl"])
    for_kubectl()
    assert capsys.readouterr().out.splitlines() == ["accountclaim", ":4"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(shell: str) -> None:
    answer = CliRunner().invoke(build(), ["install", "completion", shell])
    assert answer.exit_code == 0
    assert "_PERDURE_COMPLETE" in answer.output


def test_every_command_takes_a_state_directory() -> None:
    def without(command: Any, path: str) -> list[str]:
        below = getattr(command, "commands", {})
        if below:
            return [found for name, each in below.items() for found in without(each, f"{path} {name}")]
        options = {option for parameter in command.params for option in parameter.opts}
        return [] if "--state" in options else [path]

    assert without(typer.main.get_command(build()), "perdure") == []
    answer = CliRunner().invoke(build(), ["install", "completion", "bash", "--state", "/nowhere"])
    assert answer.exit_code == 0


@pytest.mark.parametrize(
    ("program", "called"), [("/usr/bin/perdure", "perdure"), ("/opt/bin/kubectl-perdure", "kubectl perdure")]
)
def test_a_plugin_calls_itself_as_it_was_called(program: str, called: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [program])
    assert program_name() == called


def test_yaml_and_json_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert output.printed([ROW], Format.YAML)
    as_yaml = yaml.safe_load(capsys.readouterr().out)
    assert output.printed([ROW], Format.JSON)
    assert json.loads(capsys.readouterr().out) == as_yaml
    assert as_yaml[0]["workflow_id"] == "Account/ns/one/42"


@pytest.mark.parametrize("form", [Format.TEXT, Format.WIDE])
def test_people_get_no_documents(form: Format, capsys: pytest.CaptureFixture[str]) -> None:
    assert not output.printed([ROW], form)
    assert capsys.readouterr().out == ""
