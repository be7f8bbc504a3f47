"""`perdure demo loadbalancer` as a person or a CI job runs it: the whole way, from a Service to a client's bytes."""

from __future__ import annotations

import pytest
from product import perdure

from localcloud.deployment import Deployment
from localcloud.openstack import build
from localcloud.progress import Silence

pytestmark = [pytest.mark.integration, pytest.mark.openstack, pytest.mark.timeout(600)]


@pytest.fixture
def openstack(fresh: Deployment) -> Deployment:
    """One that the demo itself brings up; what it runs is built before."""
    build.find_programs(Silence())
    return fresh


def test_the_demo_settles_with_all_requests_answered(openstack: Deployment) -> None:
    done = perdure(openstack, "demo", "loadbalancer", "--exit", seconds=560)
    assert done.returncode == 0, done.stdout + done.stderr
    for said in (
        "Its address is 127.",
        "The first request was answered",
        "2 machines are ready",
        "40 requests to http://127.",
        "has the address; requests are answered again",
        "Another machine is ready in its place",
    ):
        assert said in done.stdout, done.stdout
