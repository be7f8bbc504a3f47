"""Policies that `perdure install migrate nth` prints, applied to a real API server."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
import yaml
from typer.testing import CliRunner

from domain.instances import INTERRUPTION_POLICY
from domain.instances.resources import InterruptionPolicy
from domain.reading import read
from engine.kube import KubeApi
from starters.cli.main import build

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

SAMPLES = Path(__file__).parents[1] / "samples" / "node_termination_handler"
WIDEST = """
enableSqsTerminationDraining: true
podTerminationGracePeriod: 2592000
nodeTerminationGracePeriod: 2592000
heartbeatInterval: {interval}
heartbeatUntil: {until}
webhookURL: https://x
webhookProxy: http://{proxy}
webhookHeaders: {headers}
webhookTemplate: {template}
"""


async def applied(kube: KubeApi, text: str) -> InterruptionPolicy:
    """Create the policy that is printed for these values, as the API server keeps it."""
    name = f"nth-{uuid4().hex[:8]}"
    printed = CliRunner().invoke(build(), ["install", "migrate", "nth", "-", "--name", name], input=text)
    assert printed.exit_code == 0, printed.output
    document = yaml.safe_load(printed.output)
    created = await kube.create(INTERRUPTION_POLICY, document)
    await kube.delete(INTERRUPTION_POLICY, "", name)
    assert created["spec"] == document["spec"], "no field is dropped"
    return read(InterruptionPolicy, created)


@pytest.mark.parametrize("sample", sorted(SAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
async def test_values_of_real_installations_become_policies_that_the_api_server_takes(
    kube: KubeApi, sample: Path
) -> None:
    policy = await applied(kube, sample.read_text())
    assert policy.spec.reactions.spot is not None


@pytest.mark.parametrize(("interval", "until"), [(30, 60), (3600, 172800)])
async def test_the_least_and_the_most_that_the_migration_takes_is_taken_by_the_api_server(
    kube: KubeApi, interval: int, until: int
) -> None:
    headers = {f"{'x' * 98}{i:02}": "~" * 1000 for i in range(16)}
    proxy = "p" * (2000 - len("http://"))
    text = WIDEST.format(interval=interval, until=until, headers=headers, proxy=proxy, template="'" + "x" * 4096 + "'")
    policy = await applied(kube, text)
    assert (policy.spec.heartbeat_seconds, policy.spec.hook_limit_seconds) == (interval, until)
    assert len(policy.spec.notify[0].headers) == 16
