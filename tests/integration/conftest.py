"""One local deployment for the whole run: real servers, without the product's own processes.

`PERDURE_TEST_STATE=DIR` leaves it between runs: it is brought up in DIR, found running by the next run, and stays
(`perdure down --state DIR --wipe` ends it). Without it the deployment lives in a temporary directory and dies with
pytest, however pytest ends.

On a machine that has no Kubernetes, OpenStack or production Temporal yet, what the chosen tests need of them is built
before the first test, where no test's time limit runs.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from kube_fault_proxy import FaultProxy
from rich.console import Console
from waiting import PATIENT

from engine.kube import NAMESPACE, KubeApi, informer_cache
from engine.settings import Settings
from localcloud import services
from localcloud.deployment import Deployment
from localcloud.kubernetes.programs import find_programs
from localcloud.openstack import build
from localcloud.progress import ConsoleNarrator
from localcloud.temporal import choice
from tests.running.failed_servers import end

_NEEDING = {"deployment", "fresh"}
_NEEDING_OPENSTACK = {"openstack"}
_NEEDING_TEMPORAL = {"production_deployment"}


def pytest_collection_finish(session: pytest.Session) -> None:
    """Find or build the control plane once it is known that something will use it."""
    used = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    if not (_NEEDING | _NEEDING_OPENSTACK | _NEEDING_TEMPORAL) & used or session.config.option.collectonly:
        return
    capture = session.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled(), ConsoleNarrator(Console(stderr=True)) as narrator:
        if (_NEEDING | _NEEDING_TEMPORAL) & used:
            find_programs(narrator)
        if _NEEDING_OPENSTACK & used:
            build.find_programs(narrator)
        if _NEEDING_TEMPORAL & used:
            choice.find(choice.POSTGRES, narrator)


@pytest.fixture(scope="session")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A running deployment; worker and watch are left to the tests that want them."""
    state_directory = os.environ.get("PERDURE_TEST_STATE")
    deployment = Deployment(Path(state_directory) if state_directory else tmp_path_factory.mktemp("deployment"))
    deployment.up(only=services.SERVERS, tether=not state_directory)
    yield deployment
    if not state_directory:
        end(deployment)


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Deployment]:
    """A deployment of the test's own that is not up yet, and is gone in the end."""
    deployment = Deployment(tmp_path / "state")
    yield deployment
    end(deployment)


@pytest.fixture(scope="session")
async def kube(deployment: Deployment) -> AsyncIterator[KubeApi]:
    """Its Kubernetes API, with the administrator's rights."""
    async with await KubeApi.open(Settings(), "tests", deployment.env()["KUBECONFIG"]) as api:
        yield api


@pytest.fixture
async def proxy(deployment: Deployment) -> AsyncIterator[FaultProxy]:
    """A proxy before the API server, which breaks what a test says."""
    async with FaultProxy.running(deployment.env()["KUBECONFIG"]) as running:
        yield running


@pytest.fixture
async def proxied(proxy: FaultProxy, tmp_path: Path) -> AsyncIterator[KubeApi]:
    """A client that reaches the API server by the proxy."""
    async with await KubeApi.open(Settings(), "tests", proxy.write_kubeconfig(tmp_path / "proxied")) as api:
        yield api


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass waits for its cache however busy the machine is, and asks the API server only where a test wants it."""
    monkeypatch.setattr(informer_cache, "LONGEST_BEHIND", PATIENT)


@pytest.fixture
async def namespace(kube: KubeApi, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """A namespace of the test's own, named after its module."""
    module = request.module.__name__.removeprefix("test_").replace("_", "-")
    name = f"{module}-{uuid4().hex[:8]}"
    await kube.create(NAMESPACE, {"metadata": {"name": name}})
    yield name
    await kube.delete(NAMESPACE, "", name)
