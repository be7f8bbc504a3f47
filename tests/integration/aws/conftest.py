"""The lab that the AWS tests share: one set of sessions for the whole run, as in a worker."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from aws_lab import Lab

from engine.kube import BlockingKube, KubeApi
from engine.settings import Settings
from localcloud.aws.control import Emulator
from localcloud.deployment import Deployment


@pytest.fixture(scope="session")
def shared_lab(deployment: Deployment) -> Iterator[Lab]:
    """One set of sessions for the whole run, as in a worker; the Kubernetes client runs on a loop of its own."""
    environment = deployment.env()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="kube", daemon=True)
    thread.start()
    settings = Settings()
    with Emulator(environment["AWS_ENDPOINT_URL"]) as emulator:
        api = asyncio.run_coroutine_threadsafe(KubeApi.open(settings, "test", environment["KUBECONFIG"]), loop).result()
        yield Lab(emulator, BlockingKube(api, loop), settings)
        asyncio.run_coroutine_threadsafe(api.close(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture
def lab(shared_lab: Lab, deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """The lab with a friendly cloud and an empty ledger, and the environment that leads clients of AWS to it.

    That environment is the test's alone: tests of other folders follow in the same process, which it would mislead.
    """
    for name, value in deployment.env().items():
        monkeypatch.setenv(name, value)
    shared_lab.emulator.clear()
    shared_lab.emulator.reset_config()
    shared_lab.emulator.reset_ledger()
    yield shared_lab
    shared_lab.emulator.clear()
    shared_lab.emulator.reset_config()
