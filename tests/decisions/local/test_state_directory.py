"""A state directory that a crash damaged, or that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from localcloud import cli, deployment
from localcloud.state import Plan, StateDirectory, StateDirectoryError

PLAN = Plan(clouds=(), services=(), binaries=None, kubeconfig=None)


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    found = StateDirectory(tmp_path / "state")
    found.create(PLAN)
    return found


def perdure(*words: str) -> Result:
    app = typer.Typer()
    cli.register(app)
    return CliRunner().invoke(app, list(words))


@pytest.mark.parametrize("content", ["", "{", "[]", '{"services": "x"}'])
def test_a_damaged_file_stops_neither_status_nor_down_nor_up(state: StateDirectory, content: str) -> None:
    for name in ("services.json", "ports.json"):
        (state.root / name).write_text(content)
    assert (state.running(), state.ports()) == (None, {})
    shown = perdure("status", "-o", "json", "--state", str(state.root))
    assert (shown.exit_code, json.loads(shown.stdout)["running"]) == (1, False)
    assert perdure("down", "--state", str(state.root)).exit_code == 0


def test_a_wipe_removes_what_an_interrupted_write_left(state: StateDirectory) -> None:
    (state.root / ".services.json.4711").write_text("{")
    state.wipe()
    assert not state.root.exists()


@pytest.mark.parametrize("command", ["status", "down", "up"])
def test_a_file_in_place_of_the_directory_is_named_in_one_line(
    tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployment, "find_programs", no_programs)
    file = tmp_path / "file"
    file.touch()
    ended = perdure(command, "--state", str(file))
    assert not isinstance(ended.exception, OSError)
    assert ended.exit_code == (0 if command == "down" else 1)
    assert len(ended.output.splitlines()) == 1
    assert str(file) in ended.output


def test_a_directory_of_others_is_refused_before_kubernetes_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployment, "find_programs", no_programs)
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(StateDirectoryError, match="is not a state directory of perdure"):
        deployment.Deployment(tmp_path).start()


def no_programs(*_: object) -> None:
    raise AssertionError("Kubernetes is built")
