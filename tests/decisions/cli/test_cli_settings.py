"""`perdure settings`: which settings are in effect, and where each comes from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from engine.settings import InvalidSettings, Settings
from starters.cli.main import build
from starters.cli.output import CommandError


@pytest.fixture(autouse=True)
def _without_a_deployment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERDURE_STATE", raising=False)
    monkeypatch.setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")


def perdure(*words: str) -> Result:
    return CliRunner().invoke(build(), ["settings", *words])


def settings_in(result: Result) -> dict[str, tuple[str, str]]:
    return {each["variable"]: (each["value"], each["source"]) for each in json.loads(result.stdout)["settings"]}


def test_each_setting_is_printed_with_its_value_and_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_SWEEP", "1h30m")
    monkeypatch.setenv("OPERATOR_NAMESPACE", "claims")
    found = settings_in(perdure("-o", "json"))
    assert found["PERDURE_SWEEP"] == ("5400s", "environment")
    assert found["OPERATOR_NAMESPACE"] == ("claims", "environment")
    assert found["PERDURE_ACCOUNTS_ROTATE_KEYS"] == ("true", "default")


def test_only_what_is_set_is_printed_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_AREAS", "claims,accounts")
    assert settings_in(perdure("--set", "-o", "json")) == {"PERDURE_AREAS": ("claims,accounts", "environment")}


def test_a_setting_of_a_local_deployment_names_its_state_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERDURE_CLUSTER", "set before, so that it is restored afterwards")
    (tmp_path / "env").write_text("export PERDURE_CLUSTER=west\n")
    found = settings_in(perdure("--set", "-o", "json", "--state", str(tmp_path)))
    assert found["PERDURE_CLUSTER"] == ("west", "state directory")


def test_a_variable_that_is_no_setting_is_named_with_the_nearest_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_SWEEPS", "5m")
    assert "PERDURE_SWEEPS is not a setting and has no effect; is PERDURE_SWEEP meant?" in perdure("--set").stderr


def test_a_variable_of_yawol_has_no_second_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERDURE_LOADBALANCERS_NETWORK_ID", "n-1")
    assert Settings().loadbalancers_network_id == ""
    monkeypatch.setenv("NETWORK_ID", "n-2")
    assert Settings().loadbalancers_network_id == "n-2"


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("PERDURE_DRAIN", "inf", "PERDURE_DRAIN='inf': expected a duration such as 90"),
        ("PERDURE_DRAIN", "1e300", "PERDURE_DRAIN='1e300': expected a duration such as 90"),
        ("PERDURE_SWEEP", "99999999999999h", "PERDURE_SWEEP='99999999999999h': expected a duration"),
        ("MANAGE_POOLS_INTERVAL", "0", "MANAGE_POOLS_INTERVAL='0s': Input should be greater than 0 seconds"),
        ("RESOURCE_REFRESH_INTERVAL", "-1", "RESOURCE_REFRESH_INTERVAL='-1s': Input should be greater than 0"),
        ("PERDURE_LOADBALANCERS_BOOT_TIMEOUT", "0s", "BOOT_TIMEOUT='0s': Input should be greater than 0 seconds"),
    ],
)
def test_a_duration_that_no_process_can_use_is_named(
    variable: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    found = perdure()
    assert isinstance(found.exception, InvalidSettings)
    assert said in str(found.exception)


@pytest.mark.parametrize("address", ["127.0.0.1:99999", "x y:7233"])
def test_an_address_of_temporal_that_is_none_is_named(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEMPORAL_ADDRESS", address)
    found = CliRunner().invoke(build(), ["temporal", "versions"])
    assert isinstance(found.exception, CommandError)
    assert f"{address!r} is no address" in found.exception.message


def test_definitions_that_cannot_be_written_are_an_error_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = CliRunner().invoke(build(), ["crds", "--output", str(tmp_path / "file")])
    assert isinstance(found.exception, CommandError)
    assert str(tmp_path / "file") in found.exception.message
