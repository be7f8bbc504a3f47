"""One simulator for the run, and others to be killed.

Tests share the tenant of the one, so each makes objects of its own; settings, faults and ledger are set back before
each. What needs a tenant with nothing else in it takes `tenant`.
"""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import cast

import pytest
from product import process
from threescale_lab import Shop
from threescale_passes_lab import Passes, one_worker
from threescale_process import Client, ThreescaleProcess, client_of, fresh

from engine.kube import KubeApi
from localcloud.deployment import Deployment
from localcloud.threescale.control import ThreescaleControl


@pytest.fixture(scope="session")
def threescale_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreescaleProcess]:
    running = ThreescaleProcess(tmp_path_factory.mktemp("threescale")).start()
    yield running
    running.end(signal.SIGTERM)


@pytest.fixture
def control(threescale_process: ThreescaleProcess) -> Iterator[ThreescaleControl]:
    with ThreescaleControl(threescale_process.url, timeout_seconds=60) as control:
        control.reset_config()
        control.clear()
        control.reset_ledger()
        yield control


@pytest.fixture
def client(control: ThreescaleControl) -> Iterator[Client]:
    """The tenant that is there from the start, as a program with a full token sees it."""
    client = client_of(control)
    yield client
    client.close()


@pytest.fixture
def master(control: ThreescaleControl) -> Iterator[Client]:
    """The tenant whose program makes other tenants."""
    client = client_of(control, "master")
    yield client
    client.close()


@pytest.fixture
def tenant(control: ThreescaleControl) -> Iterator[Client]:
    """A tenant of the test's own."""
    made = control.add_tenant(fresh("Tenant"))
    client = Client(made.url, made.token)
    yield client
    client.close()


@pytest.fixture
def own_process(tmp_path: Path) -> Iterator[ThreescaleProcess]:
    """A simulator for one test, which may kill it."""
    own = ThreescaleProcess(tmp_path)
    yield own
    if own.runs():
        own.end(signal.SIGKILL)


class ProductAtWork:
    """Worker and watcher in one process, as small installations run them."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._stack = AsyncExitStack()

    async def start(self) -> None:
        await self._stack.enter_async_context(process(self._deployment, "run"))

    async def stop(self) -> None:
        await self._stack.aclose()


@pytest.fixture(scope="module")
async def product_at_work(deployment: Deployment) -> AsyncIterator[ProductAtWork]:
    at_work = ProductAtWork(deployment)
    await at_work.start()
    yield at_work
    await at_work.stop()


@pytest.fixture
async def shop(product_at_work: ProductAtWork, kube: KubeApi, tenant: Client) -> Shop:
    """A namespace whose objects are in the test's own tenant, with the product at work."""
    return await Shop(kube, tenant).open()


@pytest.fixture
async def passes() -> AsyncIterator[Passes]:
    """One worker's passes: a test makes each of them."""
    async with one_worker() as found:
        yield found


@pytest.fixture
async def bare_shop(passes: Passes, tenant: Client) -> Shop:
    """A namespace whose objects are in the test's own tenant, without a worker."""
    return await Shop(cast("KubeApi", passes.kube), tenant).open()
