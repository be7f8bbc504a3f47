"""What the processes of a local deployment see of the shell that starts them, and what its `env` file gives others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from temporalio.envconfig import ClientConfig, ClientConnectConfig

from localcloud import services
from localcloud.state import Cloud, Plan, StateDirectory

PLAN = Plan(clouds=(Cloud.AWS,), services=(services.TEMPORAL,), binaries=None, kubeconfig=None)
ROOT = Path(__file__).parents[3]
PORTS = {"temporal": 7000}


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    return StateDirectory(tmp_path / "state")


def read_with(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> ClientConnectConfig:
    """How a process with this environment reaches Temporal."""
    with monkeypatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("TEMPORAL_")]:
            patch.delenv(name)
        for name, value in variables.items():
            patch.setenv(name, value)
        return ClientConfig.load_client_connect_config()


def test_a_users_own_temporal_profile_has_no_effect(
    state: StateDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = tmp_path / "temporalio/temporal.toml"
    profile.parent.mkdir(parents=True)
    profile.write_text('[profile.default]\naddress = "prod.example:7233"\nnamespace = "prod"\napi_key = "secret"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert read_with({}, monkeypatch)["namespace"] == "prod"

    ours = services.our_environment(PLAN, state, PORTS)
    public = services.public_environment(PLAN, state, PORTS)
    without = services.our_environment(PLAN.model_copy(update={"services": ()}), state, {})

    here = {"target_host": "127.0.0.1:7000", "namespace": "default"}
    assert read_with(ours, monkeypatch) == here
    assert read_with(public, monkeypatch) == here
    assert read_with(without, monkeypatch) == {}


def test_other_shells_get_the_settings_that_up_was_given(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {
        "PERDURE_CLUSTER": "north",
        "PERDURE_INSTANCES_QUEUES": "123456789012/eu-central-1",
        "OPERATOR_DOMAIN": "claims.example.com",
        "OPERATOR_NAMESPACE": "labs",
    }
    # Of this shell, of this person, of one process; the tests' own.
    for name in ("PERDURE_USER", "PERDURE_STATE", "PERDURE_HEALTH_PORT", "PERDURE_LOCAL_FSYNC"):
        monkeypatch.setenv(name, "mine")
    for name, value in given.items():
        monkeypatch.setenv(name, value)

    environment = services.public_environment(PLAN, state, PORTS)

    named = {name: value for name, value in environment.items() if name.startswith(("PERDURE_", "OPERATOR_"))}
    assert named == {**given, "PERDURE_STATE": str(state.root)}


def test_a_state_directorys_domain_counts_for_the_names_of_kinds(tmp_path: Path) -> None:
    (tmp_path / "env").write_text("export KUBECONFIG=/nowhere\nexport OPERATOR_DOMAIN=claims.example.com\n")
    command = [sys.executable, "-m", "starters.cli.main", "why", "resourceclaims.claims.example.com", "ns/one"]
    done = subprocess.run(
        [*command, "--state", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, "no Kubernetes cluster is configured" in done.stderr) == (1, True), done.stderr


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "127.0.0.1,localhost"),
        ({"no_proxy": "corp.example"}, "corp.example,127.0.0.1,localhost"),
        ({"NO_PROXY": "a.example, b.example", "no_proxy": "b.example"}, "a.example,b.example,127.0.0.1,localhost"),
    ],
)
def test_loopback_goes_past_every_proxy(
    state: StateDirectory, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], expected: str
) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    for found in (services.our_environment(PLAN, state, PORTS), services.public_environment(PLAN, state, PORTS)):
        assert (found["NO_PROXY"], found["no_proxy"]) == (expected, expected)


@pytest.mark.parametrize("environment", ["bin of mine", None])
def test_the_line_that_enters_a_deployment_can_be_pasted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: str | None
) -> None:
    state = StateDirectory(tmp_path / "my dir")
    state.root.mkdir()
    state.write_env({"ENTERED": "it's"})
    prefix = tmp_path / environment if environment else Path(sys.base_prefix)
    monkeypatch.setattr(sys, "prefix", str(prefix))
    if environment:
        (prefix / "bin").mkdir(parents=True)
        (prefix / "bin/activate").write_text("ACTIVE=yes\n")

    script = f"{state.to_enter}; echo $ENTERED $ACTIVE"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)

    assert (done.stdout.split(), done.stderr) == (["it's", *(["yes"] if environment else [])], "")
