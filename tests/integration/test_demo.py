"""`perdure demo accounts` as a person or a CI job runs it."""

from __future__ import annotations

import re

import psutil
import pytest
from product import perdure

from localcloud.aws.control import Emulator
from localcloud.deployment import Deployment
from localcloud.services import AWS

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


@pytest.mark.timeout(600)
def test_the_demo_settles_leaves_nothing_running_and_can_be_repeated(fresh: Deployment) -> None:
    first = perdure(fresh, "demo", "accounts", "--exit")
    assert first.returncode == 0, first.stdout + first.stderr
    for phase in ("Creating", "InitializingRegions", "PendingVerification", "Ready", "Deleting"):
        assert f" {phase}" in first.stdout
    assert "Secret is gone, and its key no longer works" in first.stdout
    assert "The same legal entity got the same account, with a new key" in first.stdout
    assert not fresh.status().running
    root = str(fresh.state.root)
    assert not [
        process for process in psutil.process_iter(["cmdline"]) if root in " ".join(process.info["cmdline"] or ())
    ]
    # A demo that is not done by then says itself what it waits for.
    second = perdure(fresh, "demo", "accounts", "--exit", "--timeout", "180", seconds=240)
    assert second.returncode == 0, second.stdout + second.stderr
    assert "A claim is left from an earlier run: it is released first" in second.stdout


def test_the_demo_reports_why_an_account_failed_and_leaves_the_deployment_up(fresh: Deployment) -> None:
    fresh.up(tether=True)
    with Emulator(fresh.service(AWS).url or "") as emulator:
        emulator.fault("organizations", "CreateAccount", kind="async-failure", code="INTERNAL_FAILURE", count=1)
        emulator.fault("organizations", "CreateAccount", kind="async-failure", code="EMAIL_ALREADY_EXISTS", count=1)
    failed = perdure(fresh, "demo", "accounts", "--exit")
    assert failed.returncode == 1, failed.stdout
    assert "is Failed: AccountCreationFailed: EMAIL_ALREADY_EXISTS" in failed.stderr
    assert fresh.status().healthy


def test_a_demo_that_has_no_time_says_what_it_waited_for(fresh: Deployment) -> None:
    fresh.up(tether=True)
    with Emulator(fresh.service(AWS).url or "") as emulator:
        emulator.fault("support", "CreateCase", kind="throttle")
    late = perdure(fresh, "demo", "accounts", "--exit", "--timeout", "12")
    assert late.returncode == 1, late.stdout
    assert "waited for: the pool's accounts are Ready" in late.stderr
    # How far it got depends on the machine.
    assert re.search(r"Account/aws-account-operator/\S+ is (\w*Regions|Creating|PendingVerification): .", late.stderr)


def test_an_unknown_demo_is_refused_with_the_names_there_are() -> None:
    refused = perdure(None, "demo", "nothing")
    assert refused.returncode == 2
    assert "accounts" in refused.stderr


@pytest.mark.slow
def test_a_customers_account_is_claimed_used_and_given_back_as_it_was(fresh: Deployment) -> None:
    played = perdure(fresh, "demo", "byoc", "--exit")
    assert played.returncode == 0, played.stdout + played.stderr
    for phase in ("Creating", "InitializingRegions", "Ready", "Deleting"):
        assert f" {phase}" in played.stdout
    assert "the customer's bucket and key are as they were" in played.stdout
