"""Each demo as a person runs it, while the product's processes are terminated and started again, one after the other.

A rollout in a cluster, made harder: none runs while one of them starts, and it is followed by another rollout
until the demo is over.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from waiting import until

from localcloud.demo.scenarios import SCENARIOS
from localcloud.deployment import Deployment
from localcloud.openstack import build
from localcloud.progress import Silence
from localcloud.services import PRODUCT
from localcloud.state import Cloud, Running

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(1200)]

DEMO_SECONDS = 900.0
BETWEEN_ROLLOUTS_SECONDS = 5.0


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_demo_settles_although_the_product_is_rolled_out_again_and_again(
    fresh: Deployment, tmp_path: Path, record_property: Callable[[str, object], None], name: str
) -> None:
    if Cloud.OPENSTACK in SCENARIOS[name].clouds:
        build.find_programs(Silence())
    message = tmp_path / "said"
    command = [sys.executable, "-m", "starters.cli.main", "demo", name, "--exit", "--timeout", str(DEMO_SECONDS)]
    began = time.monotonic()
    with message.open("w") as output:
        playing = subprocess.Popen(
            [*command, "--state", str(fresh.state.root)], stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        times = _roll(fresh, playing)
    finally:
        playing.terminate()
        playing.wait()
    assert playing.returncode == 0, message.read_text()
    assert times, "the demo was over before anything was started again: nothing was tried"
    record_property("restarts", times)
    record_property("seconds", round(time.monotonic() - began, 1))
    print(f"{name}: {times} restarts, {time.monotonic() - began:.0f} s")


def _roll(deployment: Deployment, playing: subprocess.Popen[bytes]) -> int:
    """Roll one process after the other until the demo has ended; how many were started again."""
    times = 0

    def over() -> bool:
        return playing.poll() is not None

    until(lambda: over() or _ready(deployment), "the deployment is up", DEMO_SECONDS)
    while not over():
        for name in PRODUCT:
            if not over() and (pid := _pid(deployment, name)):
                os.kill(pid, signal.SIGTERM)
                until(lambda name=name, pid=pid: over() or _follows(deployment, name, pid), f"{name} again")
                times += not over()
        began = time.monotonic()
        until(lambda began=began: over() or time.monotonic() > began + BETWEEN_ROLLOUTS_SECONDS, "a pause")
    return times


def _running(deployment: Deployment) -> Running | None:
    """What the supervisor says while it means to go on."""
    running = deployment.state.running()
    return running if running is not None and not running.stopping else None


def _ready(deployment: Deployment) -> bool:
    running = _running(deployment)
    return running is not None and running.ready


def _pid(deployment: Deployment, name: str) -> int | None:
    """Of a process that runs; the event consumer does so where instances are served."""
    running = _running(deployment)
    row = running.service(name) if running is not None else None
    return row.pid if row is not None else None


def _follows(deployment: Deployment, name: str, pid: int) -> bool:
    """Whether another one is ready in its place."""
    running = _running(deployment)
    row = running.service(name) if running is not None else None
    return row is not None and row.settled and row.pid != pid
