"""A real OpenStack and an API server, shared by all tests of this folder; nothing of the product runs beside them.

`PERDURE_TEST_OPENSTACK=DIR` leaves the deployment's data in DIR for the next run, which need not create it again.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from openstack_lab import Lab
from passes_lab import Passes

from engine.kube import BlockingKube, KubeApi
from engine.settings import Settings
from localcloud import services
from localcloud.deployment import Deployment
from localcloud.openstack.control import OpenStackControl
from localcloud.state import Cloud
from tests.running.failed_servers import end

_PASSES: dict[Lab, Passes] = {}


@pytest.fixture(scope="session")
def openstack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A deployment of OpenStack and of Kubernetes, where the credentials are."""
    state_directory = os.environ.get("PERDURE_TEST_OPENSTACK")
    deployment = Deployment(Path(state_directory) if state_directory else tmp_path_factory.mktemp("openstack"))
    deployment.up(clouds=(Cloud.OPENSTACK,), only=(*services.CLUSTER, *services.OPENSTACK), tether=True)
    yield deployment
    if state_directory:
        deployment.down()
    else:
        end(deployment)


@pytest.fixture(scope="session")
def shared_lab(openstack: Deployment) -> Iterator[Lab]:
    """One set of projects for the whole run, as in a worker; the Kubernetes client runs on a loop of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="kube", daemon=True)
    thread.start()
    settings = Settings(worker_openstack_rate_per_project=1000)
    kubeconfig = openstack.env()["KUBECONFIG"]
    api = asyncio.run_coroutine_threadsafe(KubeApi.open(settings, "test", kubeconfig), loop).result()
    with OpenStackControl.of(openstack) as control:
        control.clear()
        lab = Lab(openstack, control, BlockingKube(api, loop), settings)
        _PASSES[lab] = Passes(lab, api, loop)
        yield lab
        lab.projects.close()
        asyncio.run_coroutine_threadsafe(api.close(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture
def lab(shared_lab: Lab) -> Iterator[Lab]:
    """The lab with a friendly cloud and an empty ledger."""
    shared_lab.balancer()  # the ids that all tests use are known from here on
    shared_lab.control.clear()
    shared_lab.control.reset_ledger()
    yield shared_lab
    shared_lab.control.clear()


@pytest.fixture
def passes(lab: Lab) -> Passes:
    """One worker's passes."""
    found = _PASSES[lab]
    found.ahead = timedelta(0)
    return found
