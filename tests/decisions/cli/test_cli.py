"""The parts of the command line that need no server: arguments, the state directory, what is printed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from kubeconfigs import kubeconfig_to_nowhere

from domain.accounts import ACCOUNT, ACCOUNT_CLAIM
from domain.accounts.resources import Account, AccountClaim
from domain.custom_resources import custom_resources
from domain.identity import Kind
from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET, SERVICE
from domain.model import Model
from domain.operator_domain import DEFAULT
from starters.cli import output, state_directory
from starters.cli.abandon import outside
from starters.cli.crds import crd_files
from starters.cli.listing import Row
from starters.cli.main import ENTRY_POINTS, build
from starters.cli.object_reference import kind_named, target
from starters.cli.wake_lifecycles import concerns

ROOT = Path(__file__).parents[3]
POINTERS = (*state_directory.POINTERS, "PERDURE_STATE")
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A shell that names no server, with an empty home; returns the directory of local deployments."""
    for name in POINTERS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(os, "environ", {**os.environ})
    return tmp_path / "perdure" / "local"


def deployment(directory: Path, **variables: str) -> Path:
    directory.mkdir(parents=True)
    (directory / "env").write_text("".join(f"export {name}={value}\n" for name, value in variables.items()))
    return directory


def perdure(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "starters.cli.main", *arguments]
    env = {name: value for name, value in os.environ.items() if name not in POINTERS}
    env |= {"TERM": "dumb", "COLUMNS": "200", **environ}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)


# The object a command is about.


@pytest.mark.parametrize("word", ["Account", "account", "ACCOUNTS", "accounts.aws.managed.openshift.io"])
def test_a_kind_is_known_by_any_of_its_names(word: str) -> None:
    assert kind_named(word) == ACCOUNT


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("lb", LOAD_BALANCER),
        ("LBS", LOAD_BALANCER_SET),
        ("lbm.yawol.stackit.cloud", LOAD_BALANCER_MACHINE),
        ("svc", SERVICE),
    ],
)
def test_a_kind_is_known_by_kubectls_short_name(word: str, kind: Kind) -> None:
    assert kind_named(word) == kind


def test_services_are_named_as_in_kubernetes_and_leave_their_load_balancer() -> None:
    found = target("svc", "shop/web")
    assert (str(found), found.resource) == ("Service shop/web", "services")
    (left,) = outside(found, {"metadata": {"name": "web"}})
    assert left.startswith("LoadBalancer shop--web ")


@pytest.mark.parametrize(
    ("kind", "obj", "concerned"),
    [
        (SERVICE, {"spec": {"type": "ClusterIP"}}, False),
        (SERVICE, {"spec": {"type": "LoadBalancer"}}, True),
        (SERVICE, {"metadata": {"finalizers": ["stackit.cloud/loadbalancer"]}}, True),
        (LOAD_BALANCER, {}, True),
    ],
)
def test_services_that_want_and_hold_nothing_are_not_woken(kind: Kind, obj: dict[str, object], concerned: bool) -> None:
    assert concerns(kind, obj) is concerned


def test_no_two_kinds_have_a_name_in_common() -> None:
    names = [
        name
        for model in custom_resources()
        for name in {model.kind_of.name.lower(), model.kind_of.plural, *model.definition.short_names}
    ]
    assert len(names) == len(set(names))


def test_a_kind_is_never_known_by_the_start_of_its_name() -> None:
    assert kind_named("accountclaim") == ACCOUNT_CLAIM
    with pytest.raises(typer.BadParameter, match="did you mean AccountClaim"):
        kind_named("accountclai")


def test_an_unknown_kind_names_those_there_are() -> None:
    with pytest.raises(typer.BadParameter, match="AccountPool"):
        kind_named("nonsense")
    with pytest.raises(typer.BadParameter):
        kind_named("")


@pytest.mark.parametrize("name", ["name", "/name", "ns/", "ns/a/b", "ns/UPPER", "ns/it's", "ns/a b", "a' OR 'b/c"])
def test_an_object_is_namespace_and_name(name: str) -> None:
    with pytest.raises(typer.BadParameter):
        target("account", name)


def test_an_object_knows_how_kubectl_calls_it() -> None:
    found = target("accounts", "ns/osd-creds-mgmt-h5n8vq")
    assert (str(found), found.resource) == (
        "Account ns/osd-creds-mgmt-h5n8vq",
        "accounts.aws.managed.openshift.io",
    )


# Where the servers are.


def test_the_option_wins_over_the_shell(shell: Path, tmp_path: Path) -> None:
    os.environ["KUBECONFIG"] = "/production"
    directory = deployment(tmp_path / "mine", KUBECONFIG="'/my own/kubeconfig'", TEMPORAL_ADDRESS="127.0.0.1:1")
    assert state_directory.enter(directory) == directory
    assert os.environ["KUBECONFIG"] == "/my own/kubeconfig"
    assert os.environ["TEMPORAL_ADDRESS"] == "127.0.0.1:1"


def test_nothing_of_another_temporal_is_left_beside_the_deployments(shell: Path, tmp_path: Path) -> None:
    os.environ |= {"TEMPORAL_API_KEY": "secret", "TEMPORAL_NAMESPACE": "prod", "TEMPORAL_TLS": "true"}
    state_directory.enter(deployment(tmp_path / "mine", TEMPORAL_ADDRESS="127.0.0.1:1"))
    found = {name: value for name, value in os.environ.items() if name.startswith("TEMPORAL_")}
    assert found == {"TEMPORAL_ADDRESS": "127.0.0.1:1"}


def test_a_deployment_without_a_temporal_of_its_own_leaves_the_shells(shell: Path, tmp_path: Path) -> None:
    os.environ |= {"TEMPORAL_ADDRESS": "temporal.example:7233", "TEMPORAL_NAMESPACE": "mine"}
    state_directory.enter(deployment(tmp_path / "mine", KUBECONFIG="/local"))
    assert (os.environ["TEMPORAL_ADDRESS"], os.environ["TEMPORAL_NAMESPACE"]) == ("temporal.example:7233", "mine")


def test_the_local_deployment_is_taken_when_nothing_else_is_named(shell: Path) -> None:
    deployment(shell, TEMPORAL_ADDRESS="127.0.0.1:1")
    assert state_directory.enter(None) == shell
    assert os.environ["TEMPORAL_ADDRESS"] == "127.0.0.1:1"


@pytest.mark.parametrize("name", ["KUBECONFIG", "TEMPORAL_ADDRESS", "KUBERNETES_SERVICE_HOST"])
def test_the_local_deployment_is_left_alone_when_the_shell_names_a_server(shell: Path, name: str) -> None:
    deployment(shell, KUBECONFIG="/local")
    os.environ[name] = "elsewhere"
    assert state_directory.enter(None) is None
    assert os.environ.get("KUBECONFIG") != "/local"


def test_a_named_directory_without_a_deployment_is_an_error(shell: Path, tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter, match="there is no local deployment in"):
        state_directory.enter(tmp_path)
    os.environ["PERDURE_STATE"] = str(tmp_path / "gone")
    with pytest.raises(typer.BadParameter):
        state_directory.enter(None)


@pytest.mark.parametrize("content", ["export KUBECONFIG='/half", b"\xff\xfe"])
def test_a_damaged_env_file_is_named(shell: Path, tmp_path: Path, content: str | bytes) -> None:
    (tmp_path / "env").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(typer.BadParameter, match="env cannot be read"):
        state_directory.enter(tmp_path)


# What is printed.


@pytest.mark.parametrize(
    ("duration", "shown"),
    [
        (timedelta(seconds=-5), "0s"),
        (timedelta(seconds=59.9), "59s"),
        (timedelta(minutes=25), "25m"),
        (timedelta(minutes=51, seconds=1), "51m1s"),
        (timedelta(hours=3, seconds=59), "3h"),
        (timedelta(days=400, hours=5, minutes=3), "400d5h"),
    ],
)
def test_a_duration_has_its_two_largest_units(duration: timedelta, shown: str) -> None:
    assert output.span(duration) == shown


def test_a_deadline_says_how_far_away_it_is() -> None:
    assert output.until(NOW + timedelta(minutes=12), NOW).endswith("(in 12m)")
    assert output.until(NOW - timedelta(minutes=12), NOW).endswith("(12m ago)")
    assert output.until(None, NOW) == ""


def test_a_deadline_on_the_last_day_of_the_calendar_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert output.until(datetime.max.replace(tzinfo=UTC), NOW).startswith("9999-12-31 23:59 (in ")
    finally:
        monkeypatch.undo()
        time.tzset()


def test_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    row = Row(kind="Account", namespace="ns", name="a", phase="Ready", deadline=NOW, workflow_id="Account/ns/a/u")
    assert output.printed([row], output.Format.JSON)
    (read,) = json.loads(capsys.readouterr().out)
    assert Row.model_validate(read) == row
    nothing: list[Model] = []
    assert output.printed(nothing, output.Format.JSON)
    assert json.loads(capsys.readouterr().out) == []


def test_rows_are_not_folded_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(("one", "two"), [("x" * 150, "y" * 500)])
    heading, row = capsys.readouterr().out.splitlines()
    assert heading.split() == ["ONE", "TWO"]
    assert row.split() == ["x" * 150, "y" * 500]


def test_rows_are_not_padded_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(("one", "two"), [("x", "y" * 500), ("x", "y")])
    output.facts([("why", "y" * 500), ("until", "y")])
    heading, _, row, _, fact = capsys.readouterr().out.splitlines()
    assert (heading, row, fact) == ("ONE  TWO", "x    y", "until  y")


# What abandoning would leave behind.


def test_an_account_says_what_exists_because_of_it() -> None:
    account = Account.model_validate(
        {
            "metadata": {"name": "osd-1", "namespace": "ns", "labels": {"iamUserId": "h5n8vq"}},
            "spec": {"awsAccountID": "111122223333", "iamUserSecret": "osd-1-secret"},
            "status": {"supportCaseID": "42"},
        }
    )
    message = "\n".join(account.outside)
    expected = (
        "111122223333",
        "ManagedOpenShift-Support-h5n8vq",
        "osdManagedAdmin-h5n8vq",
        "ns/osd-1-secret",
        "case 42",
    )
    for word in expected:
        assert word in message
    assert Account().outside == ()


def test_an_account_being_created_may_exist() -> None:
    creating = Account.model_validate({"metadata": {"name": "osd-1"}, "status": {"state": "Creating"}})
    assert "perhaps" in creating.outside[0]


def test_a_claim_says_which_account_it_holds() -> None:
    claim = AccountClaim.model_validate(
        {
            "metadata": {"namespace": "ns"},
            "spec": {"accountLink": "osd-1", "awsCredentialSecret": {"name": "aws", "namespace": ""}},
        }
    )
    assert ["osd-1" in claim.outside[0], "ns/aws" in claim.outside[1]] == [True, True]
    assert AccountClaim().outside == ()


# The program as a whole.


def test_help_names_every_command() -> None:
    shown = perdure("--help")
    assert shown.returncode == 0
    commands = "list why plan settings retry pause resume wake abandon run events temporal install"
    assert [word for word in commands.split() if f" {word} " not in shown.stdout] == []


def test_help_shows_at_most_20_verbs() -> None:
    program = typer.main.get_command(build())
    assert len([each for each in getattr(program, "commands", {}).values() if not each.hidden]) <= 20


@pytest.mark.parametrize("verb", ["worker", "watch", "crds", "version", "yawollet"])
def test_verbs_that_manifests_and_pipelines_name_still_work(verb: str) -> None:
    assert perdure(verb, "--help").returncode == 0


def test_a_verb_of_before_runs_and_prints_its_new_form() -> None:
    ended = perdure("iam")
    assert json.loads(ended.stdout)["Version"] == "2012-10-17"
    assert ended.stderr == "`perdure iam` is `perdure install iam` now\n"


def test_the_migration_of_a_node_handler_still_runs_under_its_older_name(tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text("enableSqsTerminationDraining: true\n")
    older, newer = perdure("migrate", "nth", str(values)), perdure("install", "migrate", "nth", str(values))
    assert older.stderr == "`perdure migrate` is `perdure install migrate` now\n"
    assert (older.returncode, older.stdout) == (0, newer.stdout)
    assert yaml.safe_load(older.stdout)["kind"] == "InterruptionPolicy"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("why", "pod", "a/b"), "no kind is called 'pod'"),
        (("why", "account", "a"), "not of the form"),
        (("why", "account"), "Missing argument"),
        (("list", "--namespace", "a'b"), "not a valid name of a Kubernetes"),
        (("wake",), "--all"),
        (("wake", "account"), "Missing argument"),
        (("plan",), "name an object, KIND NAMESPACE/NAME, or a file"),
        (("retry", "account", "a/b", "--all"), "not both"),
        (("retry", "account", "a/b", "--phase", "Failed"), "not both"),
        (("retry", "account", "a/b", "--query", "OpName = 'b'"), "not both"),
        (("wake", "account", "a/b", "--all"), "--all"),
        (("worker", "--only", "clouds"), "no area is called 'clouds'"),
        (("abandon", "account", "a/b"), "--reason"),
        (("abandon", "account", "a/b", "--reason", " "), "give a reason"),
        (("abandon", "accountclaim", "a/b", "--reason", "", "--skip-cleanup"), "give a reason"),
        (("pause", "--area", "accounts", "--reason", " "), "give a reason"),
        (("list", "--state", "/nowhere"), "there is no local deployment in /nowhere"),
    ],
)
def test_wrong_usage_ends_with_2(arguments: tuple[str, ...], text: str) -> None:
    ended = perdure(*arguments, KUBECONFIG="/nowhere", TEMPORAL_ADDRESS="127.0.0.1:1")
    assert ended.returncode == 2
    assert text in ended.stderr


def test_crds_can_be_piped_to_kubectl(tmp_path: Path) -> None:
    printed = perdure("crds")
    assert printed.stdout == "---\n".join(crd_files(DEFAULT).values())
    written = perdure("crds", "--output", str(tmp_path / "new"))
    assert written.returncode == 0
    assert {path.name: path.read_text() for path in (tmp_path / "new").iterdir()} == crd_files(DEFAULT)


def test_version_needs_no_server() -> None:
    assert perdure("version", PERDURE_STATE="/nowhere").stdout.startswith("perdure ")


def test_a_cluster_that_is_not_configured_is_said_so(tmp_path: Path) -> None:
    ended = perdure("list", HOME=str(tmp_path), XDG_STATE_HOME=str(tmp_path))
    assert ended.returncode == 1
    assert "no Kubernetes cluster is configured" in ended.stderr
    assert "KUBECONFIG" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("variable", ["KUBECONFIG", "PERDURE_LOADBALANCERS_TARGET_KUBECONFIG"])
def test_a_kubeconfig_that_cannot_be_read_is_one_line_and_advice(tmp_path: Path, variable: str) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(": : [ }")
    (tmp_path / "other").mkdir()
    environ = {"KUBECONFIG": str(kubeconfig_to_nowhere(tmp_path / "other")), variable: str(file)}
    ended = perdure("pause", "account", "ns/a", **environ)
    assert ended.returncode == 1
    assert f"{file} cannot be used" in ended.stderr
    assert len(ended.stderr.splitlines()) <= 2


def test_broken_commands_of_others_leave_ours_alone(tmp_path: Path) -> None:
    package = tmp_path / "broken-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (package / "entry_points.txt").write_text(f"[{ENTRY_POINTS}]\nbroken = no_such_module:register\n")
    ended = perdure("version", PYTHONPATH=str(tmp_path))
    assert ended.returncode == 0
    assert "no_such_module" in ended.stderr
    shutil.rmtree(package)
    assert "no_such_module" not in perdure("version", PYTHONPATH=str(tmp_path)).stderr


def test_kinds_without_a_custom_resource_have_no_plural() -> None:
    organization = Kind(name="Organization", group="", version="", plural="", area="accounts")
    assert kind_named("organization").plural == organization.plural


def test_a_lifecycle_of_no_object_is_named_without_a_namespace() -> None:
    found = target("claimbinder", "poolboy.gpte.redhat.com")
    assert (found.namespace, found.name) == ("", "poolboy.gpte.redhat.com")
    assert str(found) == "ClaimBinder poolboy.gpte.redhat.com"
    with pytest.raises(typer.BadParameter):
        target("resourceclaim", "poolboy.gpte.redhat.com")


def test_an_instance_is_named_within_its_account_and_region() -> None:
    found = target("ec2instance", "123456789012/eu-central-1/i-0abc")
    assert (found.namespace, found.name) == ("123456789012/eu-central-1", "i-0abc")
    assert str(found) == "Ec2Instance 123456789012/eu-central-1/i-0abc"


@pytest.mark.parametrize("name", ["1/x' OR 'a", "1//x", "/x/y", "1/x/"])
def test_a_name_that_would_change_a_query_is_refused(name: str) -> None:
    with pytest.raises(typer.BadParameter):
        target("ec2instance", name)


def commands(group: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Every command below the group, by how it is called."""
    for word, command in getattr(group, "commands", {}).items():
        yield f"{name} {word}", command
        yield from commands(command, f"{name} {word}")


@pytest.mark.parametrize(("name", "command"), sorted(commands(typer.main.get_command(build()), "perdure")))
def test_help_names_only_options_that_the_command_has(name: str, command: Any) -> None:
    own = {option for parameter in command.params for option in getattr(parameter, "opts", ())} | {"--help"}
    texts = [command.help or "", *(getattr(parameter, "help", None) or "" for parameter in command.params)]
    # Text in backquotes is another command or program.
    named = {
        option for text in texts for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", re.sub(r"`[^`]*`", "", text))
    }
    assert named <= own, name
