"""`perdure demo accounts` as a person or a CI job runs it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from localcloud.aws.control import Emulator
from localcloud.deployment import Deployment
from localcloud.services import AWS

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Deployment]:
    deployment = Deployment(tmp_path / "state")
    yield deployment
    deployment.down(wipe=True)


def _demo(deployment: Deployment, *options: str) -> subprocess.CompletedProcess[str]:
    """The command, to its end."""
    command = [sys.executable, "-m", "starters.cli.main", "demo", "accounts", *options]
    return subprocess.run(
        [*command, "--state", str(deployment.state.root)], capture_output=True, text=True, timeout=200, check=False
    )


def test_the_demo_settles_leaves_nothing_running_and_can_be_repeated(fresh: Deployment) -> None:
    first = _demo(fresh, "--exit")
    assert first.returncode == 0, first.stdout + first.stderr
    for phase in ("Creating", "InitializingRegions", "PendingVerification", "Ready", "Deleting"):
        assert f" {phase}" in first.stdout
    assert "the Secret is gone, its key opens nothing any more" in first.stdout
    assert "The same legal entity got the same account, with a new key" in first.stdout
    assert not fresh.status().running
    root = str(fresh.state.root)
    assert not [
        process for process in psutil.process_iter(["cmdline"]) if root in " ".join(process.info["cmdline"] or ())
    ]
    second = _demo(fresh, "--exit")
    assert second.returncode == 0, second.stdout + second.stderr
    assert "An earlier run has left its claim: released first" in second.stdout


def test_the_demo_fails_with_the_reason_when_an_account_fails_and_leaves_what_it_found_up(fresh: Deployment) -> None:
    fresh.up(tether=True)
    with Emulator(fresh.service(AWS).url or "") as emulator:
        emulator.fault("organizations", "CreateAccount", kind="async-failure", code="INTERNAL_FAILURE", count=1)
        emulator.fault("organizations", "CreateAccount", kind="async-failure", code="EMAIL_ALREADY_EXISTS", count=1)
    failed = _demo(fresh, "--exit")
    assert failed.returncode == 1, failed.stdout
    assert "is Failed: AccountCreationFailed: EMAIL_ALREADY_EXISTS" in failed.stderr
    assert fresh.status().healthy


def test_a_demo_that_has_no_time_says_what_it_waited_for(fresh: Deployment) -> None:
    fresh.up(tether=True)
    with Emulator(fresh.service(AWS).url or "") as emulator:
        emulator.fault("support", "CreateCase", kind="throttle")
    late = _demo(fresh, "--exit", "--timeout", "12")
    assert late.returncode == 1, late.stdout
    assert "waited for: the pool's accounts are Ready" in late.stderr
    assert "PendingVerification" in late.stderr


def test_an_unknown_demo_is_refused_with_the_names_there_are() -> None:
    refused = subprocess.run(
        [sys.executable, "-m", "starters.cli.main", "demo", "nothing"], capture_output=True, text=True, check=False
    )
    assert refused.returncode == 2
    assert "accounts" in refused.stderr
