"""What is set wrongly is said in one line when a process starts: by which variable, and what is wrong with it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from encryption_keys import add_key
from kubeconfigs import kubeconfig_to_nowhere

from engine.health import AddressUnusable
from engine.process import ungrouped


@pytest.mark.parametrize(
    ("command", "variable", "said"),
    [
        ("worker", "PERDURE_TEMPORAL_KEYS", "worker cannot start: PERDURE_TEMPORAL_KEYS: the keys in /nowhere"),
        ("run", "KUBECONFIG", "run cannot start: KUBECONFIG names no cluster, and this is not a Pod"),
    ],
)
def test_an_error_at_the_start_of_a_process_is_one_line(command: str, variable: str, said: str) -> None:
    begun = begin(command, **{variable: "/nowhere"})
    assert begun.returncode == 1
    (line,) = begun.stderr.splitlines()
    assert said in line


@pytest.mark.parametrize(
    ("command", "variable", "value", "said"),
    [
        *(
            (command, "PERDURE_MODE", "acts", "error: PERDURE_MODE='acts': Input should be 'act' or 'observe'")
            # A process of lifecycles, another one, commands, and a program that starts others.
            for command in ("run", "run codec", "list", "install iam", "up")
        ),
        ("list", "MANAGE_CLAIMS_INTERVAL", "5x", "error: MANAGE_CLAIMS_INTERVAL='5x': expected a duration such as 90"),
    ],
)
def test_an_invalid_setting_is_one_line(tmp_path: Path, command: str, variable: str, value: str, said: str) -> None:
    begun = begin(*command.split(), **{variable: value, "HOME": str(tmp_path)})
    assert not list(tmp_path.rglob("deployment.json")), "nothing was started"
    assert begun.returncode == 1
    line, advice = begun.stderr.splitlines()
    assert said in line
    assert advice.strip() == "docs/settings.md has every setting"


def test_an_area_that_does_not_exist_is_refused_before_anything_is_connected_to() -> None:
    begun = begin("watch", PERDURE_AREAS="claim")
    assert begun.returncode == 1
    assert begun.stderr.startswith("error: PERDURE_AREAS names claim: there is no such area")


@pytest.mark.parametrize(("command", "of"), [("run", "HEALTH"), ("watch", "METRICS")])
def test_a_busy_port_is_one_line_that_names_its_variable(command: str, of: str, tmp_path: Path) -> None:
    with listening() as port:
        begun = begin(command, **{f"PERDURE_{of}_PORT": str(port)}, KUBECONFIG=str(kubeconfig_to_nowhere(tmp_path)))
    assert begun.returncode == 1
    (line,) = begun.stderr.splitlines()
    assert f"{command} cannot start: cannot listen on 127.0.0.1:{port}" in line
    assert f"(PERDURE_LISTEN_HOST, PERDURE_{of}_PORT)" in line


def test_the_codec_servers_busy_port_is_one_line(tmp_path: Path) -> None:
    keys = add_key(tmp_path / "keys", "a")
    with listening() as port:
        begun = begin("run", "codec", "--port", str(port), PERDURE_TEMPORAL_KEYS=str(keys))
    assert begun.returncode == 1
    (line,) = begun.stderr.splitlines()
    assert f"cannot listen on 127.0.0.1:{port} (PERDURE_LISTEN_HOST, --port)" in line


# Refused, as the directory holds files that are not its own.
UP = "up --kubeconfig {cluster} --state {foreign}"


@pytest.mark.parametrize("command", ["run", "watch", "run codec", "list -o json", "install iam", UP])
def test_an_unknown_variable_is_named_once_with_the_nearest_setting(command: str, tmp_path: Path) -> None:
    file = kubeconfig_to_nowhere(tmp_path)
    with listening() as port:  # so that each process ends by itself
        begun = begin(
            *command.format(cluster=file, foreign=tmp_path).split(),
            PERDURE_ACCOUNT_POLL="3",
            PERDURE_STATE_OF_AFFAIRS="none",
            PERDURE_CODEC_SERVICE_HOST="10.0.0.1",
            PERDURE_METRICS_PORT=str(port),
            PERDURE_HEALTH_PORT=str(port),
            PERDURE_TEMPORAL_KEYS=str(add_key(tmp_path / "keys", "a")),
            PERDURE_TEST_SOMETHING="of the tests",
            KUBECONFIG=str(file),
        )
    lines = [line for line in begun.stderr.splitlines() if "is not a setting" in line]
    assert ["PERDURE_STATE_OF_AFFAIRS" in line for line in lines] == [False, True]
    assert "PERDURE_ACCOUNT_POLL is not a setting and has no effect; is PERDURE_ACCOUNTS_POLL meant?" in lines[0]
    assert "is not a setting" not in begun.stdout
    if command in ("run", "watch", "run codec"):
        assert all(json.loads(line)["process"] == command.rsplit(maxsplit=1)[-1] for line in lines), "its log is JSON"


def test_completion_says_nothing_of_variables() -> None:
    variables = {"_PERDURE_COMPLETE": "complete_bash", "COMP_WORDS": "perdure why account ", "COMP_CWORD": "3"}
    begun = begin(**variables, PERDURE_ACCOUNT_POLL="3")
    assert (begun.returncode, begun.stderr) == (0, "")


def begin(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    settings = ("PERDURE_", "TEMPORAL_", "KUBE")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(settings)}
    return subprocess.run(
        [sys.executable, "-m", "starters.cli.main", *command],
        env={**inherited, "HOME": "/nowhere", **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@contextmanager
def listening() -> Iterator[int]:
    """A port that another process would find in use."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


def test_the_error_of_a_single_part_is_reported_by_itself() -> None:
    taken = AddressUnusable("0.0.0.0:8080 cannot be listened on")
    assert ungrouped(ExceptionGroup("tasks", [ExceptionGroup("", [taken]), ValueError("later")])) is taken
